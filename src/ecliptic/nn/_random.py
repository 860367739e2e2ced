"""Initial values of weights: how they are drawn, and in which dtype.

Libraries of weights are reproduced from a seed, so what a key gives is part of the interface:
each array comes from its own key, and a complex array from one key for each part.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from ecliptic.errors import LayerArgumentError

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def default_dtype(dtype: Any, layer: str) -> np.dtype[Any]:
    """The dtype of a layer's arrays: the given one, or JAX's default for floating point.

    Args:
        dtype: anything that names a floating or complex dtype; `None` is float64 if 64 bits are
            enabled in JAX and float32 if not.
        layer: the name of the layer, for the message.

    Returns:
        A NumPy dtype.

    Raises:
        LayerArgumentError: the dtype is neither floating nor complex.
    """
    if dtype is None:
        return _DOUBLE if jax.config.jax_enable_x64 else _SINGLE  # pyright: ignore[reportAttributeAccessIssue]
    if not jnp.issubdtype(dtype, jnp.inexact):
        raise LayerArgumentError(
            f"`{layer}` got dtype={dtype!r}, but its weights must be of a floating or complex "
            "dtype, for instance `jax.numpy.float32`, to be drawn and trained."
        )
    return np.dtype(dtype)


def uniform(key: PRNGKeyArray, shape: tuple[int, ...], dtype: Any, limit: float) -> Array:
    """Draw numbers uniformly from -`limit` to `limit`, each part of a complex number so.

    Args:
        key: the PRNG key.
        shape: the shape of the result.
        dtype: the dtype of the result, floating or complex.
        limit: the largest absolute value of a number, or of its two parts.

    Returns:
        An array of `shape` and `dtype`.
    """
    if not jnp.issubdtype(dtype, jnp.complexfloating):
        return jax.random.uniform(key, shape, dtype, -limit, limit)
    part = jnp.finfo(dtype).dtype
    real_key, imaginary_key = jax.random.split(key)
    real = jax.random.uniform(real_key, shape, part, -limit, limit)
    imaginary = jax.random.uniform(imaginary_key, shape, part, -limit, limit)
    return jax.lax.complex(real, imaginary)


# One compiled call for both arrays of a layer, in place of five eager ones; layers of one size
# share it.
@functools.partial(jax.jit, static_argnums=(1, 2, 3, 4))
def uniform_pair(
    key: PRNGKeyArray,
    weight_shape: tuple[int, ...],
    bias_shape: tuple[int, ...] | None,
    dtype: Any,
    limit: float,
) -> tuple[Array, Array | None]:
    """Draw the weight and the bias of a layer, each from its half of the key.

    Args:
        key: the PRNG key of the layer.
        weight_shape: the shape of the weight.
        bias_shape: the shape of the bias; `None` for a layer without one.
        dtype: the dtype of both.
        limit: the largest absolute value.

    Returns:
        The weight, and the bias or `None`. The weight is the same with a bias and without.
    """
    weight_key, bias_key = jax.random.split(key)
    weight = uniform(weight_key, weight_shape, dtype, limit)
    if bias_shape is None:
        return weight, None
    return weight, uniform(bias_key, bias_shape, dtype, limit)


@functools.partial(jax.jit, static_argnums=1)
def split(key: PRNGKeyArray, number: int) -> tuple[PRNGKeyArray, ...]:
    """Split a key as `jax.random.split` does, into a tuple, at the cost of one call.

    Args:
        key: a PRNG key.
        number: how many keys to make.

    Returns:
        The keys.
    """
    return tuple(jax.random.split(key, number))
