"""What the normalisations have in common."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ecliptic.errors import LayerArgumentError
from ecliptic.nn._check import check_size
from ecliptic.nn._precision import Precision, convert, precision_of, squares
from ecliptic.nn._traced import traced_once


def check_sizes(shape: int | Sequence[int], name: str, layer: str) -> tuple[int, ...]:
    """Make a size, or a sequence of sizes, a tuple of plain integers.

    Args:
        shape: what the caller gave.
        name: the parameter's name.
        layer: the layer's name.

    Returns:
        A tuple of non-negative integers.

    Raises:
        LayerArgumentError: one of them is no size.
    """
    sizes: Any = shape if isinstance(shape, Sequence) and not isinstance(shape, str) else (shape,)
    return tuple([check_size(size, name, layer) for size in sizes])


def check_eps(eps: Any, layer: str) -> float:
    """Make the number that is added to a variance a plain float, so that layers can be compared.

    Args:
        eps: what the caller gave.
        layer: the layer's name.

    Returns:
        A non-negative float.

    Raises:
        LayerArgumentError: it is negative, or no number that is known in advance.
    """
    try:
        number = float(eps)
    except TypeError:
        number = -1.0
    if not number >= 0:
        raise LayerArgumentError(
            f"`{layer}` got eps={eps!r}, but what is added to a variance, so that nothing is "
            "divided by zero, is a non-negative number."
        )
    return number


# One compiled call for both arrays of a layer, in place of two eager ones.
@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def ones_and_zeros(
    shape: tuple[int, ...], dtype: Any, use_weight: bool, use_bias: bool
) -> tuple[Array | None, Array | None]:
    """The weight and the bias of a map that changes nothing.

    Args:
        shape: the shape of both.
        dtype: the dtype of both.
        use_weight: whether there is a weight.
        use_bias: whether there is a bias.

    Returns:
        The weight and the bias; `None` for one that there is not.
    """
    weight = jnp.ones(shape, dtype) if use_weight else None
    bias = jnp.zeros(shape, dtype) if use_bias else None
    return weight, bias


def precision_with(x: Array, *parameters: Array | None) -> Precision:
    """The dtypes that an input is normalised in.

    Args:
        x: the input.
        parameters: weight and bias.

    Returns:
        What `precision_of` says.
    """
    return precision_of(x.dtype, *[p.dtype for p in parameters if p is not None])


def normalise(
    x: Any, weight: Array | None, bias: Array | None, eps: float, *, centre: bool
) -> Array:
    """Give all numbers of an array together the mean square 1, then scale and shift each.

    Args:
        x: anything array-like.
        weight: what to multiply by, of the shape of `x`, or `None`.
        bias: what to add, of the shape of `x`, or `None`.
        eps: what is added to the mean square.
        centre: whether to subtract the mean first.

    Returns:
        An array of the shape of `x`, and of its dtype if that can hold it.
    """
    return _normalised(eps, centre, jnp.asarray(x), weight, bias)


@traced_once(2)
def _normalised(
    eps: float, centre: bool, x: Array, weight: Array | None, bias: Array | None
) -> Array:
    precision = precision_with(x, weight, bias)
    x = convert(x, precision.computed)
    axes = tuple(range(x.ndim))
    if x.size > 0:
        if centre:
            x = jax.lax.sub(x, mean_over(x, axes))
        x = jax.lax.mul(x, convert(inverse_root(mean_over(squares(x), axes), eps), x.dtype))
    return convert(scale_and_shift(x, weight, bias, axes), precision.output)


def mean_over(x: Array, axes: tuple[int, ...]) -> Array:
    """The mean over some axes of an array of 32 bits or more.

    Args:
        x: an array with numbers in it.
        axes: the axes.

    Returns:
        An array without the axes.
    """
    count = math.prod([x.shape[axis] for axis in axes])
    return jax.lax.div(jax.lax.reduce_sum(x, axes), x.dtype.type(count))


def inverse_root(variance: Array, eps: float) -> Array:
    """What to multiply by to divide by a standard deviation."""
    return jax.lax.rsqrt(jax.lax.add(variance, variance.dtype.type(eps)))


def scale_and_shift(
    x: Array, weight: Array | None, bias: Array | None, axes: tuple[int, ...]
) -> Array:
    """Multiply by a weight and add a bias, in the dtype of what is normalised.

    Args:
        x: an array in the dtype that was computed in.
        weight: what to multiply by, or `None`.
        bias: what to add, or `None`.
        axes: the axes of `x` that `weight` and `bias` have.

    Returns:
        An array of the shape and dtype of `x`.
    """
    if weight is not None:
        x = jax.lax.mul(x, spread(weight, x, axes))
    if bias is not None:
        x = jax.lax.add(x, spread(bias, x, axes))
    return x


def spread(values: Array, x: Array, axes: tuple[int, ...] = (0,)) -> Array:
    """Values that belong to some axes of an array, in its shape and dtype."""
    values = convert(values, x.dtype)
    if values.shape == x.shape:
        return values
    return jax.lax.broadcast_in_dim(values, x.shape, axes)
