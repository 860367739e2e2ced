"""`tree_diff`: where two trees differ, by path."""

from collections.abc import Callable, Iterator
from typing import Any

import jax.tree_util as jtu
from jaxtyping import PyTree

from ecliptic.tree import is_array
from ecliptic.tree._difference import ABSENT, show_value
from ecliptic.tree._differences import Difference, differences
from ecliptic.tree._distance import Closeness, Distance
from ecliptic.view._html import table

# How many differences are shown; the others can be read from the object.
_SHOWN = 40


class TreeDiff:
    """What [`tree_diff`][] returns: a sequence of [`Difference`][], false if it is empty.

    `str` gives one line for each, up to forty; a notebook shows a table of all.

    !!! Example

        >>> from ecliptic.view import tree_diff
        >>> diff = tree_diff([1, 2], [1, 3])
        >>> len(diff), bool(diff), diff[0].path
        (1, True, 'tree[1]')
        >>> print(diff)
        1 difference (first → second):
          tree[1] (value): 2 → 3
    """

    def __init__(self, found: list[Difference]) -> None:
        self._found = found

    def __iter__(self) -> Iterator[Difference]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, index: int) -> Difference:
        return self._found[index]

    def __str__(self) -> str:
        if not self._found:
            return "no differences"
        number = f"{len(self)} difference{'s' if len(self) > 1 else ''}"
        lines = [f"  {d.path} ({d.kind}): {_in_words(d)}" for d in self._found[:_SHOWN]]
        if len(self) > _SHOWN:
            lines.append(f"  … and {len(self) - _SHOWN} more")
        return "\n".join([f"{number} (first → second):", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [[d.path, d.kind, _in_words(d)] for d in self._found]
        return table(["path", "kind", "first → second"], rows) if rows else "no differences"


def tree_diff(
    first: PyTree,
    second: PyTree,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    equal_nan: bool = False,
    typematch: bool = False,
    weak_type: bool = True,
    values: bool = True,
    root: str = "tree",
    is_leaf: Callable[[Any], bool] | None = None,
) -> TreeDiff:
    """Find where two PyTrees differ: in structure, static fields, types of arrays, and elements.

    As [`ecliptic.tree_equal`][], it takes an array of JAX for equal to one of NumPy, and a NaN for
    equal to nothing; other than that, it tells a weakly typed array from one that is not, since
    `jax.jit` does.

    Args:
        first: a PyTree.
        second: another.
        rtol: relative tolerance for elements of inexact arrays, as in `numpy.isclose`.
        atol: absolute tolerance for them.
        equal_nan: whether a NaN is equal to a NaN at the same place.
        typematch: whether the types of leaves have to match too: then `1` and `1.0` differ, and so
            do arrays of JAX and of NumPy.
        weak_type: whether it is a difference that only one of two arrays is weakly typed.
        values: whether to compare the elements of arrays, for which they are copied from their
            devices. Without, arrays may also be traced, or given by a `jax.ShapeDtypeStruct`.
        root: the name of the trees in paths.
        is_leaf: as in `jax.tree.map`: which nodes of `first` are leaves too.

    Returns:
        A sequence of [`Difference`][], which prints as one line each, and is false if there is
        none. In a test, `assert not diff, str(diff)` shows all of it; without `str`, it is cut.

    Raises:
        LeafError: the elements of an array would have to be compared, and cannot be read.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic.view import tree_diff
        >>> before = {"name": "a", "w": jnp.array([1.0, 2.0, 3.0]), "b": jnp.ones(2)}
        >>> after = {"name": "b", "w": jnp.array([1.0, 2.5, 3.0]), "b": jnp.ones(4)}
        >>> print(tree_diff(before, after))
        3 differences (first → second):
          tree['b'] (shape): f32[2] → f32[4]
          tree['name'] (value): 'a' → 'b'
          tree['w'] (value): 1 of 3 elements, by at most 0.5 at [1], where 2.0 → 2.5
        >>> bool(tree_diff(before, before))
        False
    """
    closeness = Closeness(float(rtol), float(atol), equal_nan, typematch, weak_type, values)
    return TreeDiff(list(differences(first, second, closeness, root=root, is_leaf=is_leaf)))


def _in_words(difference: Difference) -> str:
    first, other = difference.first, difference.other
    if difference.distance is not None:
        return _distance(difference.distance)
    if difference.kind == "type":
        return f"{_qualified(first)} → {_qualified(other)}"
    texts = _show(first), _show(other)
    if texts[0] == texts[1] and difference.kind in ("value", "static"):
        return f"{texts[0]} → another one that looks alike"
    if texts[0] == texts[1] and difference.kind == "structure":
        return f"two {type(first).__name__} that are not equal as structure"
    return f"{texts[0]} → {texts[1]}"


def _show(value: Any) -> str:
    if value is ABSENT or value is None or jtu.all_leaves([value]):
        return show_value(value)
    arrays = sum(map(is_array, jtu.tree_leaves(value)))
    return f"a {type(value).__name__} with {arrays} array{'' if arrays == 1 else 's'}"


def _qualified(value: Any) -> str:
    cls = type(value)
    return f"{cls.__module__}.{cls.__qualname__}"


def _distance(distance: Distance) -> str:
    parts = [] if distance.size == 1 else [f"{distance.count} of {distance.size} elements"]
    if distance.elements is not None:
        one, two = distance.elements
        by = f"{distance.max_abs:.6g}"
        place = f"by at most {by} at {list(distance.index or ())}, where {one} → {two}"
        parts.append(f"{one} → {two}, by {by}" if distance.size == 1 else place)
    if any(distance.nan):
        parts.append(f"NaN: {distance.nan[0]} → {distance.nan[1]}")
    return ", ".join(parts)
