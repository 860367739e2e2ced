"""`PReLU`: a leaky ReLU whose slope is learnt."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from ecliptic.errors import ShapeError
from ecliptic.module import Module
from ecliptic.nn._check import shape_of
from ecliptic.nn._precision import convert, precision_of
from ecliptic.nn._random import default_dtype
from ecliptic.nn._traced import traced_once


class PReLU(Module):
    """The identity for positive numbers, a learnt multiple of it for negative ones.

    With an array of slopes, its axes are the last ones of the input: `(features,)` for vectors. For
    channels that come first, give the slopes the shape `(channels, 1, 1)`, as many ones as there
    are axes behind; so does `weight[:, None, None]` for the weight of PyTorch's layer, whose
    slopes always belong to the channels.

    As an activation of `MLP`, every unit of every layer gets a slope of its own.

    Args:
        init_alpha: the slope at first, one number for all or an array. `None` is 0.25.
        dtype: the dtype of the slope. By default that of an array of floating-point numbers, and
            otherwise JAX's: float64 if 64 bits are enabled, float32 if not.

    Raises:
        LayerArgumentError: the dtype is not inexact.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.PReLU(0.5)(jnp.array([-2.0, 3.0]))
        Array([-1.,  3.], dtype=float32)

    Source: He et al., "Delving Deep into Rectifiers", ICCV (2015).
    """

    negative_slope: Array

    def __init__(self, init_alpha: float | Array | None = 0.25, *, dtype: Any = None):
        alpha: Any = 0.25 if init_alpha is None else init_alpha
        if dtype is None and jnp.issubdtype(getattr(alpha, "dtype", bool), jnp.inexact):
            dtype = alpha.dtype
        # A weak type would be lost at the first step of training, and everything traced again.
        self.negative_slope = _strong(alpha, default_dtype(dtype, "PReLU"))

    def __call__(self, x: Array, *, key: PRNGKeyArray | None = None) -> Array:
        """Apply the function.

        Args:
            x: an array to whose shape that of the slopes broadcasts.
            key: ignored; layers of all kinds are called alike.

        Returns:
            An array of the shape of `x`, and of its dtype unless `x` holds integers.

        Raises:
            ShapeError: there are slopes that `x` has no place for.
        """
        shape, slope = shape_of(x), self.negative_slope
        if not _broadcasts(slope.shape, shape):
            raise ShapeError(
                f"`PReLU` has slopes of shape {slope.shape}, which belong to the last axes of x; "
                f"got x of shape {tuple(shape)}. For channels that come first, give the slopes a "
                "shape like (channels, 1, 1)."
            )
        return _sloped(jnp.asarray(x), slope)


@traced_once()
def _sloped(x: Array, slope: Array) -> Array:
    x = convert(x, precision_of(x.dtype, slope.dtype).output)
    slope = convert(slope, x.dtype)
    if slope.ndim > 0:
        last = tuple(range(x.ndim - slope.ndim, x.ndim))
        slope = jax.lax.broadcast_in_dim(slope, x.shape, last)
    sloped = jax.lax.mul(x, slope)
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return jnp.where(x >= 0, x, sloped)
    return jax.lax.select(jax.lax.ge(x, x.dtype.type(0)), x, sloped)


@functools.partial(jax.jit, static_argnums=1)
def _strong(alpha: Any, dtype: Any) -> Array:
    return jnp.asarray(alpha, dtype)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    if len(shape) > len(to):
        return False
    last = to[len(to) - len(shape) :]
    return all([one in (1, other) for one, other in zip(shape, last, strict=True)])
