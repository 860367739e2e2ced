"""In which dtype a layer computes, when its input is narrower than what the computation needs."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


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


def output_dtype(dtype: Any, computed: Any) -> np.dtype[Any]:
    """The dtype of what a layer returns: that of its input, unless this cannot hold the values.

    Args:
        dtype: the dtype of the input.
        computed: the dtype that was computed in.

    Returns:
        `dtype`; `computed` for an input of integers, or of real numbers that became complex.
    """
    is_complex = jnp.issubdtype(computed, jnp.complexfloating)
    if not jnp.issubdtype(dtype, jnp.inexact):
        return np.dtype(computed)
    if is_complex and not jnp.issubdtype(dtype, jnp.complexfloating):
        return np.dtype(computed)
    return np.dtype(dtype)


def squares(x: Array) -> Array:
    """The squares of the absolute values, which are real for complex numbers too."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return jnp.square(x.real) + jnp.square(x.imag)
    return jnp.square(x)
