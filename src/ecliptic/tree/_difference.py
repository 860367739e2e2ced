"""Two trees side by side: where they differ in structure, and which leaves stand opposite."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Literal

import jax.tree_util as jtu
from jaxtyping import PyTree

from ecliptic.tree._format import tree_pformat
from ecliptic.tree._one_level import children_with_keys, tree_flatten_one_level
from ecliptic.tree._paths import KeyPath, format_path
from ecliptic.tree._static_parts import static_parts

IsLeaf = Callable[[Any], bool] | None


class _Absent:
    """Stands for what one of two trees does not have."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


@dataclasses.dataclass(frozen=True, slots=True)
class Opposite:
    """What two trees have at one place.

    Args:
        path: the place.
        kind: `"leaf"`: two leaves, which may be equal. All else is a difference in structure:
            `"node"`: nodes of two types, or a node and a leaf; `"keys"`: two nodes with other
            keys, followed by one `"child"` for each key that only one of them has; `"static field"`
            of two nodes; `"static"`: two nodes whose structure differs in something else.
        first: what the first tree has there.
        other: what the other has.
        owner: the class whose field it is, if it is one.
    """

    path: KeyPath
    kind: Literal["leaf", "node", "keys", "child", "static field", "static"]
    first: Any
    other: Any
    owner: type | None = None


def opposites(
    first: PyTree,
    other: PyTree,
    is_leaf: IsLeaf = None,
    *,
    prefix: bool = False,
    path: KeyPath = (),
) -> Iterator[Opposite]:
    """Go through two trees at the same time.

    Args:
        first: one tree.
        other: the other.
        is_leaf: which nodes of the first are leaves too.
        prefix: whether a leaf of the first may stand for a whole subtree of the other.
        path: where the two are in larger ones.

    Yields:
        Each difference in structure, and each two leaves, in order.
    """
    children = None if is_leaf is not None and is_leaf(first) else children_with_keys(first)
    others = None if children is None and prefix else children_with_keys(other)
    if children is None and others is None:
        yield Opposite(path, "leaf", first, other)
        return
    if children is None or others is None or type(first) is not type(other):
        yield Opposite(path, "node", first, other)
        return
    one = {format_path((key,)): (key, child) for key, child in children}
    two = {format_path((key,)): (key, child) for key, child in others}
    same_keys = list(one) == list(two)
    if not same_keys:
        yield Opposite(path, "keys", first, other)
    yield from _static(first, other, path, same_keys=same_keys)
    for text in {**one, **two}:
        key, child = one.get(text, (None, ABSENT))
        other_key, other_child = two.get(text, (None, ABSENT))
        below = (*path, key if child is not ABSENT else other_key)
        if child is ABSENT or other_child is ABSENT:
            yield Opposite(below, "child", child, other_child)
        else:
            yield from opposites(child, other_child, is_leaf, prefix=prefix, path=below)


def _static(first: Any, other: Any, path: KeyPath, *, same_keys: bool) -> Iterator[Opposite]:
    """The static parts that differ: by field as far as there are fields; else of the whole node."""
    if same_keys and same_structure(first, other):
        return
    one, two = static_parts(first), static_parts(other)
    found = False
    for name in {**one, **two}:
        mine, theirs = one.get(name, ABSENT), two.get(name, ABSENT)
        if not _equal(mine, theirs):
            found = True
            key = jtu.GetAttrKey(name)
            yield Opposite((*path, key), "static field", mine, theirs, type(first))
    if same_keys and not found:
        yield Opposite(path, "static", first, other)


def same_structure(first: Any, other: Any) -> bool:
    """Whether two nodes are equal, apart from their children."""
    return _equal(tree_flatten_one_level(first)[1], tree_flatten_one_level(other)[1])


def _equal(first: Any, other: Any) -> bool:
    try:
        return bool(first is other or first == other)
    except Exception:
        # An array in a static field, for one, is not equal to another: nothing can rely on it.
        return False


def first_difference(first: PyTree, other: PyTree, is_leaf: IsLeaf) -> str:
    """Say in words where the structure of `other` leaves that of its prefix `first`."""
    for found in opposites(first, other, is_leaf, prefix=True):
        if found.kind != "leaf":
            return _in_words(found)
    return "the static parts of two nodes differ"


def _in_words(found: Opposite) -> str:
    first, other = found.first, found.other
    if found.owner is not None:
        at = format_path(found.path[:-1], root="tree")
        return (
            f"at `{at}` the static parts of two {found.owner.__name__} differ: the field "
            f"`{found.path[-1].name}` is {show_value(first)} in one, {show_value(other)} in the "
            "other"
        )
    at = format_path(found.path, root="tree")
    if found.kind == "node":
        return f"at `{at}` one has {_kind(first)}, the other {_kind(other)}"
    if found.kind == "keys":
        return f"at `{at}` one has the entries {_keys(first)}, the other {_keys(other)}"
    return f"at `{at}` the static parts of two {type(first).__name__} differ"


def _keys(node: PyTree) -> list[str]:
    return [format_path((key,)) for key, _ in children_with_keys(node) or ()]


def _kind(node: PyTree) -> str:
    if node is None:
        return "None"
    name = type(node).__name__
    return f"a leaf of type {name}" if jtu.all_leaves([node]) else f"a {name}"


def show_value(value: Any, longest: int = 80) -> str:
    """A value in one line of text."""
    text = " ".join(tree_pformat(value, width=10_000, struct_as_array=True).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
