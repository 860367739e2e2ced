"""Where two trees differ in structure, in words for error messages."""

from collections.abc import Callable
from typing import Any

import jax.tree_util as jtu
from jaxtyping import PyTree

from ecliptic.tree._one_level import children_with_keys, tree_flatten_one_level
from ecliptic.tree._paths import KeyPath, format_path

IsLeaf = Callable[[Any], bool] | None


def first_difference(first: PyTree, other: PyTree, is_leaf: IsLeaf) -> str:
    """Say in words where the structure of `other` leaves that of its prefix `first`."""
    return _difference(first, other, is_leaf, ()) or "the static parts of two nodes differ"


def _difference(first: PyTree, other: PyTree, is_leaf: IsLeaf, path: KeyPath) -> str | None:
    children = None if is_leaf is not None and is_leaf(first) else children_with_keys(first)
    if children is None:
        return None
    at = format_path(path, root="tree")
    others = children_with_keys(other)
    if others is None or type(first) is not type(other):
        return f"at `{at}` one has {_kind(first)}, the other {_kind(other)}"
    keys = [format_path((key,)) for key, _ in children]
    other_keys = [format_path((key,)) for key, _ in others]
    if keys != other_keys:
        return f"at `{at}` one has the entries {keys}, the other {other_keys}"
    if tree_flatten_one_level(first)[1] != tree_flatten_one_level(other)[1]:
        return f"at `{at}` the static parts of two {type(first).__name__} differ"
    for (key, child), (_, other_child) in zip(children, others, strict=True):
        found = _difference(child, other_child, is_leaf, (*path, key))
        if found is not None:
            return found
    return None


def _kind(node: PyTree) -> str:
    if node is None:
        return "None"
    name = type(node).__name__
    return f"a leaf of type {name}" if jtu.all_leaves([node]) else f"a {name}"
