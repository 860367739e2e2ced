"""How an operation is made known to JAX: one call in place of six registries."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax._src import core
from jax.interpreters import ad, batching, mlir
from jax.sharding import PartitionSpec


def define(
    primitive: Any,
    run: Callable[..., Any],
    abstract: Callable[..., Any],
    *,
    eager: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
    transpose: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
    batch_axis: Callable[..., Any] | None = None,
) -> None:
    """Gives a primitive its rules.

    Where JAX evaluates a program, it passes on the numbers that stand in it as they are, a kind of
    Python number. The rules get arrays in their place.

    Args:
        primitive: the primitive.
        run: what it does, in terms of others.
        abstract: the shapes of its results.
        eager: what it does outside of any trace. Default: `run`, compiled as one program.
        jvp: its derivative, if it has one.
        transpose: the transpose, if it is linear in some arguments.
        batch: its rule under `jax.vmap`.
        batch_axis: the same, given the axis as its first argument.
    """

    def outside(*args: Any, **params: Any) -> Any:
        return jax.jit(lambda *args: run(*args, **params))(*args)

    several = primitive.multiple_results
    primitive.def_impl(_with_arrays(outside if eager is None else eager))
    primitive.def_abstract_eval(abstract)
    mlir.register_lowering(primitive, mlir.lower_fun(run, multiple_results=several))
    if jvp is not None:
        ad.primitive_jvps[primitive] = lambda primals, tangents, **params: jvp(
            _arrays(primals), tangents, **params
        )
    if transpose is not None:
        ad.primitive_transposes[primitive] = lambda cotangents, *args, **params: transpose(
            cotangents, *_arrays(args), **params
        )
    if batch is not None:
        batching.primitive_batchers[primitive] = lambda args, dims, **params: batch(
            _arrays(args), dims, **params
        )
    if batch_axis is not None:
        batching.fancy_primitive_batchers[primitive] = lambda axis, args, dims, **params: (
            batch_axis(axis, _arrays(args), dims, **params)
        )


def _with_arrays(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **params: rule(*_arrays(args), **params)


def _arrays(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([_array(x) if isinstance(x, _NUMBERS) else x for x in values])


_NUMBERS = (bool, int, float, complex)


def _array(number: Any) -> Any:
    aval = jax.typeof(number)
    return jnp.asarray(number, None if aval.weak_type else aval.dtype)


def no_tangent(value: Any) -> Any:
    """The tangent of an array that depends on nothing that is differentiated."""
    return ad.Zero(jax.typeof(value).to_tangent_aval())


def scalar_like(aval: Any, dtype: Any) -> Any:
    """The type of a scalar that is computed from an array of this type.

    It varies over the same axes inside of `jax.shard_map`, and lies on the same mesh.

    Args:
        aval: the type of the array.
        dtype: the dtype of the scalar.
    """
    sharding = aval.sharding.update(spec=PartitionSpec())
    return aval.update(shape=(), dtype=dtype, sharding=sharding)


def of_element(aval: Any) -> Any:
    """The type of an element along the first axis of an array of this type."""
    return core.mapped_aval(aval.shape[0], 0, aval)


def of_batch(size: int, aval: Any) -> Any:
    """The type of so many arrays of this type, along a new first axis."""
    return core.unmapped_aval(size, 0, aval)
