"""Nodes that are used up, and their way into a transformed function and back.

A node of some types is good for one use: a `State` is out of date once a newer one was made of it.
Inside of a transformation a function sees another object than its caller holds, since JAX takes the
tree apart and puts it together again around tracers. A `Passage` ties the two together: when the
object inside was used up, the one outside is too, as soon as the transformation has succeeded.

A type takes part by deriving from `Expendable`, by asking for `current_passage` where JAX rebuilds
it, and by telling that passage when it is used up. A plain `treedef.unflatten` is no passage: what
it makes is a copy, independent of the original.
"""

import threading
import weakref
from typing import Any

import jax.tree_util as jtu


class Expendable:
    """Base class of the nodes that can be used up."""

    __slots__ = ("__weakref__",)

    @property
    def is_used(self) -> bool:
        """Whether the node was used up."""
        raise NotImplementedError

    def use_up(self) -> None:
        """Make the node unusable; does nothing if it is already."""
        raise NotImplementedError


class _Way(threading.local):
    passage: "Passage | None" = None


_way = _Way()


class Passage:
    """The way of one tree into a function that is about to be traced.

    >>> import jax
    >>> leaves, treedef = jax.tree.flatten([1, 2])
    >>> passage = Passage()
    >>> passage.unflatten(treedef, leaves)
    [1, 2]
    >>> passage.finish()
    """

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: list[weakref.ref[Expendable]] = []

    def unflatten(self, treedef: Any, leaves: Any) -> Any:
        """Rebuild the tree for the inside, with its expendable nodes tied to those outside."""
        before = _way.passage
        _way.passage = self
        try:
            return treedef.unflatten(leaves)
        finally:
            _way.passage = before

    def finish(self) -> None:
        """Use up outside what was used up inside. Not to be called if the function failed."""
        for outside in self._used:
            node = outside()
            if node is not None:
                node.use_up()
        self._used.clear()

    def report_used(self, outside: "weakref.ref[Expendable]") -> None:
        """Note that the counterpart of a node was used up inside."""
        self._used.append(outside)

    @property
    def has_used(self) -> bool:
        """Whether anything was used up inside so far."""
        return bool(self._used)


def current_passage() -> Passage | None:
    """The passage for which a tree is being rebuilt in this thread, if one is."""
    return _way.passage


def is_expendable(node: Any) -> bool:
    """Whether a node is of a type that can be used up."""
    return isinstance(node, Expendable)


def find_used(tree: Any) -> list[jtu.KeyPath]:
    """The paths of the nodes in a tree that were used up."""
    found = jtu.tree_flatten_with_path(tree, is_leaf=is_expendable)[0]
    return [path for path, node in found if isinstance(node, Expendable) and node.is_used]


def use_up_at(tree: Any, paths: list[jtu.KeyPath]) -> None:
    """Use up the nodes at these paths, as `find_used` gives them for a tree of this structure."""
    rest = None
    for path in paths:
        try:
            node = _follow(tree, path)
        except (LookupError, AttributeError, TypeError):
            # A key of a class that flattens in its own way: look through the tree.
            if rest is None:
                rest = dict(jtu.tree_flatten_with_path(tree, is_leaf=is_expendable)[0])
            node = rest.get(path)
        if isinstance(node, Expendable):
            node.use_up()


def _follow(node: Any, path: jtu.KeyPath) -> Any:
    for key in path:
        match key:
            case jtu.SequenceKey(idx=index):
                node = node[index]
            case jtu.GetAttrKey(name=name):
                node = getattr(node, name)
            case jtu.DictKey(key=entry):
                node = node[entry]
            case _:
                raise LookupError
    return node
