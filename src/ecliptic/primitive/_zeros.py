"""Zeros that a rule for derivatives was given as `None`, as arrays."""

from typing import Any

import jax
import jax.numpy as jnp

from ecliptic import _jax
from ecliptic.primitive._filtered import is_zero
from ecliptic.tree import is_array, is_array_like


def materialise_zeros(primal: Any, tangent: Any, allow_struct: bool = False) -> Any:
    """The tangent of a value, as an array where it is known to be zero.

    Rules for derivatives are given `None` in place of tangents that are zero. This is for those
    that have no use for knowing so.

    Args:
        primal: the value: an array, or a number.
        tangent: its tangent, or `None`, or one of JAX's symbolic zeros.
        allow_struct: whether `primal` may be a mere description of an array, as a
            `jax.ShapeDtypeStruct`. Not by default: there, it is a leaf that is no array.

    Returns:
        `tangent`, or zeros of the shape of `primal` and of the dtype of its tangents: its own if
        that is floating or complex, and `float0` otherwise. `None` if the primal is no array, and
        has no tangent. For a tree of primals, use `jax.tree_util.tree_map`.

    !!! Example

        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> exp.materialise_zeros(jnp.ones(2), None)
        Array([0., 0.], dtype=float32)
        >>> exp.materialise_zeros(jnp.ones(2), jnp.ones(2))
        Array([1., 1.], dtype=float32)
        >>> exp.materialise_zeros("a name", None)
    """
    if tangent is not None and not is_zero(tangent):
        return tangent
    if is_array_like(primal):
        aval = jax.typeof(primal) if is_array(primal) else jax.typeof(jnp.asarray(primal))
    elif allow_struct and isinstance(primal, jax.ShapeDtypeStruct | _jax.ShapedArray):
        aval = _jax.ShapedArray(primal.shape, primal.dtype)
    else:
        return None
    return _jax.instantiate_zeros(_jax.Zero(aval.to_tangent_aval()))
