"""Splitting a tree in two by a specification, and putting two trees together."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.tree_util as jtu
import numpy as np
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic.errors import StructureError
from ecliptic.tree._difference import first_difference
from ecliptic.tree._one_level import PyTreeDef
from ecliptic.tree._paths import format_path

IsLeaf = Callable[[Any], bool] | None


def filter(
    pytree: PyTree,
    filter_spec: PyTree[bool | Callable[[Any], bool]],
    inverse: bool = False,
    replace: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
) -> PyTree:
    """Keep the leaves that a specification picks, and put `replace` in place of the others.

    Args:
        pytree: any PyTree.
        filter_spec: what to keep: a boolean, a function from a leaf to a boolean, or a PyTree of
            these whose structure is a prefix of that of `pytree`.
        inverse: keep the leaves that the specification does not pick instead.
        replace: stands where a leaf was left out; `None`, which is no leaf, by default.
        is_leaf: as in `jax.tree.map`: which nodes of `pytree` are leaves too.

    Returns:
        A PyTree with the structure of `pytree`.

    Raises:
        StructureError: the specification holds something else than booleans and functions, is
            traced, or is no prefix of `pytree`.

    >>> from ecliptic.tree import is_array_like
    >>> filter([1, "relu", 2.0], is_array_like)
    [1, None, 2.0]
    """
    leaves, mask, treedef = _select(pytree, filter_spec, is_leaf)
    keep = not inverse
    return treedef.unflatten(
        [leaf if picked is keep else replace for leaf, picked in zip(leaves, mask, strict=True)]
    )


def partition(
    pytree: PyTree,
    filter_spec: PyTree[bool | Callable[[Any], bool]],
    replace: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
) -> tuple[PyTree, PyTree]:
    """Split a PyTree in two: the leaves that a specification picks, and the others.

    Functions in the specification are called once for each leaf.

    Args:
        pytree: any PyTree.
        filter_spec: what goes into the first half: see `filter`.
        replace: stands in each half where the leaf is in the other one.
        is_leaf: as in `jax.tree.map`: which nodes of `pytree` are leaves too.

    Returns:
        Two PyTrees with the structure of `pytree`; `combine` puts them together again.

    Raises:
        StructureError: as `filter` does.

    >>> from ecliptic.tree import is_array_like
    >>> partition([1, "relu"], is_array_like)
    ([1, None], [None, 'relu'])
    """
    leaves, mask, treedef = _select(pytree, filter_spec, is_leaf)
    pairs = list(zip(leaves, mask, strict=True))
    picked = treedef.unflatten([leaf if keep else replace for leaf, keep in pairs])
    others = treedef.unflatten([replace if keep else leaf for leaf, keep in pairs])
    return picked, others


def combine(*pytrees: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    """Put PyTrees of one structure together: of each leaf, the first that is not `None`.

    Args:
        *pytrees: at least one PyTree. Where the first holds `None`, the others may hold whole
            subtrees.
        is_leaf: as in `jax.tree.map`: which nodes are leaves, besides `None`.

    Returns:
        A PyTree with the structure of the first one.

    Raises:
        StructureError: there is no PyTree, or the structures differ.

    >>> combine([1, None, 3], [None, 2, 4])
    [1, 2, 3]
    """
    if not pytrees:
        raise StructureError("combine() needs at least one PyTree, and got none.")
    if is_leaf is None:
        stop = _is_none
    else:

        def stop(node: Any) -> bool:
            return node is None or is_leaf(node)

    leaves, treedef = jtu.tree_flatten(pytrees[0], is_leaf=stop)
    columns = [leaves]
    for number, tree in enumerate(pytrees[1:], start=2):
        columns.append(_flatten_like(treedef, tree, stop, pytrees[0], number))
    return treedef.unflatten([_first(row) for row in zip(*columns, strict=True)])


def _is_none(node: Any) -> bool:
    return node is None


def _first(row: Sequence[Any]) -> Any:
    for leaf in row:
        if leaf is not None:
            return leaf
    return None


def _flatten_like(
    treedef: PyTreeDef, tree: PyTree, stop: Callable[[Any], bool], first: PyTree, number: int
) -> list[Any]:
    leaves, other = jtu.tree_flatten(tree, is_leaf=stop)
    if other == treedef:
        return leaves
    try:
        return treedef.flatten_up_to(tree)
    except ValueError as error:
        where = first_difference(first, tree, stop)
        raise StructureError(
            f"combine() puts PyTrees of one structure together, but argument {number} differs from "
            f"the first: {where}. Pass the halves of one `partition`, or trees of equal structure."
        ) from error


def _select(
    pytree: PyTree, spec: PyTree, is_leaf: IsLeaf
) -> tuple[list[Any], list[bool], PyTreeDef]:
    """Flatten `pytree`, and say of each leaf whether the specification picks it."""
    leaves, treedef = jtu.tree_flatten(pytree, is_leaf=is_leaf)
    if spec is True or spec is False:
        return leaves, [spec] * len(leaves), treedef
    if jtu.all_leaves([spec]):
        return leaves, _mask(spec, leaves, pytree, (), (), is_leaf), treedef
    specs, spec_treedef = jtu.tree_flatten_with_path(spec)
    try:
        subtrees = spec_treedef.flatten_up_to(pytree)
    except ValueError as error:
        where = first_difference(spec, pytree, None)
        raise StructureError(
            "the structure of `filter_spec` must be a prefix of that of `pytree`, but it is not: "
            f"{where}. Build the specification from the tree itself: "
            "`jax.tree.map(lambda _: False, pytree)`, then `tree_at`."
        ) from error
    leaves, mask, structures = [], [], []
    for (path, entry), subtree in zip(specs, subtrees, strict=True):
        part, structure = jtu.tree_flatten(subtree, is_leaf=is_leaf)
        leaves += part
        mask += _mask(entry, part, subtree, path, path, is_leaf)
        structures.append(structure.unflatten([0] * len(part)))
    if is_leaf is not None:
        # `is_leaf` holds below the specification's own leaves only, which may lie deeper.
        treedef = jtu.tree_structure(spec_treedef.unflatten(structures))
    return leaves, mask, treedef


def _mask(
    entry: Any,
    leaves: list[Any],
    subtree: PyTree,
    path: tuple[Any, ...],
    spec_path: tuple[Any, ...],
    is_leaf: IsLeaf,
) -> list[bool]:
    if isinstance(entry, (bool, np.bool_)):
        return [bool(entry)] * len(leaves)
    if not callable(entry):
        raise StructureError(_bad_entry(entry, spec_path))
    mask = []
    for number, leaf in enumerate(leaves):
        answer = entry(leaf)
        if answer is not True and answer is not False:
            answer = _as_bool(answer, entry, subtree, path, number, is_leaf)
        mask.append(answer)
    return mask


def _as_bool(
    answer: Any,
    entry: Any,
    subtree: PyTree,
    path: tuple[Any, ...],
    number: int,
    is_leaf: IsLeaf,
) -> bool:
    try:
        return bool(answer)
    except (TypeError, ValueError, jax.errors.JAXTypeError) as error:
        below, _ = jtu.tree_flatten_with_path(subtree, is_leaf=is_leaf)[0][number]
        at = format_path((*path, *below), root="pytree")
        name = getattr(entry, "__name__", repr(entry))
        raise StructureError(
            f"a function in `filter_spec` must say True or False of each leaf, but `{name}` "
            f"answered {_describe(answer)} for the leaf `{at}`. "
            "Decide by type, shape or dtype, which are known at trace time, not by value."
        ) from error


def _bad_entry(entry: Any, path: tuple[Any, ...]) -> str:
    at = format_path(path, root="filter_spec")
    if isinstance(entry, _jax.Tracer):
        return (
            f"`{at}` is traced: `filter_spec` was passed through a transformation such as "
            "`jax.jit`, which made an array of its booleans. Close over it, or pass it as a "
            "static argument."
        )
    return (
        f"`filter_spec` must consist of booleans and functions only, but `{at}` is "
        f"{_describe(entry)}."
    )


def _describe(value: Any) -> str:
    if isinstance(value, _jax.Tracer):
        return f"a traced array ({value.aval.str_short()})"
    return f"{value!r} of type {type(value).__name__}"
