"""A number that the host gives out while a program runs.

It is what `jax.experimental.io_callback` does, as an operation of its own, for the sake of
`jax.checkpoint`: that refuses callbacks with results, and would ask again on the way back. Here,
the number that was given on the way there is kept.
"""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.experimental import io_callback
from jax.interpreters import ad, batching, mlir, partial_eval

from ecliptic import _jax

_ties: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar("ties", default=())


@contextlib.contextmanager
def tied_to(values: Sequence[Any]) -> Iterator[None]:
    """Says what the numbers asked for inside belong to.

    The derivative of a loop moves whatever does not depend on the loop out of it. Where there is to
    be a number for each step, it has to depend on the step.

    Args:
        values: any values; those that are traced count.
    """
    token = _ties.set(tuple(x for x in values if isinstance(x, Tracer)))
    try:
        yield
    finally:
        _ties.reset(token)


def handle(give: Callable[[], int]) -> jax.Array:
    """A scalar of dtype `int32`: what `give` returns when the program gets there.

    It is called once for a whole batch. The result has to be used in a way that JAX cannot leave
    out, or `give` may not be called.

    Args:
        give: the function, called on the host.
    """
    return _primitive().bind(*_ties.get(), give=give)


@functools.cache
def _primitive() -> Any:
    primitive = _jax.Primitive("handle")

    def run(*ties: Any, give: Callable[[], int]) -> Any:
        result = jax.ShapeDtypeStruct((), jnp.int32)
        return io_callback(lambda: np.asarray(give(), np.int32), result, ordered=False)

    def outside(*ties: Any, give: Callable[[], int]) -> Any:
        return jnp.asarray(give(), jnp.int32)

    def abstract(*ties: Any, give: Callable[[], int]) -> Any:
        return ShapedArray((), np.dtype(np.int32))

    def batch(ties: Any, dims: Any, *, give: Callable[[], int]) -> Any:
        return primitive.bind(*ties, give=give), None

    def jvp(ties: Any, tangents: Any, *, give: Callable[[], int]) -> Any:
        number = primitive.bind(*ties, give=give)
        return number, ad.Zero(jax.typeof(number).to_tangent_aval())

    def kept(saveable: Any, unknown: Any, instantiated: Any, eqn: Any) -> Any:
        # Known on the way there, and a residual of it for the way back.
        return eqn, None, [False], [True], list(eqn.outvars)

    primitive.def_impl(outside)
    primitive.def_abstract_eval(abstract)
    mlir.register_lowering(primitive, mlir.lower_fun(run, multiple_results=False))
    batching.primitive_batchers[primitive] = batch
    ad.primitive_jvps[primitive] = jvp
    partial_eval.partial_eval_jaxpr_custom_rules[primitive] = kept
    return primitive
