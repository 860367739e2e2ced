"""`maybe_set_p` and `select_if_vmap_p`: primitives for loops that stop at different times.

Under `jax.vmap`, a loop goes on until the last element of the batch is done. To the others nothing
must happen any more, so that each of their operations is one of these two. They cost something
only where it is needed.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from ecliptic import _jax
from ecliptic._jax._define import define, no_tangent
from ecliptic.primitive._registry import register_impl_finalisation


def _is_zero(value: Any) -> bool:
    return type(value) is _jax.Zero


def _batched(run: Any, args: Any, dims: Any) -> tuple[Any, Any]:
    return jax.vmap(run, in_axes=tuple(dims))(*args), 0


@functools.cache
def _select_primitive() -> Any:
    """The primitive, made at its first use."""
    primitive = _jax.Primitive("select_if_vmap")

    def run(pred: Any, x: Any, y: Any) -> Any:
        return x

    def abstract(pred: Any, x: Any, y: Any) -> Any:
        return x

    def jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
        pred, x, y = primals
        out = primitive.bind(pred, x, y)
        _, dx, dy = tangents
        if _is_zero(dx) and _is_zero(dy):
            return out, no_tangent(out)
        dx, dy = _jax.instantiate_zeros(dx), _jax.instantiate_zeros(dy)
        return out, primitive.bind(pred, dx, dy)

    def transpose(cotangent: Any, pred: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
        if _is_zero(cotangent):
            return None, None, None
        zeros = jnp.zeros_like(cotangent)
        dx = primitive.bind(pred, cotangent, zeros) if _jax.is_undefined_primal(x) else None
        dy = primitive.bind(pred, zeros, cotangent) if _jax.is_undefined_primal(y) else None
        return None, dx, dy

    def batch(args: Any, dims: Any) -> tuple[Any, Any]:
        if dims[0] is not None:
            return _batched(jnp.where, args, dims)
        (pred, *choices), (_, *dims) = args, dims
        size = next(a.shape[d] for a, d in zip(choices, dims, strict=True) if d is not None)
        x, y = (
            jnp.broadcast_to(a, (size, *a.shape)) if d is None else jnp.moveaxis(a, d, 0)
            for a, d in zip(choices, dims, strict=True)
        )
        return primitive.bind(pred, x, y), 0

    define(primitive, run, abstract, eager=run, jvp=jvp, transpose=transpose, batch=batch)
    register_impl_finalisation(primitive)
    return primitive


@functools.cache
def _set_primitive() -> Any:
    """The primitive, made at its first use."""
    primitive = _jax.Primitive("maybe_set")
    primitive.multiple_results = True

    def run(pred: Any, array: Any, value: Any, index: Any) -> list[Any]:
        # Out of bounds means nowhere: cheaper than to read the old value and to write it again.
        size = array.shape[0]
        index = jnp.where(index < 0, index + size, index)
        index = jnp.where(pred, index, size)
        options: Any = {"mode": "drop", "wrap_negative_indices": False}
        return [array.at[index].set(value, **options)]

    def abstract(pred: Any, array: Any, value: Any, index: Any) -> list[Any]:
        return [array]

    def jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
        pred, _, _, index = primals
        _, d_array, d_value, _ = tangents
        out = primitive.bind(*primals)
        if _is_zero(d_array) and _is_zero(d_value):
            return out, [no_tangent(out[0])]
        d_array, d_value = _jax.instantiate_zeros(d_array), _jax.instantiate_zeros(d_value)
        return out, primitive.bind(pred, d_array, d_value, index)

    def transpose(
        cotangents: Any, pred: Any, array: Any, value: Any, index: Any
    ) -> tuple[Any, Any, Any, Any]:
        (cotangent,) = cotangents
        if _is_zero(cotangent):
            return None, None, None, None
        d_array = d_value = None
        if _jax.is_undefined_primal(array):
            nothing = jnp.zeros(cotangent.shape[1:], cotangent.dtype)
            (d_array,) = primitive.bind(pred, cotangent, nothing, index)
        if _jax.is_undefined_primal(value):
            there = jax.lax.dynamic_index_in_dim(cotangent, index, keepdims=False)
            d_value = jnp.where(pred, there, jnp.zeros_like(there))
        return None, d_array, d_value, None

    def batch(args: Any, dims: Any) -> tuple[Any, Any]:
        # What is mapped over by all is one more axis of the array; `run` as it is serves for it.
        (out,), dim = _batched(run, args, dims)
        return [out], [dim]

    define(primitive, run, abstract, eager=run, jvp=jvp, transpose=transpose, batch=batch)
    register_impl_finalisation(primitive)
    return primitive


_PRIMITIVES = {"select_if_vmap_p": _select_primitive, "maybe_set_p": _set_primitive}


def __getattr__(name: str) -> Any:
    """The primitives.

    `select_if_vmap_p.bind(pred, x, y)` is `x`; or where `pred` is mapped by `jax.vmap`, `x` or `y`.
    For a loop whose predicate is true as long as it runs: only as part of a batch, it may be false.
    `x` and `y` are arrays of one shape and dtype, `pred` is a scalar boolean.

    `maybe_set_p.bind(pred, array, value, index)` is `[array.at[index].set(value)]` if `pred` is
    true. `index` is a scalar integer along the first axis (from the end if negative), `pred` a
    scalar boolean, `value` has the dtype of `array`, and its shape without the first axis. What is
    not written costs nothing; the derivative is as cheap.
    """
    if name not in _PRIMITIVES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _PRIMITIVES[name]()


def select_if_vmap(pred: Any, x: Any, y: Any) -> Any:
    """What `select_if_vmap_p` does."""
    return _select_primitive().bind(pred, x, y)
