"""`GroupNorm`: normalises groups of channels."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from ecliptic.errors import LayerArgumentError, ShapeError
from ecliptic.module import Module, field
from ecliptic.nn._check import check_size, shape_of
from ecliptic.nn._normalise import (
    check_eps,
    inverse_root,
    mean_over,
    ones_and_zeros,
    precision_with,
    scale_and_shift,
    spread,
)
from ecliptic.nn._precision import convert, squares
from ecliptic.nn._random import default_dtype
from ecliptic.nn._stateful import ABSENT
from ecliptic.nn._traced import traced_once


class GroupNorm(Module):
    """Gives each group of channels the mean 0 and the variance 1, then scales and shifts each.

    The input has its channels first, then any number of other axes. Channels that follow each
    other form a group; mean and (biased) variance are taken over all numbers of a group. They are
    computed in float32 at least, and the output has the dtype of the input. With one group this
    normalises the whole input, with as many groups as channels it is instance normalisation.

    PyTorch's layer of the same name does the same to every example of a batch, with the same
    weight and bias.

    Args:
        groups: the number of groups.
        channels: the number of channels, a multiple of `groups`. It may be left out without
            `channelwise_affine`.
        eps: what is added to the variance, so that constant inputs are not divided by zero.
        channelwise_affine: whether to scale and shift; otherwise the fields `weight` and `bias`
            are `None`.
        dtype: the dtype of weight and bias. By default JAX's: float64 if 64 bits are enabled,
            float32 otherwise.

    Raises:
        LayerArgumentError: the groups do not divide the channels, the channels are missing, `eps`
            is negative, or the dtype is not inexact.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.GroupNorm(2, 4)(jnp.array([1.0, 3.0, 10.0, 30.0])).round(3)
        Array([-1.,  1., -1.,  1.], dtype=float32)

    Source: Wu and He, "Group Normalization", ECCV (2018).
    """

    groups: int = field(static=True)
    channels: int | None = field(static=True)
    eps: float = field(static=True)
    channelwise_affine: bool = field(static=True)
    weight: Array | None
    bias: Array | None

    def __init__(
        self,
        groups: int,
        channels: int | None = None,
        eps: float = 1e-5,
        channelwise_affine: bool = True,
        dtype: Any = None,
    ):
        self.groups = check_size(groups, "groups", "GroupNorm")
        self.channels = None if channels is None else check_size(channels, "channels", "GroupNorm")
        self.eps = check_eps(eps, "GroupNorm")
        self.channelwise_affine = bool(channelwise_affine)
        if self.groups == 0 or (self.channels is not None and self.channels % self.groups != 0):
            raise LayerArgumentError(
                f"`GroupNorm` got groups={self.groups} and channels={self.channels}, but each "
                "group has as many channels as the others: the number of groups must divide the "
                "number of channels."
            )
        if self.channels is None and self.channelwise_affine:
            raise LayerArgumentError(
                "`GroupNorm` got no channels, but has a weight and a bias for each of them. Give "
                "`channels`, or leave weight and bias out with `channelwise_affine=False`."
            )
        use = self.channelwise_affine
        self.weight, self.bias = ones_and_zeros(
            (self.channels or 0,), default_dtype(dtype, "GroupNorm"), use, use
        )

    def __call__(
        self, x: Array, state: Any = ABSENT, *, key: PRNGKeyArray | None = None
    ) -> Array | tuple[Array, Any]:
        """Normalise an array.

        Args:
            x: an array of shape `(channels, ...)`.
            state: is returned as it is, where one is given: layers with a state and without are
                then called alike.
            key: ignored; layers of all kinds are called alike.

        Returns:
            An array of the shape and dtype of `x`; with a state, the pair of it and the state.

        Raises:
            ShapeError: `x` has no channels, or not as many as it should.
        """
        shape = tuple(shape_of(x))
        if not shape or shape[0] % self.groups != 0 or self.channels not in (None, shape[0]):
            raise self._wrong_shape(shape)
        y = _normalised(self.groups, self.eps, jnp.asarray(x), self.weight, self.bias)
        return y if state is ABSENT else (y, state)

    def _wrong_shape(self, shape: tuple[int, ...]) -> ShapeError:
        channels = f"a multiple of {self.groups}" if self.channels is None else self.channels
        hint = ""
        if len(shape) > 1:
            hint = (
                " The channels come first, and a layer acts on one example at a time. For a batch, "
                "did you mean `jax.vmap(layer)(x)`?"
            )
        return ShapeError(
            f"`GroupNorm` was made with groups={self.groups}, channels={self.channels} and acts on "
            f"x of shape (channels, ...), where channels is {channels}; got x of shape {shape}."
            f"{hint}"
        )


@traced_once(2)
def _normalised(
    groups: int, eps: float, x: Array, weight: Array | None, bias: Array | None
) -> Array:
    precision = precision_with(x, weight, bias)
    y = convert(x, precision.computed)
    if y.size > 0:
        # All numbers of a group in one row.
        rows = jax.lax.reshape(y, (groups, y.size // groups))
        rows = jax.lax.sub(rows, spread(mean_over(rows, (1,)), rows))
        variance = mean_over(squares(rows), (1,))
        rows = jax.lax.mul(rows, spread(inverse_root(variance, eps), rows))
        y = jax.lax.reshape(rows, y.shape)
    return convert(scale_and_shift(y, weight, bias, (0,)), precision.output)
