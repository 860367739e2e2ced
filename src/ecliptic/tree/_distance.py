"""How far two leaves are apart: in what they are, and in their elements."""

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from ecliptic import _jax
from ecliptic.tree._predicates import has_shape, is_inexact_dtype, is_key_dtype

LeafKind = Literal["array or not", "type", "shape", "dtype", "weak type", "value", "NaN"]


@dataclasses.dataclass(frozen=True, slots=True)
class Closeness:
    """When two leaves count as equal.

    Args:
        rtol: relative tolerance for elements of inexact arrays, as in `numpy.isclose`.
        atol: absolute tolerance for them.
        equal_nan: whether a NaN is equal to a NaN at the same place.
        typematch: whether the types of leaves have to match too.
        weak_type: whether arrays have to be weakly typed alike.
        values: whether elements are compared at all.
    """

    rtol: float = 0.0
    atol: float = 0.0
    equal_nan: bool = False
    typematch: bool = False
    weak_type: bool = True
    values: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Distance:
    """How far the elements of two arrays of one shape and dtype are apart.

    Args:
        count: how many elements are not equal.
        size: how many there are.
        max_abs: the largest absolute difference of two elements that are numbers; None if no two
            of them differ.
        index: where that is.
        elements: what the two arrays have there.
        nan: how many elements are NaN in the first array, and in the second.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic.view import tree_diff
        >>> (difference,) = tree_diff(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.5]))
        >>> difference.distance.count, difference.distance.max_abs, difference.distance.index
        (1, 0.5, (1,))
    """

    count: int
    size: int
    max_abs: float | None
    index: tuple[int, ...] | None
    elements: tuple[Any, Any] | None
    nan: tuple[int, int]


def leaf_kinds(first: Any, other: Any, closeness: Closeness) -> list[LeafKind]:
    """List in which respects two leaves differ, apart from the elements of arrays."""
    arrays = has_shape(first), has_shape(other)
    if all(arrays):
        return _array_kinds(first, other, closeness)
    if any(arrays):
        return ["array or not"]
    if closeness.typematch and type(first) is not type(other):
        return ["type"]
    if _is_nan(first) and _is_nan(other):
        return [] if closeness.equal_nan else ["NaN"]
    try:
        return [] if first is other or bool(first == other) else ["value"]
    except Exception:
        # What cannot be compared is not known to be equal.
        return ["value"]


def _is_nan(leaf: Any) -> bool:
    return isinstance(leaf, float | complex) and leaf != leaf


def _array_kinds(first: Any, other: Any, closeness: Closeness) -> list[LeafKind]:
    kinds: list[LeafKind] = []
    if closeness.values and _is_struct(first) != _is_struct(other):
        kinds.append("array or not")
    elif closeness.typematch and _library(first) is not _library(other):
        kinds.append("type")
    if first.shape != other.shape:
        kinds.append("shape")
    if first.dtype != other.dtype:
        kinds.append("dtype")
    elif closeness.weak_type and _is_weak(first) != _is_weak(other):
        kinds.append("weak type")
    return kinds


def _is_struct(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _library(leaf: Any) -> type:
    return jax.Array if isinstance(leaf, (jax.Array, _jax.TypedNdArray)) else type(leaf)


def _is_weak(leaf: Any) -> bool:
    return bool(getattr(leaf, "weak_type", False))


def measure(first: Any, other: Any, closeness: Closeness) -> Distance | None:
    """Compare the elements of two arrays of one shape and dtype.

    Args:
        first: an array.
        other: the other.
        closeness: when elements count as equal.

    Returns:
        How far they are apart; None if they are equal.
    """
    if is_key_dtype(first.dtype):
        first, other = jax.random.key_data(first), jax.random.key_data(other)
    inexact = is_inexact_dtype(first.dtype)
    first, other = np.asarray(first), np.asarray(other)
    one, two = _numbers(first), _numbers(other)
    with np.errstate(all="ignore"):
        equal = one == two
        nan_one, nan_two = one != one, two != two
        if inexact:
            limit = closeness.atol + closeness.rtol * abs(two)
            equal = equal | (abs(one - two) <= limit) & np.isfinite(two)
        if closeness.equal_nan:
            equal = equal | (nan_one & nan_two)
    if equal.all():
        return None
    max_abs, index = _farthest(one, two, ~equal & ~nan_one & ~nan_two)
    elements = None if index is None else (first[index], other[index])
    nans = int(nan_one.sum()), int(nan_two.sum())
    return Distance(int((~equal).sum()), equal.size, max_abs, index, elements, nans)


def _numbers(array: np.ndarray) -> np.ndarray:
    """The elements, in a dtype whose differences NumPy can take."""
    return array.astype(np.float64) if jnp.issubdtype(array.dtype, jnp.floating) else array


def _farthest(
    one: np.ndarray, two: np.ndarray, where: np.ndarray
) -> tuple[float | None, tuple[int, ...] | None]:
    if not where.any():
        return None, None
    if one.dtype.kind in "OSUbmM":
        apart = where.astype(np.float64)
    else:
        with np.errstate(all="ignore"):
            # Integers of 64 bits have differences that do not fit into them.
            wide = np.complex128 if one.dtype.kind == "c" else np.float64
            apart = np.where(where, abs(one.astype(wide) - two.astype(wide)), -1.0)
    place = np.unravel_index(int(apart.argmax()), apart.shape)
    return float(apart[place]), tuple(int(i) for i in place)
