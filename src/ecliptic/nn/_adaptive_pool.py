"""`AdaptivePool`: pooling to an output of a given size."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PRNGKeyArray

from ecliptic.errors import ShapeError
from ecliptic.module import Module, field
from ecliptic.nn._window import check_at_least, check_by_axis, check_example

# Reductions that take all windows of an axis at once.
_BY_AXIS = (jnp.mean, jnp.max, jnp.min, jnp.sum)


class AdaptivePool(Module):
    """Pools one example, channels first, to an output of a given size.

    Each spatial axis in turn is divided into as many windows as the output has elements there,
    side by side. If the sizes do not divide, the first windows are longer by one than the others.
    PyTorch lets windows overlap in that case, so that results differ from there; they agree where
    the sizes divide.

    Args:
        target_shape: the spatial shape of the output: an integer for all axes, or one for each.
        num_spatial_dims: the number of spatial axes.
        operation: a function from a window, a vector, to a scalar. It is a leaf of the tree. It is
            applied along one axis after the other, so it has to be one such as mean or maximum,
            for which this is the same as over the whole window.

    Raises:
        LayerArgumentError: an argument has a wrong value.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> pool = nn.AdaptivePool(2, num_spatial_dims=1, operation=jnp.max)
        >>> pool(jnp.array([[1.0, 2.0, 3.0, 4.0, 5.0]]))
        Array([[3., 5.]], dtype=float32)
    """

    target_shape: tuple[int, ...] = field(static=True)
    operation: Callable[[Array], Array]

    def __init__(
        self,
        target_shape: int | Sequence[int],
        num_spatial_dims: int,
        operation: Callable[..., Any],
    ):
        name = type(self).__name__
        axes = check_at_least(num_spatial_dims, 1, "num_spatial_dims", name)
        self.target_shape = check_by_axis(target_shape, axes, 1, "target_shape", name)
        self.operation = operation

    def __call__(self, x: Array, *, key: PRNGKeyArray | None = None) -> Array:
        """Pool one example.

        Args:
            x: an array of shape `(channels, n1, ..., nd)`, no axis shorter than that of the output.
            key: ignored; layers of all kinds are called alike.

        Returns:
            An array of shape `(channels, *target_shape)`.

        Raises:
            ShapeError: `x` has another rank, or an axis is too short.
        """
        name = type(self).__name__
        x = check_example(x, len(self.target_shape), None, name)
        for axis, (size, target) in enumerate(zip(x.shape[1:], self.target_shape, strict=True), 1):
            if size < target:
                raise ShapeError(
                    f"`{name}` was made with target_shape={self.target_shape}, but x of shape "
                    f"{x.shape} has only {size} elements along axis {axis} for {target} windows."
                )
        if self.operation is jnp.mean and _divides(x.shape[1:], self.target_shape):
            return _mean(x, self.target_shape)
        for axis, target in enumerate(self.target_shape, 1):
            x = _pool_axis(x, axis, target, self.operation)
        return x


def _divides(sizes: tuple[int, ...], targets: tuple[int, ...]) -> bool:
    return all(size % target == 0 for size, target in zip(sizes, targets, strict=True))


def _mean(x: Array, targets: tuple[int, ...]) -> Array:
    """The mean over all axes at once, where all windows are equal: one reduction for many."""
    shape = [x.shape[0]]
    for size, target in zip(x.shape[1:], targets, strict=True):
        shape += [target, size // target]
    return jnp.mean(x.reshape(shape), axis=tuple(range(2, len(shape), 2)))


def _pool_axis(x: Array, axis: int, target: int, operation: Callable[..., Any]) -> Array:
    size, longer = divmod(x.shape[axis], target)
    if longer == 0:
        return _equal_windows(x, axis, target, operation)
    end = longer * (size + 1)
    first = lax.slice_in_dim(x, 0, end, axis=axis)
    rest = lax.slice_in_dim(x, end, None, axis=axis)
    parts = (
        _equal_windows(first, axis, longer, operation),
        _equal_windows(rest, axis, target - longer, operation),
    )
    return lax.concatenate(parts, axis)


def _equal_windows(x: Array, axis: int, target: int, operation: Callable[..., Any]) -> Array:
    shape = x.shape
    x = x.reshape(*shape[:axis], target, shape[axis] // target, *shape[axis + 1 :])
    if any(operation is known for known in _BY_AXIS):
        return operation(x, axis=axis + 1)
    x = jnp.moveaxis(x, axis + 1, -1)
    y = jax.vmap(operation)(x.reshape(-1, x.shape[-1]))
    return y.reshape(x.shape[:-1])


class _AdaptiveMean(AdaptivePool):
    _axes: ClassVar[int]

    def __init__(self, target_shape: int | Sequence[int]):
        super().__init__(target_shape, self._axes, jnp.mean)


class _AdaptiveMax(AdaptivePool):
    _axes: ClassVar[int]

    def __init__(self, target_shape: int | Sequence[int]):
        super().__init__(target_shape, self._axes, jnp.max)


class AdaptiveAvgPool1d(_AdaptiveMean):
    """The mean of windows along one axis, to an output of a given size.

    `AdaptivePool` with the mean, for inputs of shape `(channels, length)`.

    Args:
        target_shape: the spatial shape of the output.

    Raises:
        LayerArgumentError: `target_shape` has a wrong value.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.AdaptiveAvgPool1d(4)(jnp.ones((2, 8))).shape
        (2, 4)
    """

    _axes = 1


class AdaptiveAvgPool2d(_AdaptiveMean):
    """The mean of windows along two axes, to an output of a given size.

    `AdaptivePool` with the mean, for inputs of shape `(channels, height, width)`.

    Args:
        target_shape: the spatial shape of the output: an integer for all axes, or one for each.

    Raises:
        LayerArgumentError: `target_shape` has a wrong value.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.AdaptiveAvgPool2d(4)(jnp.ones((2, 8, 9))).shape
        (2, 4, 4)
    """

    _axes = 2


class AdaptiveAvgPool3d(_AdaptiveMean):
    """The mean of windows along three axes, to an output of a given size.

    `AdaptivePool` with the mean, for inputs of shape `(channels, depth, height, width)`.

    Args:
        target_shape: the spatial shape of the output: an integer for all axes, or one for each.

    Raises:
        LayerArgumentError: `target_shape` has a wrong value.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.AdaptiveAvgPool3d(4)(jnp.ones((2, 8, 9, 5))).shape
        (2, 4, 4, 4)
    """

    _axes = 3


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The maximum of windows along one axis, to an output of a given size.

    `AdaptivePool` with the maximum, for inputs of shape `(channels, length)`.

    Args:
        target_shape: the spatial shape of the output.

    Raises:
        LayerArgumentError: `target_shape` has a wrong value.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.AdaptiveMaxPool1d(4)(jnp.ones((2, 8))).shape
        (2, 4)
    """

    _axes = 1


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The maximum of windows along two axes, to an output of a given size.

    `AdaptivePool` with the maximum, for inputs of shape `(channels, height, width)`.

    Args:
        target_shape: the spatial shape of the output: an integer for all axes, or one for each.

    Raises:
        LayerArgumentError: `target_shape` has a wrong value.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.AdaptiveMaxPool2d(4)(jnp.ones((2, 8, 9))).shape
        (2, 4, 4)
    """

    _axes = 2


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The maximum of windows along three axes, to an output of a given size.

    `AdaptivePool` with the maximum, for inputs of shape `(channels, depth, height, width)`.

    Args:
        target_shape: the spatial shape of the output: an integer for all axes, or one for each.

    Raises:
        LayerArgumentError: `target_shape` has a wrong value.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.AdaptiveMaxPool3d(4)(jnp.ones((2, 8, 9, 5))).shape
        (2, 4, 4, 4)
    """

    _axes = 3
