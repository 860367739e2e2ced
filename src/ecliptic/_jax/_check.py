"""A call of the host that a program makes where it found something wrong.

It takes booleans, for the host to say which were true, and gives one: true, but only if the host
lets the program go on. Under `jax.vmap` the booleans get further axes in front, so that the host
learns which elements failed, while the result stays one for the whole batch. It belongs into a
branch that is taken only if something is wrong, for such a call is slow.

Why not `jax.pure_callback`: it writes each exception to JAX's log before it lets it go.
"""

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

from ecliptic import _jax
from ecliptic._jax._define import no_tangent, scalar_like


@runtime_checkable
class Report(Protocol):
    """What is done on the host. It is a parameter of a program, so it has equality and a hash."""

    def fail(self, bad: Any, index: Any, mapped: int) -> None:
        """Raises what is wrong, outside of any compiled program.

        Args:
            bad: the booleans.
            index: numbers of the same shape.
            mapped: how many of the axes, at the front, are those of `jax.vmap`.
        """

    def compiled(self, *, several: bool) -> Callable[[Any, Any, int], None]:
        """Called when a program is compiled that holds the check.

        Args:
            several: whether it is for several devices. If one of them fails, the others may wait
                for it forever, so it is better not to raise there.

        Returns:
            The same as `fail`, to be called while the program runs.
        """
        ...


# The function that a program calls.
_ON_HOST = "_primitive.<locals>.lower.<locals>.on_host"


def tell(bad: Any, index: Any, report: Report) -> Any:
    """Calls the host, which raises if any of the booleans is true.

    Returns:
        A boolean: true if none is. What must not be used otherwise is to be computed from it, in a
        way that the compiler cannot simplify, or the call may be left out.

    Args:
        bad: booleans.
        index: numbers, for the host. The axes are those of `bad`, or there are none.
        report: what the host does.
    """
    return _primitive().bind(bad, index, report=report, mapped=0)


def caller_of_program() -> FrameType | None:
    """Called on the host for a check: the frame of Python that called the program.

    None if the program does not run in the thread that called it, or not now.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_qualname != _ON_HOST:
        frame = frame.f_back
    # (Between them is JAX's own function around ours.)
    around = None if frame is None else frame.f_back
    return None if around is None else around.f_back


def unknown_true() -> Any:
    """A true boolean of which the compiler does not know that it is true."""
    return jax.lax.optimization_barrier(jnp.ones((), bool))


def _number_of_devices(context: Any) -> int:
    """Of how many devices a context of axes is."""
    mesh = getattr(context, "mesh", None)
    return getattr(context, "num_devices", 1) if mesh is None else mesh.size


@functools.cache
def _primitive() -> Any:
    primitive = _jax.Primitive("tell")

    def eager(bad: Any, index: Any, *, report: Report, mapped: int) -> Any:
        bad, index = np.asarray(bad), np.asarray(index)
        if bad.any():
            report.fail(bad, index, mapped)
        return jnp.ones((), bool)

    def abstract(bad: Any, index: Any, **params: Any) -> Any:
        return scalar_like(bad, np.dtype(bool))

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        return out, no_tangent(out)

    def batch(args: Any, dims: Any, *, report: Report, mapped: int) -> Any:
        pairs = list(zip(args, dims, strict=True))
        size = next(x.shape[d] for x, d in pairs if d is not None)
        fronted = [
            jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
            for x, d in pairs
        ]
        return primitive.bind(*fronted, report=report, mapped=mapped + 1), None

    def lower(ctx: Any, *operands: Any, report: Report, mapped: int) -> Any:
        context = ctx.module_context.axis_context
        fail = report.compiled(several=_number_of_devices(context) > 1)

        def on_host(bad: Any, index: Any) -> Any:
            # Where a compiler chose to run both branches, nothing may be wrong.
            bad, index = np.asarray(bad), np.asarray(index)
            if bad.any():
                fail(bad, index, mapped)
            return (np.logical_not(bad.any()),)

        # On several devices each calls, with all of the booleans: where it raises, it does on all.
        manual = getattr(context, "manual_axes", None)
        sharding = _jax.callback_op_sharding(context, None, ctx.avals_out) if manual else None
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

    primitive.def_impl(eager)
    primitive.def_abstract_eval(abstract)
    mlir.register_lowering(primitive, lower, cacheable=False)
    ad.primitive_jvps[primitive] = jvp
    batching.primitive_batchers[primitive] = batch
    return primitive
