"""Replacing parts of a tree, out of place.

`where` says which nodes are meant by returning them, so nodes must be told apart by identity. In
the tree as it is they cannot: small integers, `()` and `(1,)` are shared by the interpreter, and a
user may put one array in two places. So `where` is shown a *marked* copy of the tree, in which
each leaf is a placeholder of its own. What it returns for the tree itself is then compared, for a
`where` that looks at leaves (their shapes, their types) may choose differently there.
"""

import dataclasses
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax.tree_util as jtu
from jaxtyping import PyTree

from ecliptic.errors import SelectionError, SelectionTypeError
from ecliptic.tree._one_level import children_with_keys
from ecliptic.tree._paths import format_path

_T = TypeVar("_T")

IsLeaf = Callable[[Any], bool]


class _NotGiven:
    def __repr__(self) -> str:
        return "<not given>"


_not_given: Any = _NotGiven()


def tree_at(
    where: Callable[[_T], Any | Sequence[Any]],
    pytree: _T,
    replace: Any | Sequence[Any] = _not_given,
    replace_fn: Callable[[Any], Any] = _not_given,
    is_leaf: Callable[[Any], bool] | None = None,
) -> _T:
    """Return a PyTree with some of its nodes replaced.

    The tree is flattened and built again, so no constructor runs, and any PyTree will do.

    Args:
        where: picks a node of the tree, or a sequence of nodes, by returning it. It is called more
            than once, also with a tree that has placeholders in place of its leaves. It may look
            at the leaves, if what it then picks appears only once in the tree.
        pytree: any PyTree.
        replace: stands in place of the node; for a sequence of nodes, a sequence as long.
        replace_fn: is called with each node that was picked, and returns what stands in its place.
            Exactly one of `replace` and `replace_fn` has to be given.
        is_leaf: as in `jax.tree.map`: which nodes are leaves too. With
            `is_leaf=lambda x: x is None`, any `None` can be replaced; without, one that is the
            only one of the tree.

    Returns:
        A PyTree like `pytree`, in which what `where` picked is replaced.

    Raises:
        SelectionError: `where` does not pick nodes of the tree, or there are not as many
            replacements as nodes.

    >>> tree_at(lambda tree: tree["b"][0], {"a": 1, "b": [2, 3]}, replace=4)
    {'a': 1, 'b': [4, 3]}
    >>> tree_at(lambda tree: tree["b"], {"a": 1, "b": [2, 3]}, replace_fn=sum)
    {'a': 1, 'b': 5}
    """
    if (replace is _not_given) is (replace_fn is _not_given):
        got = "neither" if replace is _not_given else "both"
        raise SelectionError(
            f"tree_at() takes either `replace` or `replace_fn`, and got {got} of them."
        )
    try:
        selection = _select(where, pytree, is_leaf)
    except _PickedNoneError:
        # If there is just one None, it is clear which is meant, and it may count as a leaf.
        is_leaf = _or_none(is_leaf)
        if sum(leaf is None for leaf in jtu.tree_leaves(pytree, is_leaf=is_leaf)) != 1:
            raise
        selection = _select(where, pytree, is_leaf)
    if replace_fn is _not_given:
        values = _values(selection, replace)
    else:
        nodes = {id(node): node for node in selection.nodes}
        values = {key: replace_fn(_restore(node)) for key, node in nodes.items()}
    leaves, treedef = jtu.tree_flatten(selection.tree, is_leaf=_stop(values, is_leaf))
    return treedef.unflatten(
        [values[id(leaf)] if id(leaf) in values else _restore(leaf) for leaf in leaves]
    )


class _Selection(NamedTuple):
    """What `where` picked.

    Args:
        tree: the tree that was searched: the user's, or the marked copy.
        nodes: nodes of that tree.
        single: whether `where` returned one node, not a sequence.
    """

    tree: PyTree
    nodes: list[Any]
    single: bool


class _LeafReadError(SelectionError, AttributeError):
    """`where` looked into a placeholder. An AttributeError, so that `hasattr` works."""


class _NotANodeError(SelectionError, TypeError):
    """`where` picked something else than nodes. A TypeError, as it is elsewhere in the field."""


class _PickedNoneError(_NotANodeError):
    """`where` picked a None."""


class _Placeholder:
    """Stands for one leaf."""

    __slots__ = ("_marked_leaf",)

    def __init__(self, leaf: Any) -> None:
        self._marked_leaf = leaf

    def __getattr__(self, name: str) -> Any:
        raise _LeafReadError(f"`where` read the attribute {name!r} of a leaf.")

    def __bool__(self) -> bool:
        raise _LeafReadError("`where` took the truth value of a leaf.")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        raise _LeafReadError("`where` compared a leaf.")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<leaf {self._marked_leaf!r}>"


class _EmptyTuple(tuple):
    """Stands for one `()`, of which the interpreter has just one; JAX takes it for a leaf."""

    __slots__ = ()


def _is_empty_tuple(node: Any) -> bool:
    return type(node) is tuple and not node


def _mark(leaf: Any) -> Any:
    return _EmptyTuple() if _is_empty_tuple(leaf) else _Placeholder(leaf)


def _restore(node: PyTree) -> PyTree:
    """Put the leaves back in place of the placeholders below `node`."""
    if type(node) is _Placeholder:
        return node._marked_leaf
    leaves, treedef = jtu.tree_flatten(node)
    if not any(type(leaf) in (_Placeholder, _EmptyTuple) for leaf in leaves):
        return node
    return treedef.unflatten(
        [
            leaf._marked_leaf if type(leaf) is _Placeholder else () if type(leaf) is _EmptyTuple
            else leaf
            for leaf in leaves
        ]
    )  # fmt: skip


def _stop(ids: Any, is_leaf: IsLeaf | None) -> IsLeaf:
    if is_leaf is None:
        return lambda node: id(node) in ids
    return lambda node: id(node) in ids or is_leaf(node)


def _select(where: Callable[[PyTree], Any], pytree: PyTree, is_leaf: IsLeaf | None) -> _Selection:
    def is_marked(node: Any) -> bool:
        return _is_empty_tuple(node) or (is_leaf is not None and is_leaf(node))

    leaves, treedef = jtu.tree_flatten(pytree, is_leaf=is_marked)
    try:
        marked = treedef.unflatten([_mark(leaf) for leaf in leaves])
        picked = where(marked)
    except Exception as error:
        # Some classes refuse placeholders, and `where` may look at leaves. If the mistake is
        # another one, then the same exception comes again.
        return _locate_by_value(where(pytree), pytree, is_leaf, cause=error)
    original = where(pytree)
    if _agree(picked, original) or not any(
        _count(pytree, _as_nodes(original, pytree, is_leaf)[0], is_leaf).values()
    ):
        return _locate(picked, marked, pytree)
    return _locate_by_value(original, pytree, is_leaf, cause=None)


def _agree(picked: Any, original: Any) -> bool:
    """Whether `where` picked the same in the marked tree as in the tree itself."""
    restored = jtu.tree_leaves(_restore(picked), is_leaf=_is_none)
    leaves = jtu.tree_leaves(original, is_leaf=_is_none)
    return len(restored) == len(leaves) and all(map(operator.is_, restored, leaves))


def _is_none(node: Any) -> bool:
    return node is None


def _or_none(is_leaf: IsLeaf | None) -> IsLeaf:
    if is_leaf is None:
        return _is_none
    return lambda node: node is None or is_leaf(node)


def _count(tree: PyTree, nodes: Sequence[Any], is_leaf: IsLeaf | None) -> Counter[int]:
    """Count how often each of the nodes is met in the tree."""
    ids = {id(node) for node in nodes}
    met: Counter[int] = Counter()
    for leaf in jtu.tree_leaves(tree, is_leaf=_stop(ids, is_leaf)):
        if id(leaf) in ids:
            met[id(leaf)] += 1
    return met


def _as_nodes(picked: Any, tree: PyTree, is_leaf: IsLeaf | None) -> tuple[list[Any], bool]:
    """Tell a node from a sequence of nodes, which a node may be too."""
    if isinstance(picked, (list, tuple)) and not _count(tree, [picked], is_leaf):
        return list(picked), False
    return [picked], True


def _locate(picked: Any, marked: PyTree, pytree: PyTree) -> _Selection:
    nodes, single = _as_nodes(picked, marked, None)
    met = _count(marked, nodes, None)
    for number, node in enumerate(nodes):
        if node is None or met[id(node)] != 1:
            name = "`where`" if single else f"`where`, in element {number},"
            kind = _PickedNoneError if node is None else _NotANodeError
            raise kind(_why_not(node, name, met[id(node)], marked, pytree))
    return _Selection(marked, nodes, single)


_SHARED = (int, float, complex, str, bytes, type(None))


def _locate_by_value(
    picked: Any, pytree: PyTree, is_leaf: IsLeaf | None, cause: Exception | None
) -> _Selection:
    nodes, single = _as_nodes(picked, pytree, is_leaf)
    met = _count(pytree, nodes, is_leaf)
    for node in nodes:
        if not met[id(node)]:
            kind = _PickedNoneError if node is None else _NotANodeError
            raise kind(_why_not(node, "`where`", 0, pytree, pytree)) from cause
        if met[id(node)] > 1 or isinstance(node, _SHARED) or _is_empty_tuple(node):
            raise SelectionError(
                f"`where` looks at the leaves, and picks {_describe(node)}, of which there may be "
                "more than one in the tree, so that it is unclear which is meant. Pick it by its "
                "place in the tree, without looking at leaves."
            ) from cause
    return _Selection(pytree, nodes, single)


def _why_not(node: Any, name: str, met: int, tree: PyTree, pytree: PyTree) -> str:
    """Say why this cannot be replaced."""
    if node is None:
        return (
            f"{name} picked None, which is no node of a PyTree, and there is not just one in it. "
            "To replace a None, let it count as a leaf: `tree_at(..., is_leaf=lambda x: x is "
            "None)`."
        )
    if met > 1:
        return (
            f"{name} picked {_describe(node)}, which is in several places of the tree. Replace a "
            "node that contains just one of them."
        )
    if _count(tree, [node], None):
        return f"{name} picked a node that lies within another one that it picked."
    value = _restore(node)
    static = _static_places(pytree, value)
    if static:
        places = " and ".join(f"`{path}`" for path, _, _ in static)
        path, owner, field = static[0]
        return (
            f"{name} picked {_describe(value)}, which is no node of the PyTree: it is the static "
            f"field {places} of {owner}, and so a part of the tree's structure. Replace it by "
            f"`dataclasses.replace({path.rpartition('.')[0]}, {field}=...)`."
        )
    return (
        f"{name} picked {_describe(value)}, which is no node of the PyTree. It must return nodes "
        "of the tree that it is given, as in `lambda tree: tree.weight`, or a list or tuple of "
        "them, and not something that it computes."
    )


def _static_places(pytree: PyTree, value: Any) -> list[tuple[str, str, str]]:
    """Find the fields of dataclasses in the tree that hold `value` and are no children."""
    found = []

    def visit(node: Any, path: tuple[Any, ...]) -> None:
        children = children_with_keys(node) or []
        if dataclasses.is_dataclass(node) and not isinstance(node, type):
            names = {getattr(key, "name", None) for key, _ in children}
            for field in dataclasses.fields(node):
                held = getattr(node, field.name, _not_given)
                if held is value and field.name not in names:
                    at = format_path((*path, jtu.GetAttrKey(field.name)), root="tree")
                    found.append((at, type(node).__name__, field.name))
        for key, child in children:
            visit(child, (*path, key))

    visit(pytree, ())
    return found


def _describe(value: Any) -> str:
    text = repr(value)
    kind = f"a value of type {type(value).__name__}"
    return kind if len(text) > 40 or "\n" in text else f"{text} ({kind})"


def _values(selection: _Selection, replace: Any) -> dict[int, Any]:
    """Pair the nodes, by identity, with what is to stand in their places."""
    nodes = selection.nodes
    if selection.single:
        return {id(nodes[0]): replace}
    try:
        replacements = list(replace)
    except TypeError:
        replacements = None
    if replacements is None or len(replacements) != len(nodes):
        got = "no sequence" if replacements is None else f"{len(replacements)} replacements"
        raise (SelectionTypeError if replacements is None else SelectionError)(
            f"`where` picked a sequence of {len(nodes)} nodes, so `replace` must be a sequence as "
            f"long, but it is {got}: {_describe(replace)}."
        )
    values: dict[int, Any] = {}
    for node, value in zip(nodes, replacements, strict=True):
        if values.setdefault(id(node), value) is not value:
            raise SelectionError(
                f"`where` picked {_describe(_restore(node))} twice, with different replacements."
            )
    return values
