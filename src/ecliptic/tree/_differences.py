"""Every difference of two trees, by path."""

import dataclasses
from collections.abc import Iterator
from typing import Any, Literal

from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic.errors import LeafError
from ecliptic.tree._difference import ABSENT, IsLeaf, Opposite, opposites
from ecliptic.tree._distance import Closeness, Distance, LeafKind, leaf_kinds, measure
from ecliptic.tree._paths import format_path
from ecliptic.tree._predicates import is_array

DifferenceKind = Literal["structure", "missing", "added", "static"] | LeafKind

_STRUCTURE: dict[str, DifferenceKind] = {
    "node": "structure",
    "static": "structure",
    "static field": "static",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """One difference between two trees.

    Args:
        path: the place, as an expression in the name of the tree.
        kind: what differs: `"structure"` (nodes of two types, or a node and a leaf), `"missing"`
            (the other tree has nothing there), `"added"` (the first has nothing), `"static"` (a
            static field), `"array or not"`, `"type"`, `"shape"`, `"dtype"`, `"weak type"`, `"NaN"`
            (only NaNs differ), `"value"` (other elements, or another leaf that is no array).
        first: what the first tree has there.
        other: what the other has.
        distance: how far two arrays are apart, if their elements differ.

    !!! Example

        >>> from ecliptic.view import tree_diff
        >>> (difference,) = tree_diff({"a": 1, "b": 2}, {"a": 1, "b": 3})
        >>> difference.path, difference.kind, difference.first, difference.other
        ("tree['b']", 'value', 2, 3)
    """

    path: str
    kind: DifferenceKind
    first: Any
    other: Any
    distance: Distance | None = None


def differences(
    first: PyTree,
    other: PyTree,
    closeness: Closeness,
    *,
    root: str = "tree",
    is_leaf: IsLeaf = None,
) -> Iterator[Difference]:
    """Go through two trees, and list where they differ.

    Args:
        first: one tree.
        other: the other.
        closeness: when leaves count as equal.
        root: the name of the trees in paths.
        is_leaf: as in `jax.tree.map`: which nodes of the first are leaves too.

    Yields:
        Each difference, in order.

    Raises:
        LeafError: elements of a traced array would have to be compared.
    """
    for found in opposites(first, other, is_leaf):
        path = format_path(found.path, root)
        if found.kind == "leaf":
            yield from _leaves(path, found, closeness)
        elif found.kind == "child":
            kind = "added" if found.first is ABSENT else "missing"
            yield Difference(path, kind, found.first, found.other)
        elif found.kind in _STRUCTURE:
            yield Difference(path, _STRUCTURE[found.kind], found.first, found.other)


def _leaves(path: str, found: Opposite, closeness: Closeness) -> Iterator[Difference]:
    first, other = found.first, found.other
    kinds = leaf_kinds(first, other, closeness)
    for kind in kinds:
        yield Difference(path, kind, first, other)
    comparable = closeness.values and is_array(first) and is_array(other)
    if not comparable or first.shape != other.shape or first.dtype != other.dtype:
        return
    if isinstance(first, _jax.Tracer) or isinstance(other, _jax.Tracer):
        if first is other:
            return
        raise LeafError(
            f"cannot compare the elements of the arrays at `{path}`: they are traced, by "
            "`jax.jit` or another transformation, and have no values yet. Compare outside of it, "
            "or compare all but the elements, with `values=False`."
        )
    try:
        distance = measure(first, other, closeness)
    except RuntimeError as error:
        raise LeafError(
            f"cannot compare the elements of the arrays at `{path}`: {error} Arrays that were "
            "donated, or are spread over several processes, can be compared by all but their "
            "elements, with `values=False`."
        ) from error
    if distance is not None:
        only_nan = distance.max_abs is None and any(distance.nan)
        yield Difference(path, "NaN" if only_nan else "value", first, other, distance)
