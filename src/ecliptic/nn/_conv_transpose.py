"""`ConvTranspose`: transposed convolutions along any number of axes."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from ecliptic.errors import LayerArgumentError, ShapeError
from ecliptic.module import Module, field
from ecliptic.nn._check import check_size
from ecliptic.nn._conv import Padding, convolve, draw
from ecliptic.nn._random import default_dtype
from ecliptic.nn._window import (
    Pairs,
    check_at_least,
    check_by_axis,
    check_example,
    check_groups,
    check_padding,
    check_padding_mode,
    halves,
    spans,
)


class ConvTranspose(Module):
    """The transpose of a convolution of one example: it goes from small sizes back to large ones.

    A `Conv` with the same `kernel_size`, `stride`, `padding` and `dilation` maps the size of the
    output to that of the input. Where several sizes are mapped to one, `output_padding` says which
    is meant. The computation is a convolution over the input with `stride - 1` zeros between its
    elements.

    Weight and bias are drawn uniformly between `±1/sqrt(n)`, where
    `n = in_channels / groups * prod(kernel_size)`. The weight has shape
    `(out_channels, in_channels / groups, *kernel_size)`: it is that of the convolution that is
    computed. The transpose of a `Conv` has the channels of its weight swapped in each group and the
    spatial axes flipped. PyTorch keeps the weight of that `Conv` instead, of shape
    `(in_channels, out_channels / groups, *kernel_size)`, so that a weight from there is converted
    by

        def from_torch(weight, groups=1):
            inputs, outputs, *kernel_size = weight.shape
            weight = weight.reshape(groups, inputs // groups, outputs, *kernel_size)
            weight = weight.swapaxes(1, 2).reshape(groups * outputs, -1, *kernel_size)
            return jnp.flip(weight, range(2, weight.ndim))

    and a bias by `bias.reshape(-1, *[1] * num_spatial_dims)`.

    Args:
        num_spatial_dims: the number of spatial axes.
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the output.
        kernel_size: the size of the kernel, an integer for all axes or one for each.
        stride: how many elements of the output there are for one of the input, for all axes or for
            each.
        padding: the padding of the convolution that this is the transpose of: by so many elements
            the output is shorter at both ends. An integer for all axes, or a sequence of one
            integer for each axis or of one pair (before, after) for each axis. `"VALID"` is none;
            with `"SAME"` and `"SAME_LOWER"` the size of the output is that of the input times the
            stride.
        output_padding: by how many elements the output is longer after each axis, less than the
            stride, for all axes or for each. With `"SAME"` and `"SAME_LOWER"`, where the output
            has the largest of the possible sizes without it, by how many it is shorter.
        dilation: the distance of neighbouring elements of the kernel, for all axes or for each.
        groups: into how many groups the channels are divided; an output sees the input channels of
            its group only.
        use_bias: whether to add a bias; without one the field `bias` is `None`.
        padding_mode: `"ZEROS"`; or `"CIRCULAR"`, the transpose of a convolution along circles, for
            `padding="SAME"` and `"SAME_LOWER"` without `output_padding`. Small letters do too.
        dtype: the dtype of weight and bias, floating or complex. By default JAX's: float64 if
            64 bits are enabled, float32 otherwise.
        key: the PRNG key that weight and bias are drawn with.

    Raises:
        LayerArgumentError: an argument has a wrong value, or the values do not go together.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> key = jax.random.key(0)
        >>> up = nn.ConvTranspose(2, 8, 3, kernel_size=4, stride=2, padding=1, key=key)
        >>> up(jnp.ones((8, 16, 16))).shape
        (3, 32, 32)

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning",
    arXiv:1603.07285 (2016).
    """

    num_spatial_dims: int = field(static=True)
    weight: Array
    bias: Array | None
    in_channels: int = field(static=True)
    out_channels: int = field(static=True)
    kernel_size: tuple[int, ...] = field(static=True)
    stride: tuple[int, ...] = field(static=True)
    padding: str | Pairs = field(static=True)
    output_padding: tuple[int, ...] = field(static=True)
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
        output_padding: int | Sequence[int] = 0,
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
        self.output_padding = check_by_axis(output_padding, axes, 0, "output_padding", name)
        self.dilation = check_by_axis(dilation, axes, 1, "dilation", name)
        self.groups = check_groups(groups, self.in_channels, self.out_channels, name)
        self.use_bias = use_bias
        self.padding_mode = check_padding_mode(padding_mode, name)
        _check_together(self, name)
        self.weight, self.bias = draw(self, default_dtype(dtype, name), key)

    def __call__(self, x: Array, *, key: PRNGKeyArray | None = None) -> Array:
        """Apply the transposed convolution to one example.

        Args:
            x: an array of shape `(in_channels, n1, ..., nd)`.
            key: ignored; layers of all kinds are called alike.

        Returns:
            An array of shape `(out_channels, m1, ..., md)`.

        Raises:
            ShapeError: `x` has another rank or number of channels, or the padding leaves nothing.
        """
        name = type(self).__name__
        x = check_example(x, self.num_spatial_dims, self.in_channels, name)
        padding = self._padding()
        _check_rest(x.shape, spans(self.kernel_size, self.dilation), self.stride, padding, name)
        if self.padding_mode == "CIRCULAR":
            x, padding = _wrap(x, padding, self.stride)
        ones = (1,) * self.num_spatial_dims
        return convolve(self, x, padding, stride=ones, input_dilation=self.stride)

    def _padding(self) -> Pairs:
        """The padding of the convolution that computes this one."""
        axes = zip(
            spans(self.kernel_size, self.dilation), self.stride, self.output_padding, strict=True
        )
        if self.padding == "VALID":
            return tuple((span - 1, span - 1 + extra) for span, _, extra in axes)
        if not isinstance(self.padding, str):
            return tuple(
                (span - 1 - low, span - 1 - high + extra)
                for (span, _, extra), (low, high) in zip(axes, self.padding, strict=True)
            )
        pairs = []
        for span, step, extra in axes:
            # What a convolution to ceil(size / step) outputs pads before a size of
            # outputs * step - extra, and then what is missing to that size.
            low, _ = halves(max(span - step + extra, 0), self.padding)
            pairs.append((span - 1 - low, step - 1 - extra + low))
        return tuple(pairs)


def _check_together(layer: ConvTranspose, name: str) -> None:
    if any(o >= s for o, s in zip(layer.output_padding, layer.stride, strict=True)):
        raise LayerArgumentError(
            f"`{name}` got output_padding={layer.output_padding} and stride={layer.stride}, but "
            "output_padding must be less than stride along each axis: it chooses between the sizes "
            "that a convolution with this stride maps to one."
        )
    if layer.padding_mode in ("REFLECT", "REPLICATE"):
        raise LayerArgumentError(
            f"`{name}` got padding_mode={layer.padding_mode!r}, but a transposed convolution has "
            "only 'ZEROS' and 'CIRCULAR'. To continue an image by reflection or replication, apply "
            "`jnp.pad` to the input and `Conv` after a resize, or crop the output."
        )
    if layer.padding_mode == "CIRCULAR":
        if layer.padding not in ("SAME", "SAME_LOWER"):
            raise LayerArgumentError(
                f"`{name}` got padding_mode='CIRCULAR' and padding={layer.padding!r}, but along a "
                "circle the size of the output is fixed: use padding='SAME' or 'SAME_LOWER'."
            )
        if any(layer.output_padding):
            raise LayerArgumentError(
                f"`{name}` got padding_mode='CIRCULAR' and output_padding={layer.output_padding}, "
                "but along a circle the size of the output is the size of the input times the "
                "stride: use output_padding=0."
            )


def _check_rest(
    shape: tuple[int, ...],
    window: tuple[int, ...],
    stride: tuple[int, ...],
    padding: Pairs,
    name: str,
) -> None:
    sizes = zip(shape[1:], window, stride, padding, strict=True)
    for axis, (size, span, step, (low, high)) in enumerate(sizes, 1):
        # Sizes may be symbols, which are not compared.
        if isinstance(size, int) and size and (size - 1) * step + 1 + low + high < span:
            raise ShapeError(
                f"`{name}` leaves no element of axis {axis} of x of shape {shape}: its padding "
                "cuts off the whole output. Use a smaller padding."
            )


def _wrap(x: Array, padding: Pairs, stride: tuple[int, ...]) -> tuple[Array, Pairs]:
    """Continue the input along the circle in place of zeros.

    `padding` counts positions of the dilated input. The elements that lie in it are added, and
    what is left of it is zeros between elements, more or fewer.
    """
    elements, rest = [(0, 0)], []
    for (low, high), step in zip(padding, stride, strict=True):
        before, after = -(-low // step), high // step
        elements.append((before, after))
        rest.append((low - before * step, high - after * step))
    return jnp.pad(x, elements, mode="wrap"), tuple(rest)


class ConvTranspose1d(ConvTranspose):
    """`ConvTranspose` along one axis, for inputs of shape `(in_channels, length)`.

    The arguments are those of `ConvTranspose` after the first, with `output_padding` before
    `padding`.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.ConvTranspose1d(3, 8, 2, stride=2, key=jax.random.key(0))(jnp.ones((3, 16))).shape
        (8, 32)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        output_padding: int | Sequence[int] = 0,
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
            output_padding,
            dilation,
            groups,
            use_bias,
            padding_mode,
            dtype,
            key=key,
        )


class ConvTranspose2d(ConvTranspose):
    """`ConvTranspose` along two axes, for inputs of shape `(in_channels, height, width)`.

    The arguments are those of `ConvTranspose` after the first, with `output_padding` before
    `padding`.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> layer = nn.ConvTranspose2d(3, 8, 3, stride=2, padding="same", key=jax.random.key(0))
        >>> layer(jnp.ones((3, 16, 16))).shape
        (8, 32, 32)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = (1, 1),
        output_padding: int | Sequence[int] = (0, 0),
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
            output_padding,
            dilation,
            groups,
            use_bias,
            padding_mode,
            dtype,
            key=key,
        )


class ConvTranspose3d(ConvTranspose):
    """`ConvTranspose` along three axes, for inputs of shape `(in_channels, depth, height, width)`.

    The arguments are those of `ConvTranspose` after the first, with `output_padding` before
    `padding`.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> layer = nn.ConvTranspose3d(2, 4, 3, stride=2, key=jax.random.key(0))
        >>> layer(jnp.ones((2, 3, 3, 3))).shape
        (4, 7, 7, 7)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = (1, 1, 1),
        output_padding: int | Sequence[int] = (0, 0, 0),
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
            output_padding,
            dilation,
            groups,
            use_bias,
            padding_mode,
            dtype,
            key=key,
        )
