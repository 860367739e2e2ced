"""Going through a tree, static fields included."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from jax.tree_util import tree_leaves

from ecliptic.module import is_module
from ecliptic.tree import format_path
from ecliptic.tree._one_level import children_with_keys


def children(node: Any) -> dict[str, Any] | None:
    """The children of a node by their keys as text; None for a leaf."""
    found = children_with_keys(node)
    if found is None:
        return None
    return {format_path((key,), ".")[1:]: child for key, child in found}


@dataclasses.dataclass(frozen=True)
class Place:
    """A leaf of a tree, or a value in a static field.

    Args:
        path: where it is.
        value: what is there.
        owner: the class of the innermost Module around it; None if there is none.
        static: whether it is in a static field, and so no leaf.
    """

    path: str
    value: Any
    owner: type | None
    static: bool


def places(node: Any, path: str, owner: type | None = None) -> Iterator[Place]:
    """All leaves of a tree, and what is in the static fields of its Modules."""
    found = children(node)
    if found is None:
        yield Place(path, node, owner, static=False)
        return
    if is_module(node):
        owner = type(node)
        for name in owner.__class_spec__.static:
            for value in tree_leaves(getattr(node, name, None)):
                yield Place(f"{path}.{name}", value, owner, static=True)
    for key, child in found.items():
        yield from places(child, f"{path}{key}", owner)
