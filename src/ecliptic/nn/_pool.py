"""`Pool`: a binary operation over windows, and its mean and maximum."""

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, PRNGKeyArray

from ecliptic.module import Module, field
from ecliptic.nn._reduce import Window, reduce_windows
from ecliptic.nn._window import (
    Pairs,
    check_at_least,
    check_by_axis,
    check_example,
    check_padding,
    check_room,
)

Padding = int | Sequence[int] | Sequence[tuple[int, int]]


class Pool(Module):
    """Reduces windows of one example, channels first, by an associative operation.

    Each channel is reduced on its own. Forward and reverse differentiation work for any operation
    that has derivatives.

    Args:
        init: where the reduction of a window starts, and the value of the padding: the identity of
            `operation`, for instance `0` for a sum. It is a leaf of the tree, as `operation` is.
        operation: an associative function of two scalars, for instance `jax.lax.add`. The sums,
            maxima and minima of `jax.lax` and `jax.numpy` are known; for all other operations the
            program holds one step for each position of the window.
        num_spatial_dims: the number of spatial axes.
        kernel_size: the size of the window, an integer for all axes or one for each.
        stride: how far the window moves, for all axes or for each. Other libraries take
            `kernel_size` by default, this one takes 1.
        padding: how many elements are added at both ends: an integer for all axes, or a sequence
            of one integer for each axis or of one pair (before, after) for each axis.
        use_ceil: whether one more window, which ends after the padding, covers what is left at
            the end of an axis. It has to start within the input or the padding before it.

    Raises:
        LayerArgumentError: an argument has a wrong value.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> pool = nn.Pool(0, jax.lax.add, num_spatial_dims=1, kernel_size=2, stride=2)
        >>> pool(jnp.array([[1.0, 2.0, 3.0, 4.0, 5.0]]))
        Array([[3., 7.]], dtype=float32)
    """

    init: int | float | Array
    operation: Callable[[Array, Array], Array]
    num_spatial_dims: int = field(static=True)
    kernel_size: tuple[int, ...] = field(static=True)
    stride: tuple[int, ...] = field(static=True)
    padding: Pairs = field(static=True)
    use_ceil: bool = field(static=True)

    def __init__(
        self,
        init: int | float | Array,
        operation: Callable[[Array, Array], Array],
        num_spatial_dims: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        use_ceil: bool = False,
    ):
        name = type(self).__name__
        axes = check_at_least(num_spatial_dims, 1, "num_spatial_dims", name)
        self.init = init
        self.operation = operation
        self.num_spatial_dims = axes
        self.kernel_size = check_by_axis(kernel_size, axes, 1, "kernel_size", name)
        self.stride = check_by_axis(stride, axes, 1, "stride", name)
        self.padding = check_padding(padding, axes, name, words=False)  # pyright: ignore[reportAttributeAccessIssue]
        self.use_ceil = use_ceil

    def __call__(self, x: Array, *, key: PRNGKeyArray | None = None) -> Array:
        """Reduce the windows of one example.

        Args:
            x: an array of shape `(channels, n1, ..., nd)`.
            key: ignored; layers of all kinds are called alike.

        Returns:
            An array of shape `(channels, m1, ..., md)` and the dtype of `x`.

        Raises:
            ShapeError: `x` has another rank, or the window does not fit in.
        """
        name = type(self).__name__
        x = check_example(x, self.num_spatial_dims, None, name)
        check_room(x.shape, self.kernel_size, self.padding, name)
        padding = self.padding
        if self.use_ceil:
            padding = _extended(x.shape[1:], self.kernel_size, self.stride, padding)
        window = Window((1, *self.kernel_size), (1, *self.stride), ((0, 0), *padding))
        return reduce_windows(x, self.init, self.operation, window)


def _extended(
    sizes: tuple[int, ...], kernel_size: tuple[int, ...], stride: tuple[int, ...], padding: Pairs
) -> Pairs:
    """The padding with which what is left after the last whole window has a window, too."""
    pairs = []
    for size, span, step, (low, high) in zip(sizes, kernel_size, stride, padding, strict=True):
        steps, left = divmod(size + low + high - span, step)
        # Where another window would start. PyTorch, too, leaves it out if it holds padding only.
        start = (steps + 1) * step
        pairs.append((low, high + step - left if left and start < size + low else high))
    return tuple(pairs)


class _AveragePool(Pool):
    """The mean of windows. Windows over the padding count its zeros."""

    _axes: ClassVar[int]

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        use_ceil: bool = False,
    ):
        super().__init__(0, lax.add, self._axes, kernel_size, stride, padding, use_ceil)

    def __call__(self, x: Array, *, key: PRNGKeyArray | None = None) -> Array:
        """Take the mean of the windows of one example.

        Args:
            x: an array of shape `(channels, n1, ..., nd)`.
            key: ignored; layers of all kinds are called alike.

        Returns:
            An array of shape `(channels, m1, ..., md)`, of the dtype of `x` if that is floating
            or complex and of JAX's default otherwise.

        Raises:
            ShapeError: `x` has another rank, or the window does not fit in.
        """
        x = check_example(x, self.num_spatial_dims, None, type(self).__name__)
        dtype = x.dtype if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.result_type(float)
        # Sums of half precision would overflow and lose digits, those of integers wrap around.
        exact = jnp.float32 if dtype in (jnp.float16, jnp.bfloat16) else dtype
        y = super().__call__(x if x.dtype == exact else x.astype(exact))
        y = lax.div(y, np.asarray(math.prod(self.kernel_size), exact))
        return y if dtype == exact else y.astype(dtype)


class _MaxPool(Pool):
    """The maximum of windows."""

    _axes: ClassVar[int]

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        use_ceil: bool = False,
    ):
        super().__init__(-math.inf, lax.max, self._axes, kernel_size, stride, padding, use_ceil)


class AvgPool1d(_AveragePool):
    """The mean of windows along one axis, for inputs of shape `(channels, length)`.

    The arguments are those of `Pool` after the third. The sum of a window is divided by the size of
    the kernel, zeros of the padding included.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.AvgPool1d(2, 2)(jnp.array([[1.0, 2.0, 3.0, 4.0]]))
        Array([[1.5, 3.5]], dtype=float32)
    """

    _axes = 1


class AvgPool2d(_AveragePool):
    """The mean of windows along two axes, for inputs of shape `(channels, height, width)`.

    The arguments are those of `Pool` after the third. The sum of a window is divided by the size of
    the kernel, zeros of the padding included.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.AvgPool2d(2, 2)(jnp.ones((3, 8, 8))).shape
        (3, 4, 4)
    """

    _axes = 2


class AvgPool3d(_AveragePool):
    """The mean of windows along three axes, for inputs of shape `(channels, depth, height, width)`.

    The arguments are those of `Pool` after the third. The sum of a window is divided by the size of
    the kernel, zeros of the padding included.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.AvgPool3d(2, 2)(jnp.ones((3, 4, 4, 4))).shape
        (3, 2, 2, 2)
    """

    _axes = 3


class MaxPool1d(_MaxPool):
    """The maximum of windows along one axis, for inputs of shape `(channels, length)`.

    The arguments are those of `Pool` after the third. The padding is never the maximum.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.MaxPool1d(2, 2, use_ceil=True)(jnp.array([[1.0, 2.0, 3.0, 4.0, 5.0]]))
        Array([[2., 4., 5.]], dtype=float32)
    """

    _axes = 1


class MaxPool2d(_MaxPool):
    """The maximum of windows along two axes, for inputs of shape `(channels, height, width)`.

    The arguments are those of `Pool` after the third. The padding is never the maximum.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.MaxPool2d(3, 2, padding=1)(jnp.ones((3, 8, 8))).shape
        (3, 4, 4)
    """

    _axes = 2


class MaxPool3d(_MaxPool):
    """The maximum of windows along three axes.

    Inputs have shape `(channels, depth, height, width)`. The arguments are those of `Pool` after
    the third. The padding is never the maximum.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.MaxPool3d(2, 2)(jnp.ones((3, 4, 4, 4))).shape
        (3, 2, 2, 2)
    """

    _axes = 3
