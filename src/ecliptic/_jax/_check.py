"""A condition that a compiled program tests while it runs, and a call of the host where it holds.

Of the two operations here, `check` is what a traced program holds. It takes booleans and gives one:
that all is well. Under `jax.vmap` the booleans get further axes in front, so that the host learns
which elements failed, while the result stays one for the whole batch. Lowered, it is a branch that
is taken where a boolean is true, and `report`, which calls the host, stands in that branch alone.

Why not `jax.pure_callback` in place of `report`: it writes each exception to JAX's log before it
lets it go.
"""

import functools
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import mlir

from ecliptic import _jax
from ecliptic._jax._define import define, no_tangent, scalar_like


class Report(Protocol):
    """What is done on the host. It is a parameter of a program, so it has equality and a hash."""

    def fail(self, bad: Any, index: Any, mapped: int) -> None:
        """Raises what is wrong, outside of any compiled program.

        Args:
            bad: the booleans.
            index: numbers of the same shape.
            mapped: how many of the axes, at the front, are those of `jax.vmap`.
        """

    def fail_in_program(self, bad: Any, index: Any, mapped: int) -> None:
        """The same, from within a compiled program that is running."""

    def compiled(self) -> None:
        """Called when a program is compiled that holds the check."""


def check(bad: Any, index: Any, report: Report) -> Any:
    """A boolean: true, but only if none of the booleans is.

    Where one is, the host is called, which raises. What must not be used then is to be computed
    from the result, in a way that the compiler cannot simplify.

    Args:
        bad: booleans.
        index: numbers of the same shape, for the host.
        report: what the host does.
    """
    return _check_primitive().bind(bad, index, report=report, mapped=0)


def unknown_true() -> Any:
    """A true boolean of which the compiler does not know that it is true."""
    return jax.lax.optimization_barrier(jnp.ones((), bool))


@functools.cache
def _check_primitive() -> Any:
    primitive = _jax.Primitive("check")
    report_primitive = _report_primitive()

    def run(bad: Any, index: Any, **params: Any) -> Any:
        def tell() -> Any:
            return report_primitive.bind(bad, index, **params)

        fine = jnp.logical_not(jnp.any(bad))
        # (The result of a branch varies over the axes of a `shard_map` that its operand does.)
        return jax.lax.cond(fine, lambda: fine, tell)

    def eager(bad: Any, index: Any, *, report: Report, mapped: int) -> Any:
        if np.any(bad):
            report.fail(np.asarray(bad), np.asarray(index), mapped)
        return jnp.ones((), bool)

    def abstract(bad: Any, index: Any, **params: Any) -> Any:
        return scalar_like(bad, np.dtype(bool))

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        return out, no_tangent(out)

    def batch(args: Any, dims: Any, *, report: Report, mapped: int) -> Any:
        ((size, *_),) = [{x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None}]
        fronted = [
            jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
            for x, d in zip(args, dims, strict=True)
        ]
        return primitive.bind(*fronted, report=report, mapped=mapped + 1), None

    define(primitive, run, abstract, eager=eager, jvp=jvp, batch=batch)
    return primitive


@functools.cache
def _report_primitive() -> Any:
    primitive = _jax.Primitive("report")

    def abstract(bad: Any, index: Any, **params: Any) -> Any:
        return scalar_like(bad, np.dtype(bool))

    def lower(ctx: Any, *operands: Any, report: Report, mapped: int) -> Any:
        report.compiled()

        def on_host(bad: Any, index: Any) -> Any:
            # Where a compiler chose to run both branches, nothing may be wrong.
            if np.any(bad):
                report.fail_in_program(np.asarray(bad), np.asarray(index), mapped)
            return (np.ones((), bool),)

        sharding = _jax.callback_op_sharding(ctx.module_context.axis_context, None, ctx.avals_out)
        results, _, _ = mlir.emit_python_callback(
            ctx,
            on_host,
            None,
            list(operands),
            ctx.avals_in,
            ctx.avals_out,
            has_side_effect=False,
            returns_token=False,
            sharding=sharding,
        )
        return results

    primitive.def_abstract_eval(abstract)
    mlir.register_lowering(primitive, lower, cacheable=False)
    return primitive
