"""How an operation is made known to JAX: one call in place of six registries."""

from collections.abc import Callable
from typing import Any

import jax
from jax.interpreters import ad, batching, mlir


def define(
    primitive: Any,
    run: Callable[..., Any],
    abstract: Callable[..., Any],
    *,
    jvp: Callable[..., Any],
    transpose: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
    batch_axis: Callable[..., Any] | None = None,
) -> None:
    """Gives a primitive its rules.

    Args:
        primitive: the primitive, with several results.
        run: what it does, in terms of others.
        abstract: the shapes of its results.
        jvp: its derivative.
        transpose: the transpose, if it is linear in some arguments.
        batch: its rule under `jax.vmap`.
        batch_axis: the same, given the axis as its first argument.
    """

    def outside(*args: Any, **params: Any) -> Any:
        return jax.jit(lambda *args: run(*args, **params))(*args)

    primitive.def_impl(outside)
    primitive.def_abstract_eval(abstract)
    mlir.register_lowering(primitive, mlir.lower_fun(run, multiple_results=True))
    ad.primitive_jvps[primitive] = jvp
    if transpose is not None:
        ad.primitive_transposes[primitive] = transpose
    if batch is not None:
        batching.primitive_batchers[primitive] = batch
    if batch_axis is not None:
        batching.fancy_primitive_batchers[primitive] = batch_axis


def no_tangent(value: Any) -> Any:
    """The tangent of an array that depends on nothing that is differentiated."""
    return ad.Zero(jax.typeof(value).to_tangent_aval())
