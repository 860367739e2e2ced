"""Products and sums of arrays, as the layers compute them.

What is here calls `jax.lax` where there is nothing to promote, and the operators otherwise: then
they promote, or refuse to, and types of users that stand for a weight have their say.
"""

from typing import Any

import jax
import numpy as np
from jax import lax
from jaxtyping import Array

from ecliptic.nn._traced import traced_once


@traced_once()
def affine(weight: Any, x: Any, bias: Any) -> Array:
    """`weight @ x + bias`.

    Args:
        weight: a matrix.
        x: a vector.
        bias: what to add, or `None`.

    Returns:
        A vector.
    """
    y = product(weight, x)
    return y if bias is None else plus(y, bias)


def product(matrix: Any, vector: Any) -> Array:
    """`matrix @ vector`."""
    if _alike(matrix, vector) and matrix.ndim == 2 and vector.ndim == 1:
        return lax.dot_general(matrix, vector, _LAST_BY_FIRST)
    return matrix @ vector


def plus(x: Any, y: Any) -> Array:
    """`x + y`."""
    return lax.add(x, y) if _alike(x, y) and x.shape == y.shape else x + y


_LAST_BY_FIRST = (((1,), (0,)), ((), ()))


def _alike(x: Any, y: Any) -> bool:
    """Whether two values are arrays of one dtype, and no booleans, whose sums are no sums."""
    if not (isinstance(x, jax.Array) and isinstance(y, jax.Array)):
        return False
    dtype = x.dtype
    return dtype == y.dtype and dtype != np.bool_
