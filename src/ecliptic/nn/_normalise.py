"""What the normalisations that need no state have in common."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ecliptic.errors import LayerArgumentError
from ecliptic.nn._check import check_size
from ecliptic.nn._precision import at_least_single, convert, output_dtype, precision_of, squares


class _Absent:
    def __repr__(self) -> str:
        return "<no state>"


# Stands for "called without a state": a state may be any object, `None` too.
ABSENT: Any = _Absent()


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


def working_dtype(x: Any, *parameters: Array | None) -> np.dtype[Any]:
    """The dtype in which an input is normalised: wide, and complex if anything is.

    Args:
        x: the input.
        parameters: weight and bias.

    Returns:
        A dtype of 32 bits or more a part.
    """
    dtypes = [jnp.result_type(x)]
    dtypes += [
        parameter.dtype
        for parameter in parameters
        if parameter is not None and jnp.issubdtype(parameter.dtype, jnp.complexfloating)
    ]
    return at_least_single(*dtypes)


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
    x = jnp.asarray(x)
    precision = precision_of(x.dtype, *[p.dtype for p in (weight, bias) if p is not None])
    x = convert(x, precision.computed)
    if x.size > 0:
        axes = tuple(range(x.ndim))
        if centre:
            x = jax.lax.sub(x, mean(x, axes))
        x = jax.lax.mul(x, convert(inverse_root(mean(squares(x), axes), eps), x.dtype))
    if weight is not None:
        x = jax.lax.mul(x, convert(weight, x.dtype))
    if bias is not None:
        x = jax.lax.add(x, convert(bias, x.dtype))
    return convert(x, precision.output)


def mean(x: Array, axes: tuple[int, ...]) -> Array:
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


def affine(
    x: Array, weight: Array | None, bias: Array | None, dtype: Any, axes: tuple[int, ...] = ()
) -> Array:
    """Scale and shift normalised numbers, and go back to the dtype of the input.

    Args:
        x: an array in the dtype that was computed in.
        weight: what to multiply by, or `None`.
        bias: what to add, or `None`.
        dtype: the dtype of the layer's input.
        axes: the axes of `x` that `weight` and `bias` do not have.

    Returns:
        An array of the shape of `x`.
    """
    if weight is not None:
        x = x * jnp.expand_dims(weight.astype(x.dtype), axes)
    if bias is not None:
        x = x + jnp.expand_dims(bias.astype(x.dtype), axes)
    return x.astype(output_dtype(dtype, x.dtype))
