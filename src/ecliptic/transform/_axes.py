"""Axis specifications, and how one is laid over a tree.

A specification is a prefix of a tree. Its leaves are ints, None, functions from a leaf to an int or
None, and objects of the types that JAX knows as specifications of registered vmappable types. The
leaves of the tree are those of `jax.vmap`: an object of a registered vmappable type (a sparse
array, for instance) is one leaf, although elsewhere it is a PyTree.
"""

import dataclasses
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jax.tree_util import tree_flatten, tree_flatten_with_path, tree_leaves, tree_structure
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic.errors import ArgumentError, ArgumentTypeError, EclipticError, StructureError
from ecliptic.tree import array_type, format_path, is_array
from ecliptic.tree._one_level import children_with_keys

# None, an int, or an object that a vmappable type takes as a specification.
Axis = Any
KeyPath = tuple[Any, ...]
IsLeaf = Callable[[Any], bool] | None


@dataclasses.dataclass(frozen=True)
class if_array:
    """Maps arrays over one axis, and leaves everything else unmapped.

    `if_array(i)` returns `i` for an array and for an object of a type that is registered with JAX
    as vmappable, and None for everything else. It is a specification for `filter_vmap`, which
    calls it on each leaf.

    Args:
        axis: the axis.

    Raises:
        ArgumentTypeError: if `axis` is no integer.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> ec.if_array(1)(jnp.ones((2, 3))), ec.if_array(1)("relu")
        (1, None)
    """

    axis: int

    def __post_init__(self) -> None:
        try:
            axis = as_axis(self.axis)
        except TypeError:
            axis = None
        if axis is None:
            raise ArgumentTypeError(f"`if_array` takes an integer; got {self.axis!r}.")
        object.__setattr__(self, "axis", axis)

    def __call__(self, x: Any) -> int | None:
        """Returns `axis` for an array or a vmappable object, else None."""
        return self.axis if is_array(x) or _jax.is_vmappable(x) else None


def as_axis(value: Any) -> Axis:
    """`value` as `jax.vmap` wants it.

    Raises:
        TypeError: if it is no axis.
    """
    if value is None or type(value) is int:
        return value
    if isinstance(value, bool | _jax.Tracer):
        raise TypeError
    if type(value) in _jax.spec_types:
        return value
    return operator.index(value)


def _is_axis(value: Any) -> bool:
    try:
        as_axis(value)
    except TypeError:
        return False
    return True


def is_spec_leaf(node: Any) -> bool:
    """Where the tree of a specification ends: `None` is an axis."""
    return node is None or _jax.is_vmappable(node) or type(node) in _jax.spec_types


def is_single(spec: Any) -> bool:
    """Whether a specification is one leaf, which then holds for a whole tree."""
    if spec is None or type(spec) in (if_array, int):
        return True
    leaves = tree_leaves(spec, is_leaf=is_spec_leaf)
    return len(leaves) == 1 and leaves[0] is spec and not _jax.is_vmappable(spec)


def check_spec(option: str, spec: Any) -> None:
    """Refuses a specification with anything else than axes and functions in it."""
    for path, entry in tree_flatten_with_path(spec, is_leaf=lambda x: x is None)[0]:
        if _is_axis(entry) or callable(entry):
            continue
        at = format_path(path, root=option)
        if isinstance(entry, _jax.Tracer):
            raise ArgumentTypeError(
                f"`{at}` is traced: the specification went through a transformation such as "
                f"`jax.jit`, which made an array of its integers. Close over it, or use "
                f"`filter_jit`, which leaves integers alone."
            )
        raise ArgumentTypeError(
            f"`{option}` must consist of integers, None and functions that return one of these; "
            f"`{at}` is {entry!r}, of type `{type(entry).__qualname__}`."
        )


def explicit_axes(spec: Any) -> list[Axis]:
    """The axes that a specification names outright, after 0."""
    found: list[Axis] = [0]
    for entry in tree_leaves(spec, is_leaf=lambda node: type(node) in _jax.spec_types):
        entry = entry.axis if type(entry) is if_array else entry
        if _is_axis(entry) and as_axis(entry) not in found:
            found.append(as_axis(entry))
    return found


class Side:
    """The arguments, or the output, of a mapped function.

    Args:
        option: the option that gives the axes: `in_axes` or `out_axes`.
        value: the tree.
        path: writes a path into it as text.
    """

    __slots__ = ("_path", "option", "value")

    def __init__(self, option: str, value: PyTree, path: Callable[[KeyPath], str]) -> None:
        self.option = option
        self.value = value
        self._path = path

    def at(self, path: KeyPath) -> str:
        """The text of a path."""
        return self._path(path)

    def path_of_leaf(self, number: int) -> str:
        """The text of the path of a leaf. It takes time: for messages only."""
        return self.at(tree_flatten_with_path(self.value, is_leaf=_jax.is_vmappable)[0][number][0])


class Laid(NamedTuple):
    """A tree with one axis for each leaf."""

    leaves: list[Any]
    axes: list[Axis]
    treedef: Any


def lay(side: Side, spec: Any, is_leaf: IsLeaf) -> Laid:
    """Lays a specification over a tree.

    Args:
        side: the tree.
        spec: the specification.
        is_leaf: further nodes for which functions in the specification are called as a whole.

    Raises:
        StructureError: if the specification is no prefix of the tree.
        ArgumentError, ArgumentTypeError: if it does not make sense at some leaf.
    """
    leaves, treedef = tree_flatten(side.value, is_leaf=_jax.is_vmappable)
    if type(spec) is if_array and is_leaf is None:
        return Laid(leaves, list(map(_of_leaf(spec), leaves)), treedef)
    try:
        axes = [*_axes(side, spec, is_leaf, named=False)]
    except EclipticError:
        # Paths take time, so they are found when somebody wants to read them.
        axes = [*_axes(side, spec, is_leaf, named=True)]
    return Laid(leaves, axes, treedef)


def _of_leaf(spec: if_array) -> Callable[[Any], Axis]:
    axis, is_vmappable = spec.axis, _jax.is_vmappable
    return lambda leaf: axis if array_type(type(leaf)) or is_vmappable(leaf) else None


def _axes(side: Side, spec: Any, is_leaf: IsLeaf, *, named: bool) -> Iterator[Axis]:
    if is_single(spec):
        yield from _spread(side, spec, side.value, (), is_leaf, named)
        return
    entries, spec_treedef = _entries(spec, named)
    try:
        subtrees = spec_treedef.flatten_up_to(side.value)
    except (ValueError, TypeError) as error:
        raise StructureError(_not_a_prefix(side, spec)) from error
    for (path, entry), subtree in zip(entries, subtrees, strict=True):
        yield from _spread(side, entry, subtree, path, is_leaf, named)


def _entries(spec: Any, named: bool) -> tuple[list[tuple[KeyPath, Any]], Any]:
    if named:
        return tree_flatten_with_path(spec, is_leaf=is_spec_leaf)
    entries, treedef = tree_flatten(spec, is_leaf=is_spec_leaf)
    return [((), entry) for entry in entries], treedef


def _spread(
    side: Side, entry: Any, subtree: PyTree, path: KeyPath, is_leaf: IsLeaf, named: bool
) -> Iterator[Axis]:
    """The axes of the leaves of a subtree, of which one entry of the specification speaks."""
    if _jax.is_vmappable(entry):
        entry = _collapse(side, entry, subtree, path)
    if _is_axis(entry):
        count = tree_structure(subtree, is_leaf=_jax.is_vmappable).num_leaves
        yield from [as_axis(entry)] * count
    elif type(entry) is if_array and is_leaf is None:
        yield from map(_of_leaf(entry), tree_leaves(subtree, is_leaf=_jax.is_vmappable))
    else:
        for node_path, node in _nodes(subtree, path, is_leaf, named):
            axis = _ask(side, entry, node, node_path)
            yield from [axis] * tree_structure(node, is_leaf=_jax.is_vmappable).num_leaves


def _nodes(
    subtree: PyTree, path: KeyPath, is_leaf: IsLeaf, named: bool
) -> list[tuple[KeyPath, Any]]:
    if is_leaf is None:
        stop = _jax.is_vmappable
    else:

        def stop(node: Any) -> bool:
            return _jax.is_vmappable(node) or is_leaf(node)

    if named:
        pairs = tree_flatten_with_path(subtree, is_leaf=stop)[0]
        return [((*path, *below), node) for below, node in pairs]
    return [((), node) for node in tree_leaves(subtree, is_leaf=stop)]


def _ask(side: Side, function: Any, node: Any, path: KeyPath) -> Axis:
    """What a function in the specification says of a leaf."""
    axis = _answer(side, function, node, path)
    if axis is not None or type(function) is if_array or not _jax.is_vmappable(node):
        return axis
    # `lambda x: 0 if is_array(x) else None` was most likely written with arrays alone in mind.
    # To broadcast the object would be a wrong answer without a word; to guess would be, too.
    try:
        inner = {_answer(side, function, x, path) for x in tree_leaves(node) if is_array(x)}
    except Exception:
        return axis
    inner.discard(None)
    if not inner:
        return axis
    kind = type(node).__name__
    raise ArgumentError(
        f"The function in `{side.option}` returned None for the `{kind}` at `{side.at(path)}`, but "
        f"{sorted(inner, key=repr)} for arrays inside it. {registered(kind)} So the function is "
        f"called on the whole object. Return an axis for it (as `if_array(i)` does), or write None "
        f"at this place of `{side.option}` to leave it unmapped."
    )


def _answer(side: Side, function: Any, node: Any, path: KeyPath) -> Axis:
    answer = function(node)
    try:
        return as_axis(answer)
    except TypeError:
        raise ArgumentTypeError(
            f"A function in `{side.option}` returned {answer!r}, of type "
            f"`{type(answer).__qualname__}`, for `{side.at(path)}`. It must return an integer or "
            f"None."
        ) from None


def registered(kind: str) -> str:
    """The sentence that explains why a tree is a leaf."""
    return (
        f"`{kind}` is registered with JAX as a vmappable type: the object is mapped as a single "
        f"leaf, and its type decides which of its arrays are batched."
    )


def _collapse(side: Side, spec: Any, value: Any, path: KeyPath) -> Axis:
    """The one axis that a specification in the form of a vmappable object stands for.

    `jax.tree.map(lambda x: 0, args)` makes such specifications. They are taken if they say the
    same of every array; what else they may say cannot be told to JAX.
    """
    kind = type(value).__name__
    if type(spec) is not type(value):
        raise StructureError(
            f"`{side.option}` has a `{type(spec).__name__}` at `{side.at(path)}`, where the value "
            f"is a `{kind}`."
        )
    entries, treedef = tree_flatten(spec, is_leaf=lambda x: x is None)
    try:
        parts = treedef.flatten_up_to(value)
    except ValueError as error:
        raise StructureError(
            f"`{side.option}` has a `{kind}` at `{side.at(path)}` whose structure is not that of "
            f"the value there. {_one_axis(side, kind, path)}"
        ) from error
    found: list[Axis] = []
    for entry, part in zip(entries, parts, strict=True):
        for leaf in tree_leaves(part):
            axis = as_axis(entry) if _is_axis(entry) else _answer(side, entry, leaf, path)
            if (is_array(leaf) or axis is not None) and axis not in found:
                found.append(axis)
    if len(found) > 1:
        raise ArgumentError(
            f"`{side.option}` goes below the `{kind}` at `{side.at(path)}`, and gives different "
            f"axes ({', '.join(map(repr, found))}) to the arrays inside it. {registered(kind)} "
            f"{_one_axis(side, kind, path)}"
        )
    return found[0] if found else None


def _one_axis(side: Side, kind: str, path: KeyPath) -> str:
    return f"Give one axis (an integer or None) for the whole `{kind}` at `{side.at(path)}`."


def _not_a_prefix(side: Side, spec: Any) -> str:
    what = "arguments" if side.option == "in_axes" else "output"
    where = _mismatch(side, spec, side.value, ()) or "static fields differ"
    message = f"`{side.option}` must be a tree prefix of the {what}, but it is not: {where}."
    values = tree_leaves(side.value, is_leaf=_jax.is_vmappable)
    for kind in sorted({type(x).__name__ for x in values if _jax.is_vmappable(x)}):
        message += f" {registered(kind)} `{side.option}` must not go below it."
    return message


def _mismatch(side: Side, spec: Any, value: Any, path: KeyPath) -> str | None:
    children = None if is_spec_leaf(spec) else children_with_keys(spec)
    if children is None:
        return None
    others = None if _jax.is_vmappable(value) else children_with_keys(value)
    if others is None or type(spec) is not type(value):
        return (
            f"at `{side.at(path)}` the specification has a `{type(spec).__name__}`, and the value "
            f"is of type `{type(value).__name__}`"
        )
    keys, other_keys = ([format_path((key,)) for key, _ in pairs] for pairs in (children, others))
    if keys != other_keys:
        return (
            f"at `{side.at(path)}` the specification has the entries {keys}, and the value has "
            f"{other_keys}"
        )
    for (key, child), (_, other) in zip(children, others, strict=True):
        found = _mismatch(side, child, other, (*path, key))
        if found is not None:
            return found
    return None
