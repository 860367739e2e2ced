"""A tree as rows: one for each part of a model, and one for each array."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import jax
from jax.tree_util import tree_leaves
from jaxtyping import PyTree

from ecliptic.module import StaticFunction
from ecliptic.tree import filter as keep
from ecliptic.tree import tree_pformat
from ecliptic.tree._one_level import children_with_keys
from ecliptic.tree._paths import KeyPath, format_path
from ecliptic.tree._predicates import has_shape, is_inexact_dtype, is_key_dtype
from ecliptic.tree._static_parts import static_parts
from ecliptic.view._outputs import Outputs

# Containers have no row of their own: what is in them is in the paths.
_CONTAINERS = (list, tuple, dict)


@dataclasses.dataclass(frozen=True)
class SummaryRow:
    """What a [`TreeSummary`][] says of one part of a tree, or of one array.

    Args:
        path: the place, as an expression in the name of the tree.
        level: how many rows this one is below that of the whole tree.
        type: the name of the class; for an array, dtype and shape.
        is_leaf: whether it is an array.
        parameters: the number of elements of all arrays in it.
        trainable: how many of these are trainable.
        bytes: the memory that they take.
        dtypes: the names of their dtypes.
        static: static fields, and leaves that are no arrays, by name.
        outputs: what it returned for the example inputs, with a `jax.ShapeDtypeStruct` for each
            array; several, if it was called for several kinds of input.
        same_as: the path at which the same array was counted already; such a row adds nothing.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic.view import tree_summary
        >>> row = tree_summary({"name": "a", "weight": jnp.ones((3, 2))})[1]
        >>> row.path, row.type, row.parameters, row.bytes, row.dtypes
        ("model['weight']", 'f32[3,2]', 6, 24, ('float32',))
    """

    path: str
    level: int
    type: str
    is_leaf: bool
    parameters: int = 0
    trainable: int = 0
    bytes: int = 0
    dtypes: tuple[str, ...] = ()
    static: dict[str, Any] = dataclasses.field(default_factory=dict)
    outputs: tuple[Any, ...] = ()
    same_as: str | None = None


@dataclasses.dataclass(frozen=True)
class _Counted:
    """What one array adds to the sums."""

    size: int
    bytes: int
    dtype: str
    trainable: bool


class _Draft:
    """A row whose arrays are still being collected."""

    def __init__(self, path: KeyPath, level: int, kind: str, is_leaf: bool) -> None:
        self.path, self.level, self.kind, self.is_leaf = path, level, kind, is_leaf
        self.arrays: dict[int, _Counted] = {}
        self.static: dict[str, Any] = {}
        self.same_as: KeyPath | None = None

    def row(self, root: str, outputs: Outputs) -> SummaryRow:
        counted = self.arrays.values()
        return SummaryRow(
            path=format_path(self.path, root),
            level=self.level,
            type=self.kind,
            is_leaf=self.is_leaf,
            parameters=sum(c.size for c in counted),
            trainable=sum(c.size for c in counted if c.trainable),
            bytes=sum(c.bytes for c in counted),
            dtypes=tuple(dict.fromkeys(c.dtype for c in counted)),
            static=self.static,
            outputs=tuple(outputs.get(format_path(self.path), ())),
            same_as=None if self.same_as is None else format_path(self.same_as, root),
        )


def make_rows(tree: PyTree, filter_spec: PyTree, root: str, outputs: Outputs) -> list[SummaryRow]:
    """List the rows of a tree, each part before what is in it."""
    marked = keep(tree, filter_spec, replace=_DROPPED)
    drafts = _Drafts(leaf is not _DROPPED for leaf in tree_leaves(marked))
    drafts.visit((), tree, None)
    return [draft.row(root, outputs) for draft in drafts.found]


class _Dropped:
    """Stands for a leaf that is not trainable."""


_DROPPED = _Dropped()


class _Drafts:
    """Goes through a tree.

    Args:
        trainable: of each leaf, in order.
    """

    def __init__(self, trainable: Iterator[bool]) -> None:
        self.found: list[_Draft] = []
        self._trainable = trainable
        self._above: list[_Draft] = []
        self._first: dict[int, KeyPath] = {}

    def visit(self, path: KeyPath, node: Any, owner: _Draft | None) -> None:
        children = children_with_keys(node)
        if children is None:
            self._leaf(path, node, owner)
            return
        if owner is not None and _is_value(node):
            owner.static[_name(path, owner)] = node
            return
        if owner is not None and type(node) in _CONTAINERS:
            for key, child in children:
                self.visit((*path, key), child, owner)
            return
        draft = self._open(path, type(node).__name__, is_leaf=False)
        draft.static.update(static_parts(node))
        self._above.append(draft)
        for key, child in children:
            self.visit((*path, key), child, draft)
        self._above.pop()

    def _open(self, path: KeyPath, kind: str, *, is_leaf: bool) -> _Draft:
        draft = _Draft(path, len(self._above), kind, is_leaf)
        self.found.append(draft)
        return draft

    def _leaf(self, path: KeyPath, leaf: Any, owner: _Draft | None) -> None:
        trainable = next(self._trainable)
        if not has_shape(leaf):
            if owner is None:
                owner = self._open(path, type(leaf).__name__, is_leaf=True)
            owner.static[_name(path, owner)] = leaf
            return
        draft = self._open(path, tree_pformat(leaf, struct_as_array=True), is_leaf=True)
        # The same array in two places is one array in memory. A description is none.
        key = id(draft) if isinstance(leaf, jax.ShapeDtypeStruct) else id(leaf)
        if key in self._first:
            draft.same_as = self._first[key]
        self._first.setdefault(key, path)
        counted = _count(leaf, trainable)
        for row in (*self._above, draft):
            row.arrays.setdefault(key, counted)


def _is_value(node: Any) -> bool:
    """Whether a node is a value of what it is in: it has no leaves, and is no layer."""
    if node is None or isinstance(node, StaticFunction):
        return True
    return not callable(node) and not tree_leaves(node)


def _name(path: KeyPath, owner: _Draft) -> str:
    return format_path(path[len(owner.path) :]) or "value"


def _dtype(leaf: Any) -> str:
    return str(leaf.dtype) if is_key_dtype(leaf.dtype) else leaf.dtype.name


def _count(leaf: Any, trainable: bool) -> _Counted:
    size = math.prod(leaf.shape)
    return _Counted(size, size * leaf.dtype.itemsize, _dtype(leaf), trainable)


def is_trainable(leaf: Any) -> bool:
    """Whether a leaf is an array that has a gradient, or describes one."""
    return has_shape(leaf) and is_inexact_dtype(leaf.dtype)
