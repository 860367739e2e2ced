"""The next floating number, and the one before.

Found in the bits of numbers, which are in the order of the numbers: any floating type of JAX will
do. Numbers whose exponent is the least there is ("subnormal") are passed over: most devices take
them for zero, so that one of them would not be greater than zero in a program.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ecliptic.errors import ArgumentError


def _up(x: Array) -> Array:
    info = jnp.finfo(x.dtype)
    unsigned = np.dtype(f"uint{info.bits}")

    def pattern(number: Any) -> np.ndarray:
        return np.asarray(number, x.dtype).view(unsigned)

    sign = unsigned.type(1 << (info.bits - 1))
    one = unsigned.type(1)
    tiny, greatest = pattern(info.smallest_normal), pattern(info.max)
    # What follows the greatest number: infinity, or that number if its type has no infinity.
    with np.errstate(over="ignore", invalid="ignore"):
        infinity = np.asarray(np.inf, x.dtype)
    end = infinity.view(unsigned) if np.isinf(infinity.astype(np.float64)) else greatest

    bits = jax.lax.bitcast_convert_type(x, unsigned)
    size = bits & ~sign
    below = (bits & sign) != 0
    # Towards zero, zero itself, and away from zero.
    negative = jnp.where(size > tiny, bits - one, jnp.zeros_like(bits))
    positive = jnp.where(size < greatest, bits + one, jnp.full_like(bits, end))
    moved = jnp.where(below, negative, positive)
    moved = jnp.where(size < tiny, jnp.full_like(bits, tiny), moved)
    return jnp.where(jnp.isnan(x), x, jax.lax.bitcast_convert_type(moved, x.dtype))


def _identity(move: Any) -> Any:
    """The function with the derivative of the identity."""
    moved = jax.custom_jvp(move)
    moved.defjvp(lambda primals, tangents: (moved(*primals), tangents[0]))
    return moved


_next = _identity(_up)
_previous = _identity(lambda x: -_up(-x))


def nextafter(x: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
    """The next greater floating number, with the derivative of the identity.

    Args:
        x: an array of any floating dtype.

    Returns:
        For each element the least number of its dtype that is greater, subnormal numbers apart:
        after zero comes the smallest normal number. NaN stays as it is. The greatest number is
        followed by infinity, or by itself if its dtype has none, and infinity by itself.

    Raises:
        ArgumentError: if the numbers are not floating.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> print(exp.nextafter(jnp.array(1.0)))
        1.0000001
        >>> print(jax.grad(exp.nextafter)(1.0))
        1.0
    """
    return _next(_floating(x, "nextafter"))


def prevbefore(x: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
    """The next smaller floating number, with the derivative of the identity.

    Args:
        x: an array of any floating dtype.

    Returns:
        For each element the greatest number of its dtype that is smaller, as in `nextafter`.

    Raises:
        ArgumentError: if the numbers are not floating.

    !!! Example

        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> print(exp.prevbefore(jnp.array(1.0)))
        0.99999994
    """
    return _previous(_floating(x, "prevbefore"))


def _floating(x: Any, name: str) -> Array:
    array = jnp.asarray(x)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise ArgumentError(
            f"`{name}` needs floating numbers, and got an array of dtype {array.dtype}. Convert it "
            "with `.astype(...)`."
        )
    return array
