"""Which outputs of a function depend on which of its inputs."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ecliptic._jax._evaluate import bind, evaluate, trace

# Operations whose one inner program has the same inputs and outputs as they have. Those with custom
# derivatives are not among them: the derivative may depend on more than the value does.
_TRANSPARENT = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "remat2": "jaxpr"}


def dependence(function: Callable[..., Any], *inputs: Any, smooth: bool = False) -> list[set[int]]:
    """For each output, the positions of the inputs that it may depend on.

    Args:
        function: takes and returns trees of arrays.
        *inputs: trees of arrays, or of their descriptions.
        smooth: whether only what carries a derivative counts: integers do not.

    Returns:
        A set for each array of the output. It may have members too many (what a loop or a branch
        inside the function returns depends on all that goes in), never too few.
    """
    return program_dependence(jax.make_jaxpr(function)(*inputs).jaxpr, smooth=smooth)


def program_dependence(program: Any, *, smooth: bool = False) -> list[set[int]]:
    """The same of a function that has been traced."""
    masks = _outputs(program, [1 << i for i in range(len(program.invars))], smooth)
    return [{i for i in range(mask.bit_length()) if mask >> i & 1} for mask in masks]


def _outputs(program: Any, inputs: Sequence[int], smooth: bool) -> list[int]:
    known = dict(zip(program.invars, inputs, strict=True))

    def of(var: Any) -> int:
        # A literal is unhashable, and depends on nothing.
        mask = 0 if hasattr(var, "val") else known.get(var, 0)
        return mask if not smooth or is_smooth(var.aval) else 0

    for eqn in program.eqns:
        masks = [of(var) for var in eqn.invars]
        inner, _ = _inner(eqn)
        if eqn.primitive.name == "stop_gradient" and smooth:
            out = [0] * len(eqn.outvars)
        elif inner is not None and len(inner.invars) == len(masks):
            out = _outputs(inner, masks, smooth)
        else:
            union = 0
            for mask in masks:
                union |= mask
            out = [union] * len(eqn.outvars)
        known.update(zip(eqn.outvars, out, strict=True))
    return [of(var) for var in program.outvars]


def _inner(eqn: Any) -> tuple[Any, Sequence[Any]]:
    """The program of a transparent operation with its constants, or None for another operation."""
    inner = eqn.params.get(_TRANSPARENT.get(eqn.primitive.name, ""))
    return getattr(inner, "jaxpr", inner), getattr(inner, "consts", ())


def _is_mixed(eqn: Any) -> bool:
    inner, _ = _inner(eqn)
    if inner is None or len(inner.invars) != len(eqn.invars):
        return False
    return any(len(on) < len(inner.invars) for on in program_dependence(inner))


def unmixed(closed: Any) -> Any:
    """The same program, where each output of an operation depends on all inputs of the operation.

    A transparent operation of which an output depends on less is replaced by what it does. What is
    needed for one output of the program is then computed from nothing else.
    """
    if not any(map(_is_mixed, closed.jaxpr.eqns)):
        return closed

    def apply(eqn: Any, values: list[Any]) -> Sequence[Any]:
        if _is_mixed(eqn):
            return evaluate(*_inner(eqn), values, apply)
        return bind(eqn, values, eqn.params)

    return trace(lambda *args: evaluate(closed.jaxpr, closed.consts, args, apply), closed.in_avals)


def is_smooth(value: Any) -> bool:
    """Whether an array, or the description of one, has a derivative."""
    return jnp.issubdtype(value.dtype, jnp.inexact)


def spread(start: set[int], outputs: Sequence[set[int]], also: set[int]) -> set[int]:
    """What a loop carries on: the positions of the state that are reached from `start`.

    Args:
        start: positions of the state.
        outputs: for each position, what it depends on: non-negative numbers for the state.
        also: further members of `outputs` that count as reached.
    """
    reached = set(start)
    while True:
        more = {i for i, on in enumerate(outputs) if on & (reached | also)} - reached
        if not more:
            return reached
        reached |= more
