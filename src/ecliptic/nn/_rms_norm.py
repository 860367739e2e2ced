"""`RMSNorm`: divides a whole array by its root mean square."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Array, PRNGKeyArray

from ecliptic.module import Module, field
from ecliptic.nn._normalise import check_eps, check_sizes, normalise, ones_and_zeros
from ecliptic.nn._random import default_dtype
from ecliptic.nn._shapes import check_shape
from ecliptic.nn._stateful import ABSENT


class RMSNorm(Module):
    """Divides an array by the root of the mean of its squares, then scales and shifts each number.

    `x / sqrt(mean(abs(x)**2) + eps) * weight + bias`. Unlike `LayerNorm`, nothing is subtracted.
    The mean is computed in float32 at least, and the output has the dtype of the input; an input
    of integers gives floating-point numbers.

    The layer acts on arrays of exactly `shape`; use `jax.vmap` for more axes. PyTorch's layer of
    the same name has no bias (use `use_bias=False`), and its default `eps` is that of the dtype.

    Args:
        shape: the shape of the input, or its length.
        eps: what is added to the mean of the squares, so that zeros are not divided by zero.
        use_weight: whether to scale; otherwise the field `weight` is `None`.
        use_bias: whether to shift; otherwise the field `bias` is `None`.
        dtype: the dtype of weight and bias. By default JAX's: float64 if 64 bits are enabled,
            float32 otherwise.

    Raises:
        LayerArgumentError: the shape is no shape, `eps` is negative, or the dtype is not inexact.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.RMSNorm(2)(jnp.array([1.0, -1.0])).round(3)
        Array([ 1., -1.], dtype=float32)

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", NeurIPS (2019).
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
    ):
        self.shape = check_sizes(shape, "shape", "RMSNorm")
        self.eps = check_eps(eps, "RMSNorm")
        self.use_weight = bool(use_weight)
        self.use_bias = bool(use_bias)
        self.weight, self.bias = ones_and_zeros(
            self.shape, default_dtype(dtype, "RMSNorm"), self.use_weight, self.use_bias
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
        check_shape(x, self.shape, f"shape={self.shape}", "RMSNorm")
        y = normalise(x, self.weight, self.bias, self.eps, centre=False)
        return y if state is ABSENT else (y, state)
