"""How the windows of a pool are reduced.

JAX's primitives for windows are general: on a CPU the compiler makes loops over single elements of
them, and of their derivatives scatters. Sums, maxima and minima over small windows are therefore
taken along one axis after the other, as whole arrays shifted against each other. An operation that
JAX knows nothing of is applied to shifted arrays, too, but over the whole window at once; in this
way it has all derivatives.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from ecliptic.nn._window import Pairs

# Longer windows would make long programs, with slower derivatives than JAX's.
LONGEST = 4


class Window(NamedTuple):
    """A window over all axes, that of the channels included."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: Pairs


class _Known(NamedTuple):
    """An operation for which JAX has a primitive with derivatives.

    JAX takes that primitive where the start is the very identity of the operation, in the dtype of
    the operand. A Python number stands for it in every dtype. `step` is the operation with the
    derivative of the primitive: of equal elements the first one counts.
    """

    operations: tuple[Any, ...]
    number: float
    identity: Callable[[np.dtype[Any]], Any]
    step: Callable[[Array, Array], Array]


def _lowest(dtype: np.dtype[Any]) -> Any:
    if jnp.issubdtype(dtype, jnp.bool_):
        return False
    return jnp.iinfo(dtype).min if jnp.issubdtype(dtype, jnp.integer) else -np.inf


def _highest(dtype: np.dtype[Any]) -> Any:
    if jnp.issubdtype(dtype, jnp.bool_):
        return True
    return jnp.iinfo(dtype).max if jnp.issubdtype(dtype, jnp.integer) else np.inf


def _or_nan(condition: Array, x: Array) -> Array:
    return lax.bitwise_or(condition, lax.ne(x, x))


def _larger(first: Array, second: Array) -> Array:
    return lax.select(_or_nan(lax.gt(second, first), second), second, first)


def _smaller(first: Array, second: Array) -> Array:
    return lax.select(_or_nan(lax.lt(second, first), second), second, first)


_KNOWN = (
    _Known((lax.add, jnp.add), 0, lambda dtype: 0, lax.add),
    _Known((lax.max, jnp.maximum), -np.inf, _lowest, _larger),
    _Known((lax.min, jnp.minimum), np.inf, _highest, _smaller),
)


def reduce_windows(x: Array, init: Any, operation: Callable[..., Any], window: Window) -> Array:
    """Reduce windows, as `jax.lax.reduce_window` does, with all derivatives.

    Args:
        x: the operand.
        init: where the reduction of a window starts, and the value of the padding.
        operation: an associative function of two scalars.
        window: the window.

    Returns:
        An array of the dtype of `x`.
    """
    known = next(
        (row for row in _KNOWN if any(operation is one for one in row.operations)),
        None,
    )
    if known is None:
        return _fold(x, init, operation, window)
    identity = known.identity(x.dtype)
    if isinstance(init, int | float) and init in (known.number, identity):
        return _reduce(x, identity, known, window)
    init = _start(init, x)
    unpadded = window._replace(padding=((0, 0),) * x.ndim)
    y = _reduce(_padded(x, init, window.padding), identity, known, unpadded)
    return known.operations[0](jnp.broadcast_to(init, y.shape), y)


def _reduce(x: Array, identity: Any, known: _Known, window: Window) -> Array:
    # Elsewhere than on a CPU, this has not been measured.
    if jax.default_backend() == "cpu" and _is_small(x, window):
        return _by_axes(x, identity, known.step, window)
    start = np.asarray(identity, x.dtype)
    return lax.reduce_window(
        x, start, known.operations[0], window.size, window.stride, window.padding
    )


def _is_small(x: Array, window: Window) -> bool:
    return (
        max(window.size) <= LONGEST
        and not jnp.issubdtype(x.dtype, jnp.complexfloating)
        # Sizes may be symbols, or zero.
        and all(isinstance(n, int) and n > 0 for n in x.shape)
    )


# Compiled into the caller; JAX keeps its trace, and those of its derivatives, for the next layer.
@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _by_axes(x: Array, identity: Any, step: Callable[..., Any], window: Window) -> Array:
    start = np.asarray(identity, x.dtype)
    # The last axis first: so of equal elements it is the first in the order of rows that counts.
    for axis in reversed(range(x.ndim)):
        size, stride = window.size[axis], window.stride[axis]
        pads = tuple(pair if i == axis else (0, 0) for i, pair in enumerate(window.padding))
        x = _padded(x, start, pads)
        if size == stride == 1:
            continue
        last = (x.shape[axis] - size) // stride * stride + 1
        result = lax.slice_in_dim(x, 0, last, stride, axis)
        for offset in range(1, size):
            result = step(result, lax.slice_in_dim(x, offset, offset + last, stride, axis))
        x = result
    return x


def _start(init: Any, x: Array) -> Array:
    return init if isinstance(init, jax.Array) else jnp.asarray(init, x.dtype)


def _padded(x: Array, value: Any, padding: Pairs) -> Array:
    if not any(low or high for low, high in padding):
        return x
    return lax.pad(x, value, tuple((low, high, 0) for low, high in padding))


def _fold(x: Array, init: Any, operation: Callable[..., Any], window: Window) -> Array:
    init = _start(init, x)
    x = _padded(x, init, window.padding)
    outputs = zip(x.shape, window.size, window.stride, strict=True)
    shape = tuple(max((n - k) // s + 1, 0) for n, k, s in outputs)
    result = jnp.broadcast_to(init, shape).ravel()
    if 0 in shape:
        return result.reshape(shape)
    # The operation is promised scalars.
    step = jax.vmap(operation)
    for offset in itertools.product(*map(range, window.size)):
        ends = zip(offset, shape, window.stride, strict=True)
        limit = tuple(o + (m - 1) * s + 1 for o, m, s in ends)
        result = step(result, lax.slice(x, offset, limit, window.stride).ravel())
    return result.reshape(shape)
