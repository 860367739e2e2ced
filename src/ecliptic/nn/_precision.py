"""In which dtype a layer computes, when its input is narrower than what the computation needs.

What is here and in the layers that use it is written with `jax.lax` where the dtypes are known to
agree: this is traced in half the time of the same functions of `jax.numpy`.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


class Precision(NamedTuple):
    """The dtypes of a computation.

    Args:
        computed: what to compute in.
        output: what to return.
    """

    computed: np.dtype[Any]
    output: np.dtype[Any]


def at_least_single(*dtypes: Any) -> np.dtype[Any]:
    """The dtype to compute sums of many numbers in: that of the numbers, but no half precision.

    Args:
        dtypes: dtypes of any kind.

    Returns:
        The smallest floating or complex dtype of 32 bits or more a part that holds them all.
    """
    wide = np.dtype(np.float32)
    for dtype in dtypes:
        # Halves are widened one by one: bfloat16 and float16 have no common dtype of their own.
        narrow = not jnp.issubdtype(dtype, jnp.inexact) or jnp.finfo(dtype).bits < 32
        wide = wide if narrow else np.promote_types(wide, dtype)
    return wide


@functools.lru_cache(maxsize=256)
def precision_of(dtype: np.dtype[Any], *parameters: np.dtype[Any]) -> Precision:
    """The dtypes of a computation with parameters.

    Args:
        dtype: the dtype of the input.
        parameters: those of the parameters. They decide nothing but whether numbers are complex.

    Returns:
        Computed is in `dtype`, in 32 bits or more a part, and in complex numbers if any parameter
        is complex. Returned is `dtype`, unless it cannot hold the values: for an input of
        integers, or of real numbers that became complex, it is what was computed in.
    """
    complex_ones = [p for p in parameters if jnp.issubdtype(p, jnp.complexfloating)]
    computed = at_least_single(dtype, *complex_ones)
    return Precision(computed, output_dtype(dtype, computed))


def output_dtype(dtype: Any, computed: Any) -> np.dtype[Any]:
    """The dtype of what a layer returns: that of its input, unless this cannot hold the values.

    Args:
        dtype: the dtype of the input.
        computed: the dtype that was computed in.

    Returns:
        `dtype`; `computed` for an input of integers, or of real numbers that became complex.
    """
    holds = jnp.issubdtype(dtype, jnp.inexact) and (
        jnp.issubdtype(dtype, jnp.complexfloating)
        or not jnp.issubdtype(computed, jnp.complexfloating)
    )
    return np.dtype(dtype if holds else computed)


def convert(x: Array, dtype: np.dtype[Any]) -> Array:
    """An array in another dtype; the very array if it has it."""
    return x if x.dtype == dtype else jax.lax.convert_element_type(x, dtype)


def squares(x: Array) -> Array:
    """The squares of the absolute values, which are real for complex numbers too."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return jax.lax.square(jax.lax.real(x)) + jax.lax.square(jax.lax.imag(x))
    return jax.lax.square(x)
