"""`left_broadcast_to`: broadcasting that aligns first axes, not last ones."""

import jax.numpy as jnp
from jaxtyping import Array

from ecliptic.errors import ArgumentError


def left_broadcast_to(arr: Array, shape: tuple[int, ...]) -> Array:
    """Broadcasts an array by adding axes behind its own.

    That is what it takes to use one number for each element of a batch, such as whether that
    element is done, next to elements of any shape.

    Args:
        arr: the array.
        shape: the shape of the result. Each axis of `arr` is as long as that in the same place, or
            has length 1.

    Returns:
        The array of this shape.

    Raises:
        ArgumentError: if the shapes do not fit.

    !!! Example

        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> print(exp.left_broadcast_to(jnp.array([1, 2]), (2, 3)))
        [[1 1 1]
         [2 2 2]]
    """
    arr = jnp.asarray(arr)
    fits = arr.ndim <= len(shape) and all(
        own in (1, length) for own, length in zip(arr.shape, shape, strict=False)
    )
    if not fits:
        raise ArgumentError(
            f"`left_broadcast_to` aligns first axes, and an array of shape {arr.shape} does not "
            f"fit {tuple(shape)} like that: each of its axes must be as long as the one in the "
            "same place, or have length 1. To align last axes, use `jax.numpy.broadcast_to`."
        )
    padded = arr.reshape(arr.shape + (1,) * (len(shape) - arr.ndim))
    return jnp.broadcast_to(padded, shape)
