"""`LayerNorm`: normalises a whole array."""

import warnings
from collections.abc import Sequence
from typing import Any

from jaxtyping import Array, PRNGKeyArray

from ecliptic.errors import EclipticWarning
from ecliptic.module import Module, field
from ecliptic.nn._normalise import check_eps, check_sizes, normalise, ones_and_zeros
from ecliptic.nn._random import default_dtype
from ecliptic.nn._shapes import check_shape
from ecliptic.nn._stateful import ABSENT


class LayerNorm(Module):
    """Gives the numbers of an array the mean 0 and the variance 1, then scales and shifts each.

    `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, with mean and (biased) variance over all
    of `x`. They are computed in float32 at least, and the output has the dtype of the input; an
    input of integers gives floating-point numbers. The variance of complex numbers is that of
    their distances from the mean.

    The layer acts on arrays of exactly `shape`: an input with more axes is refused, as mean and
    variance would then be taken over less than the reader thinks. PyTorch's layer of the same name
    takes such inputs; here it is `jax.vmap` that says which axes are examples. Weight and bias
    are the same there and here.

    Args:
        shape: the shape of the input, or its length.
        eps: what is added to the variance, so that constant inputs are not divided by zero.
        use_weight: whether to scale; otherwise the field `weight` is `None`.
        use_bias: whether to shift; otherwise the field `bias` is `None`.
        dtype: the dtype of weight and bias. By default JAX's: float64 if 64 bits are enabled,
            float32 otherwise.
        elementwise_affine: the old name of both `use_weight` and `use_bias`; deprecated.

    Raises:
        LayerArgumentError: the shape is no shape, `eps` is negative, or the dtype is not inexact.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> layer = nn.LayerNorm(3)
        >>> layer(jnp.array([1.0, 2.0, 3.0])).round(3)
        Array([-1.225,  0.   ,  1.225], dtype=float32)
        >>> jax.vmap(layer)(jnp.ones((5, 3))).shape
        (5, 3)

    Source: Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450 (2016).
    """

    shape: tuple[int, ...] = field(static=True)
    eps: float = field(static=True)
    use_weight: bool = field(static=True)
    use_bias: bool = field(static=True)
    weight: Array | None
    bias: Array | None

    def __init__(
        self,
        shape: int | Sequence[int],
        eps: float = 1e-5,
        use_weight: bool = True,
        use_bias: bool = True,
        dtype: Any = None,
        *,
        elementwise_affine: bool | None = None,
    ):
        if elementwise_affine is not None:
            warnings.warn(
                "`LayerNorm(elementwise_affine=...)` is deprecated in favour of "
                "`LayerNorm(use_weight=..., use_bias=...)`.",
                EclipticWarning,
                stacklevel=2,
            )
            use_weight = use_bias = elementwise_affine
        self.shape = check_sizes(shape, "shape", "LayerNorm")
        self.eps = check_eps(eps, "LayerNorm")
        self.use_weight = bool(use_weight)
        self.use_bias = bool(use_bias)
        self.weight, self.bias = ones_and_zeros(
            self.shape, default_dtype(dtype, "LayerNorm"), self.use_weight, self.use_bias
        )

    def __call__(
        self, x: Array, state: Any = ABSENT, *, key: PRNGKeyArray | None = None
    ) -> Array | tuple[Array, Any]:
        """Normalise an array.

        Args:
            x: an array of shape `shape`.
            state: is returned as it is, where one is given: layers with a state and without are
                then called alike.
            key: ignored; layers of all kinds are called alike.

        Returns:
            An array of the shape and dtype of `x`; with a state, the pair of it and the state.

        Raises:
            ShapeError: `x` has another shape.
        """
        check_shape(x, self.shape, f"shape={self.shape}", "LayerNorm")
        y = normalise(x, self.weight, self.bias, self.eps, centre=True)
        return y if state is ABSENT else (y, state)
