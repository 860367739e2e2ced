"""`Conv`: convolutions along any number of axes."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PRNGKeyArray

from ecliptic.module import Module, field
from ecliptic.nn._check import check_size
from ecliptic.nn._random import default_dtype, uniform_pair
from ecliptic.nn._traced import traced_once
from ecliptic.nn._window import (
    PADDING_MODES,
    Pairs,
    check_at_least,
    check_by_axis,
    check_example,
    check_groups,
    check_padding,
    check_padding_mode,
    check_room,
    halves,
    spans,
)

Padding = str | int | Sequence[int] | Sequence[tuple[int, int]]


class Conv(Module):
    """A convolution of one example, channels first, along `num_spatial_dims` axes.

    In the way of the field this is a cross-correlation: the kernel is not flipped. Weight and bias
    are drawn uniformly between `±1/sqrt(n)`, where `n`, the number of inputs of an output, is
    `in_channels / groups * prod(kernel_size)`. The weight has shape
    `(out_channels, in_channels / groups, *kernel_size)` and the bias `(out_channels, 1, ..., 1)`.
    PyTorch's weight is the same array, and its bias has shape `(out_channels,)`.

    Args:
        num_spatial_dims: the number of spatial axes.
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the output.
        kernel_size: the size of the kernel, an integer for all axes or one for each.
        stride: how far the kernel moves from one output to the next, for all axes or for each.
        padding: how many elements are added at both ends: an integer for all axes, or a sequence
            of one integer for each axis or of one pair (before, after) for each axis. `"VALID"`
            adds none. `"SAME"` adds as many as make the size of the output that of the input
            divided by the stride and rounded up, an odd one after the axis; `"SAME_LOWER"` is the
            same with the odd one before.
        dilation: the distance of neighbouring elements of the kernel, for all axes or for each.
        groups: into how many groups the channels are divided; an output sees the input channels of
            its group only.
        use_bias: whether to add a bias; without one the field `bias` is `None`.
        padding_mode: what is added: `"ZEROS"`, or the example continued by `"REFLECT"` (mirrored
            at its last element), `"REPLICATE"` (the last element again) or `"CIRCULAR"` (from its
            other end). Small letters do too.
        dtype: the dtype of weight and bias, floating or complex. By default JAX's: float64 if
            64 bits are enabled, float32 otherwise.
        key: the PRNG key that weight and bias are drawn with.

    Raises:
        LayerArgumentError: an argument has a wrong value.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> layer = nn.Conv(2, 3, 8, kernel_size=3, stride=2, padding=1, key=jax.random.key(0))
        >>> layer(jnp.ones((3, 32, 32))).shape
        (8, 16, 16)
        >>> jax.vmap(layer)(jnp.ones((5, 3, 32, 32))).shape
        (5, 8, 16, 16)
    """

    num_spatial_dims: int = field(static=True)
    weight: Array
    bias: Array | None
    in_channels: int = field(static=True)
    out_channels: int = field(static=True)
    kernel_size: tuple[int, ...] = field(static=True)
    stride: tuple[int, ...] = field(static=True)
    padding: str | Pairs = field(static=True)
    dilation: tuple[int, ...] = field(static=True)
    groups: int = field(static=True)
    use_bias: bool = field(static=True)
    padding_mode: str = field(static=True)

    def __init__(
        self,
        num_spatial_dims: int,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        use_bias: bool = True,
        padding_mode: str = "ZEROS",
        dtype: Any = None,
        *,
        key: PRNGKeyArray,
    ):
        name = type(self).__name__
        axes = check_at_least(num_spatial_dims, 1, "num_spatial_dims", name)
        self.num_spatial_dims = axes
        self.in_channels = check_size(in_channels, "in_channels", name)
        self.out_channels = check_size(out_channels, "out_channels", name)
        self.kernel_size = check_by_axis(kernel_size, axes, 1, "kernel_size", name)
        self.stride = check_by_axis(stride, axes, 1, "stride", name)
        self.padding = check_padding(padding, axes, name, words=True)
        self.dilation = check_by_axis(dilation, axes, 1, "dilation", name)
        self.groups = check_groups(groups, self.in_channels, self.out_channels, name)
        self.use_bias = use_bias
        self.padding_mode = check_padding_mode(padding_mode, name)
        self.weight, self.bias = draw(self, default_dtype(dtype, name), key)

    def __call__(self, x: Array, *, key: PRNGKeyArray | None = None) -> Array:
        """Convolve one example.

        Args:
            x: an array of shape `(in_channels, n1, ..., nd)`.
            key: ignored; layers of all kinds are called alike.

        Returns:
            An array of shape `(out_channels, m1, ..., md)`.

        Raises:
            ShapeError: `x` has another rank or number of channels, or the kernel does not fit in.
        """
        name = type(self).__name__
        x = check_example(x, self.num_spatial_dims, self.in_channels, name)
        window = spans(self.kernel_size, self.dilation)
        padding = self.padding
        if padding == "VALID":
            padding = ((0, 0),) * self.num_spatial_dims
        if not isinstance(padding, str):
            check_room(x.shape, window, padding, name)
        elif self.padding_mode != "ZEROS" or all([isinstance(n, int) for n in x.shape]):
            # (JAX knows these words too, for sizes that are symbols, and takes longer.)
            padding = _same(x.shape[1:], window, self.stride, padding)
        if self.padding_mode != "ZEROS":
            pads: Any = ((0, 0), *padding)
            x = jnp.pad(x, pads, mode=PADDING_MODES[self.padding_mode])
            padding = "VALID"
        return convolve(self, x, padding, stride=self.stride)


def draw(layer: Any, dtype: Any, key: PRNGKeyArray) -> tuple[Array, Array | None]:
    """Draw weight and bias of a convolution or a transposed one, whose other fields are set.

    Args:
        layer: the layer.
        dtype: the dtype of both.
        key: the PRNG key of the layer.

    Returns:
        The weight, and the bias or `None`.
    """
    inputs = layer.in_channels // layer.groups
    ones = (1,) * layer.num_spatial_dims
    return uniform_pair(
        key,
        (layer.out_channels, inputs, *layer.kernel_size),
        (layer.out_channels, *ones) if layer.use_bias else None,
        dtype,
        1 / math.sqrt(inputs * math.prod(layer.kernel_size) or 1),
    )


def convolve(
    layer: Any,
    x: Array,
    padding: str | Pairs,
    *,
    stride: tuple[int, ...],
    input_dilation: tuple[int, ...] | None = None,
) -> Array:
    """Convolve one example with the weight of a layer, and add the bias if there is one.

    Args:
        layer: a convolution or a transposed one.
        x: the example.
        padding: the zeros that are added.
        stride: how far the kernel moves.
        input_dilation: the distance of neighbouring elements of `x`, between which zeros are put.

    Returns:
        The output of the layer.
    """
    how = (padding, stride, input_dilation, layer.dilation, layer.groups)
    return _convolved(*how, x, layer.weight, layer.bias)


@traced_once(5)
def _convolved(
    padding: str | Pairs,
    stride: tuple[int, ...],
    input_dilation: tuple[int, ...] | None,
    dilation: tuple[int, ...],
    groups: int,
    x: Array,
    weight: Array,
    bias: Array | None,
) -> Array:
    if x.dtype != weight.dtype:
        # A product of the two would promote, or raise if the rules are strict: a convolution
        # does not.
        dtype = jnp.result_type(x, weight)
        x, weight = x.astype(dtype), weight.astype(dtype)
    y = lax.conv_general_dilated(
        lax.broadcast_in_dim(x, (1, *x.shape), tuple(range(1, x.ndim + 1))),
        weight,
        window_strides=stride,
        padding=padding,
        lhs_dilation=input_dilation,
        rhs_dilation=dilation,
        feature_group_count=groups,
    )
    y = lax.squeeze(y, (0,))
    if bias is None:
        return y
    # The operator promotes, which is most of its cost in a trace.
    return lax.add(y, bias) if y.dtype == bias.dtype else y + bias


def _same(
    sizes: tuple[int, ...], window: tuple[int, ...], stride: tuple[int, ...], word: str
) -> Pairs:
    """The padding that makes the size of the output `ceil(size / stride)`."""
    pairs = []
    for size, span, step in zip(sizes, window, stride, strict=True):
        outputs = -(-size // step)
        pairs.append(halves(max((outputs - 1) * step + span - size, 0), word))
    return tuple(pairs)


class Conv1d(Conv):
    """`Conv` along one axis, for inputs of shape `(in_channels, length)`.

    The arguments are those of `Conv` after the first.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.Conv1d(3, 8, 5, padding="same", key=jax.random.key(0))(jnp.ones((3, 32))).shape
        (8, 32)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        use_bias: bool = True,
        padding_mode: str = "ZEROS",
        dtype: Any = None,
        *,
        key: PRNGKeyArray,
    ):
        super().__init__(
            1,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            use_bias,
            padding_mode,
            dtype,
            key=key,
        )


class Conv2d(Conv):
    """`Conv` along two axes, for inputs of shape `(in_channels, height, width)`.

    The arguments are those of `Conv` after the first.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.Conv2d(3, 8, (3, 5), key=jax.random.key(0))(jnp.ones((3, 32, 32))).shape
        (8, 30, 28)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = (1, 1),
        padding: Padding = (0, 0),
        dilation: int | Sequence[int] = (1, 1),
        groups: int = 1,
        use_bias: bool = True,
        padding_mode: str = "ZEROS",
        dtype: Any = None,
        *,
        key: PRNGKeyArray,
    ):
        super().__init__(
            2,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            use_bias,
            padding_mode,
            dtype,
            key=key,
        )


class Conv3d(Conv):
    """`Conv` along three axes, for inputs of shape `(in_channels, depth, height, width)`.

    The arguments are those of `Conv` after the first.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> layer = nn.Conv3d(2, 4, 3, padding="same", key=jax.random.key(0))
        >>> layer(jnp.ones((2, 6, 6, 6))).shape
        (4, 6, 6, 6)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = (1, 1, 1),
        padding: Padding = (0, 0, 0),
        dilation: int | Sequence[int] = (1, 1, 1),
        groups: int = 1,
        use_bias: bool = True,
        padding_mode: str = "ZEROS",
        dtype: Any = None,
        *,
        key: PRNGKeyArray,
    ):
        super().__init__(
            3,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            use_bias,
            padding_mode,
            dtype,
            key=key,
        )
