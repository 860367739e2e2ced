"""Names of the places in a tree: `model.layers[0].weight`.

JAX names a place by a tuple of keys. Here such a tuple has a text form which is at the same time
the Python expression that reads the place, can be parsed back, and can be matched by a pattern.

| key | text |
|---|---|
| `GetAttrKey("weight")` | `.weight` |
| `SequenceKey(0)` | `[0]` |
| `DictKey("a")` | `['a']` |
| `DictKey(1)` | `[(1)]`, for `[1]` is the sequence's |
| `FlattenedIndexKey(0)` | `[<flat index 0>]` |

`parse_path(format_path(path)) == path` for each path of these keys whose dictionary keys are
strings or other Python literals.
"""

import ast
import re
from collections.abc import Callable
from typing import Any

import jax.tree_util as jtu
from jaxtyping import PyTree

from ecliptic.errors import PathError

KeyPath = tuple[Any, ...]

_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_SEGMENT = re.compile(
    rf"\.(?P<quoted>{_STRING})"
    r"|\[(?P<index>\d+)\]"
    rf"|\[(?P<string>{_STRING})\]"
    r"|\[<flat index (?P<flat>\d+)>\]"
    r"|\.(?P<name>[^.\[\]()'\"\s]+)",
    re.DOTALL,
)


def format_path(path: KeyPath, root: str = "") -> str:
    """Write a key path as text.

    Args:
        path: a tuple of keys, as `jax.tree_util.tree_flatten_with_path` gives it.
        root: a name for the whole tree; by default the text starts with the first key.

    Returns:
        The text, for instance `layers[0].weight`.

    >>> from jax.tree_util import GetAttrKey, SequenceKey
    >>> path = (GetAttrKey("layers"), SequenceKey(0), GetAttrKey("weight"))
    >>> format_path(path), format_path(path, root="model")
    ('layers[0].weight', 'model.layers[0].weight')
    """
    text = "".join(map(_format_key, path))
    return root + text if root else text.removeprefix(".")


def _format_key(key: Any) -> str:
    match key:
        case jtu.GetAttrKey(name=name):
            return f".{name}" if name.isidentifier() else f".{name!r}"
        case jtu.SequenceKey(idx=index):
            return f"[{index}]"
        case jtu.DictKey(key=entry) if type(entry) is str:
            return f"[{entry!r}]"
        case jtu.DictKey(key=entry):
            text = repr(entry)
            return f"[{text}]" if type(entry) is tuple else f"[({text})]"
        case jtu.FlattenedIndexKey(key=index):
            return f"[<flat index {index}>]"
        case _:
            # Keys of other libraries write themselves; they can be read, not parsed.
            return str(key)


def parse_path(text: str, root: str = "") -> KeyPath:
    """Read the text that `format_path` writes.

    Args:
        text: a path, for instance `layers[0].weight`.
        root: the name that the text starts with, if any.

    Returns:
        The key path.

    Raises:
        PathError: the text is not a path, or does not start with `root`.

    >>> parse_path("layers[0].weight")
    (GetAttrKey(name='layers'), SequenceKey(idx=0), GetAttrKey(name='weight'))
    """
    rest = _without_root(text, root)
    keys = []
    position = 0
    while position < len(rest):
        key, position = _parse_key(rest, position, text)
        keys.append(key)
    return tuple(keys)


def _without_root(text: str, root: str) -> str:
    if not root:
        return text if not text or text[0] in ".[" else f".{text}"
    rest = text.removeprefix(root)
    if not text.startswith(root) or (rest and rest[0] not in ".["):
        raise PathError(f"the path {text!r} does not start with {root!r}.")
    return rest


def _parse_key(rest: str, position: int, text: str) -> tuple[Any, int]:
    if rest.startswith("[(", position):
        return _parse_literal(rest, position, text)
    found = _SEGMENT.match(rest, position)
    if found is None:
        raise PathError(
            f"cannot read the path {text!r} from {rest[position:]!r} on. A path is made of "
            "attributes `.name`, indices `[0]` and dictionary keys `['name']`, for instance "
            "`layers[0].weight`."
        )
    kind = str(found.lastgroup)
    try:
        return _KEY_OF_GROUP[kind](found[kind]), found.end()
    except TypeError as error:
        raise PathError(f"the path {text!r} has an index that is too large.") from error


_KEY_OF_GROUP: dict[str, Callable[[str], Any]] = {
    "quoted": lambda text: jtu.GetAttrKey(ast.literal_eval(text)),
    "name": jtu.GetAttrKey,
    "index": lambda text: jtu.SequenceKey(int(text)),
    "string": lambda text: jtu.DictKey(ast.literal_eval(text)),
    "flat": lambda text: jtu.FlattenedIndexKey(int(text)),
}


def _parse_literal(rest: str, position: int, text: str) -> tuple[Any, int]:
    # A literal may hold brackets of its own: take the shortest piece that is a literal.
    for end in (found.end() for found in re.finditer(r"\)\]", rest[position:])):
        try:
            value = ast.literal_eval(rest[position + 1 : position + end - 1])
        except (SyntaxError, ValueError):
            continue
        return jtu.DictKey(value), position + end
    raise PathError(
        f"cannot read the path {text!r}: the dictionary key that starts at {rest[position:]!r} is "
        "not a Python literal."
    )


def match_path(pattern: str, path: str | KeyPath) -> bool:
    """Say whether a path matches a pattern.

    A pattern is written like a path. `*` and `?` in a name stand for any characters and for one;
    `[*]` is any index or dictionary key; `**` is any number of keys of any kind, none included.

    Args:
        pattern: for instance `layers[*].weight` or `**.bias`.
        path: a key path, or its text without a root.

    Returns:
        Whether the whole path matches.

    Raises:
        PathError: the pattern or the path cannot be read.

    >>> match_path("layers[*].weight", "layers[0].weight")
    True
    >>> match_path("**.bias", "layers[0].weight")
    False
    """
    keys = parse_path(path) if isinstance(path, str) else path
    return _matches(_parse_pattern(pattern), keys)


_MANY_SEGMENT = re.compile(r"\.?\*\*(?=[.\[]|$)")


class _Many:
    """`**` in a pattern."""


_MANY = _Many()


def _parse_pattern(pattern: str) -> list[Any]:
    rest = _without_root(pattern, "")
    position = 0
    parts: list[Any] = []
    while position < len(rest):
        found = _MANY_SEGMENT.match(rest, position)
        if found is not None:
            parts.append(_MANY)
            position = found.end()
        elif rest.startswith("[*]", position):
            parts.append(None)
            position += 3
        else:
            key, position = _parse_key(rest, position, pattern)
            parts.append(key)
    return parts


def _matches(parts: list[Any], keys: KeyPath) -> bool:
    # reachable[i]: the parts so far can use up the first i keys.
    reachable = [True] + [False] * len(keys)
    for part in parts:
        if part is _MANY:
            first = reachable.index(True) if True in reachable else len(reachable)
            reachable = [i >= first for i in range(len(reachable))]
        else:
            steps = [
                before and _key_matches(part, key)
                for before, key in zip(reachable[:-1], keys, strict=True)
            ]
            reachable = [False, *steps]
    return reachable[-1]


def _key_matches(part: Any, key: Any) -> bool:
    if part is None:
        return not isinstance(key, jtu.GetAttrKey)
    if type(part) is not type(key):
        return False
    pattern, value = _content(part), _content(key)
    if isinstance(pattern, str) and isinstance(value, str):
        return _glob(pattern).fullmatch(value) is not None
    return pattern == value


def _content(key: Any) -> Any:
    match key:
        case jtu.GetAttrKey(name=content) | jtu.SequenceKey(idx=content):
            return content
        case jtu.DictKey(key=content) | jtu.FlattenedIndexKey(key=content):
            return content
        case _:
            return key


def _glob(pattern: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(c, re.escape(c)) for c in pattern), re.DOTALL)


def leaves_with_paths(
    pytree: PyTree, *, root: str = "", is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[str, Any]]:
    """List the leaves of a PyTree, each with its path.

    Args:
        pytree: any PyTree.
        root: a name for the whole tree, as in `format_path`.
        is_leaf: as in `jax.tree.map`: which nodes are leaves too.

    Returns:
        Pairs of path and leaf, in the order of `jax.tree.leaves`.

    >>> leaves_with_paths({"a": 1, "b": [2, 3]}, root="tree")
    [("tree['a']", 1), ("tree['b'][0]", 2), ("tree['b'][1]", 3)]
    """
    pairs, _ = jtu.tree_flatten_with_path(pytree, is_leaf=is_leaf)
    return [(format_path(path, root), leaf) for path, leaf in pairs]


def tree_paths(
    pytree: PyTree, *, root: str = "", is_leaf: Callable[[Any], bool] | None = None
) -> list[str]:
    """List the paths of the leaves of a PyTree.

    Args:
        pytree: any PyTree.
        root: a name for the whole tree, as in `format_path`.
        is_leaf: as in `jax.tree.map`: which nodes are leaves too.

    Returns:
        The paths, in the order of `jax.tree.leaves`.

    >>> tree_paths({"a": 1, "b": [2, 3]})
    ["['a']", "['b'][0]", "['b'][1]"]
    """
    return [path for path, _ in leaves_with_paths(pytree, root=root, is_leaf=is_leaf)]
