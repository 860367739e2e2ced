"""Over which axes of a mesh an array differs, inside `jax.shard_map`.

This is part of an array's type there, under an attribute that is not documented and had another
name before JAX 0.10. Where neither is found, nothing is done, and JAX reports what does not match.
"""

from typing import Any

import jax


def varying_axes(arrays: list[Any]) -> frozenset[Any]:
    """The axes over which any of these arrays varies."""
    return frozenset().union(*map(_axes, arrays))


def _axes(array: Any) -> frozenset[Any]:
    aval = jax.typeof(array)
    kind = getattr(aval, "manual_axis_type", None)
    return getattr(aval, "vma", frozenset()) if kind is None else kind.varying


def vary_alike(arrays: list[Any], known: frozenset[Any] = frozenset()) -> list[Any]:
    """The arrays, each marked as varying over all axes over which any of them does.

    Args:
        arrays: the arrays.
        known: the axes that do not matter.
    """
    axes = varying_axes(arrays) - known
    if not axes:
        return arrays
    return [
        jax.lax.pcast(array, tuple(missing), to="varying") if missing else array
        for array in arrays
        for missing in [axes - _axes(array)]
    ]
