"""Which leaves to save or to load, and under which names."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax.tree_util as jtu
from jaxtyping import PyTree

from ecliptic.errors import SerialisationError
from ecliptic.tree import filter, format_path, match_path, parse_path

FilterSpec = PyTree[bool | Callable[[Any], bool]] | str
Rename = Mapping[str, str | None] | Callable[[str], str | None] | None


class _Left:
    """Stands where a leaf was left out."""


_LEFT = _Left()


def picked(paths: list[str], tree: PyTree, filter_spec: Any, is_leaf: Any) -> list[bool]:
    """Which leaves of a tree a specification or a pattern picks, in order."""
    if filter_spec is True:
        return [True] * len(paths)
    if isinstance(filter_spec, str):
        return [match_path(filter_spec, path) for path in paths]
    kept = filter(tree, filter_spec, replace=_LEFT, is_leaf=is_leaf)
    leaves = jtu.tree_leaves(kept, is_leaf=lambda x: x is _LEFT or (is_leaf and is_leaf(x)))
    return [leaf is not _LEFT for leaf in leaves]


def flatten(tree: PyTree, is_leaf: Any) -> tuple[list[str], list[Any], Any]:
    """The paths and the leaves of a tree, and its structure.

    Raises:
        SerialisationError: two leaves have the same path.
    """
    pairs, treedef = jtu.tree_flatten_with_path(tree, is_leaf=is_leaf)
    paths = [format_path(path) for path, _ in pairs]
    if len(set(paths)) < len(paths):
        twice = next(path for i, path in enumerate(paths) if path in paths[:i])
        raise SerialisationError(
            f"Two leaves have the path {twice!r}. Names are made of the keys of each node: give "
            "the type of the node above it keys that differ (`register_pytree_with_keys`)."
        )
    return paths, [leaf for _, leaf in pairs], treedef


def renamed(names: Iterable[str], rename: Rename) -> dict[str, str]:
    """The names in a file by what they are to be called.

    Args:
        names: those in the file.
        rename: a function from a name to a path, or a mapping of names or of beginnings of names.
            `None` for a path leaves the leaf out.

    Raises:
        SerialisationError: two names get the same path, or the mapping has a name for nothing.
    """
    names = list(names)
    function = _as_function(names, rename)
    by_path: dict[str, str] = {}
    for name in names:
        path = function(name)
        if path is None:
            continue
        if path in by_path:
            raise SerialisationError(
                f"`rename` makes {path!r} both of {by_path[path]!r} and of {name!r}."
            )
        by_path[path] = name
    return by_path


def _as_function(names: list[str], rename: Rename) -> Callable[[str], str | None]:
    if rename is None:
        return lambda name: name
    if callable(rename):
        return rename
    unused = set(rename)

    def apply(name: str) -> str | None:
        for end in _ends(name):
            if name[:end] in rename:
                unused.discard(name[:end])
                new = rename[name[:end]]
                return None if new is None else _joined(new, name[end:])
        return name

    result = {name: apply(name) for name in names}
    if unused:
        raise SerialisationError(
            f"`rename` has names that no leaf in the file has or begins with: "
            f"{', '.join(map(repr, sorted(unused)))}. The file has {_some(names)}."
        )
    return result.__getitem__


def _ends(name: str) -> list[int]:
    # Where a beginning of a name may end: before each key, the longest first.
    inner = [i for i in range(1, len(name)) if name[i] in ".["]
    return [len(name), *reversed(inner), *([0] if name else [])]


def _joined(start: str, rest: str) -> str:
    if not start:
        return rest.removeprefix(".")
    return start + rest if not rest or rest[0] in ".[" else f"{start}.{rest}"


def _some(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:10]))
    return f"{shown}, … ({len(names)} in all)" if len(names) > 10 else shown or "none"


def nested(values: Mapping[str, Any]) -> Any:
    """A nested dictionary of values that are named by paths."""
    result: dict[Any, Any] = {}
    for name, value in values.items():
        keys = _keys(name)
        if not keys:
            return value
        node = result
        for key in keys[:-1]:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                return dict(values)
        if keys[-1] in node:
            return dict(values)
        node[keys[-1]] = value
    return result


def _keys(name: str) -> list[Any]:
    try:
        keys = parse_path(name)
    except ValueError:
        return [name]
    return [getattr(key, "name", getattr(key, "idx", getattr(key, "key", key))) for key in keys]
