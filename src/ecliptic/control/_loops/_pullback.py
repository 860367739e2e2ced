"""One step of a loop, forwards with what is needed to go back, and backwards.

What the way back needs of a step is split in two: what is the same in each step (weights that the
loop closes over, and what is made of them alone) is there once, and the rest is kept for each step.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten, tree_map

from ecliptic import _jax
from ecliptic._jax._constants import without_constants
from ecliptic.control._loops._dependence import program_dependence, unmixed
from ecliptic.control._loops._loop import Arrays, Axis, Loop, axes, replaced, where


@dataclasses.dataclass(frozen=True, eq=False)
class Pullback:
    """The pieces of which the way back through a loop is made.

    The state is in two parts here: the buffers as they are after the last step, and the rest.

    Args:
        invariants: of constants and buffers: what is the same in each step.
        forward: of constants, buffers, the rest of the state and whether the step is taken: that
            part of the next state, and what the way back needs of this step.
        backward: of invariants, what `forward` kept, cotangents of the next state, and whether the
            step was taken: cotangents of constants and of the state.
        depends: for each invariant, the positions of constants and buffers that it is made of.
        buffers: for each part of the state that has a cotangent, whether it is a buffer.
    """

    invariants: Callable[[Arrays, Arrays], Arrays]
    forward: Callable[[Arrays, Arrays, Arrays, Any], tuple[Arrays, Arrays]]
    backward: Callable[[Arrays, Arrays, Arrays, Any], tuple[Arrays, Arrays]]
    depends: list[set[int]]
    buffers: list[bool]

    def batched(
        self, axis: Axis, consts: list[bool], held: list[bool], *, masked: bool
    ) -> "Pullback":
        """The same for a batch.

        The rest of the state, what is kept of a step, and all cotangents have a leading axis then.

        Args:
            axis: the batch.
            consts: which constants have a leading axis.
            held: which buffers do.
            masked: whether each element takes a step or not on its own.
        """
        given = (axes(consts), axes(held))
        mapped = {i for i, is_mapped in enumerate([*consts, *held]) if is_mapped}
        inv_axes = axes([bool(on & mapped) for on in self.depends])
        active_axis = 0 if masked else None
        forward = axis.vmap(self.forward, (*given, 0, active_axis), 0)
        backward = axis.vmap(self.backward, (inv_axes, 0, 0, active_axis), 0)

        def forward_masked(consts: Arrays, held: Arrays, state: Arrays, active: Any) -> Any:
            out, kept = forward(consts, held, state, active)
            return [where(active, new, old) for new, old in zip(out, state, strict=True)], kept

        def backward_masked(inv: Arrays, kept: Arrays, cts: Arrays, active: Any) -> Any:
            # An element that has stopped is led around the step: what the derivative would be
            # there (often infinite) must not matter.
            inner = [
                ct if is_buffer else where(active, ct, jnp.zeros_like(ct))
                for is_buffer, ct in zip(self.buffers, cts, strict=True)
            ]
            of_consts, of_state = backward(inv, kept, inner, active)
            around = [
                new if is_buffer else where(active, new, ct)
                for is_buffer, new, ct in zip(self.buffers, of_state, cts, strict=True)
            ]
            return [where(active, ct, jnp.zeros_like(ct)) for ct in of_consts], around

        return dataclasses.replace(
            self,
            invariants=axis.vmap(self.invariants, given, inv_axes),
            forward=forward_masked if masked else forward,
            backward=backward_masked if masked else backward,
        )


def pullback(
    loop: Loop, perturbed: tuple[list[int], list[int]], consts: Arrays, state: Arrays
) -> Pullback:
    """Takes one step apart.

    Args:
        loop: the loop.
        perturbed: which constants, and which parts of the state, have cotangents.
        consts: the constants, or descriptions.
        state: the state, or descriptions.
    """
    pc, ps = perturbed
    held_at = [i for i, is_buffer in enumerate(loop.buffers) if is_buffer]
    kept_at = [i for i, is_buffer in enumerate(loop.buffers) if not is_buffer]
    trees = []

    def step(consts: Arrays, held: Arrays, rest: Arrays, active: Any) -> tuple[Arrays, Arrays]:
        before = replaced(replaced(state, held_at, held), kept_at, rest)

        def some(some_c: Arrays, some_s: Arrays) -> tuple[Arrays, Arrays]:
            out = loop.body(replaced(consts, pc, some_c), replaced(before, ps, some_s), active)
            return [out[i] for i in ps], [out[i] for i in kept_at]

        _, pull, out = jax.vjp(some, [consts[i] for i in pc], [before[i] for i in ps], has_aux=True)
        leaves, tree = tree_flatten(pull)
        trees[:] = [tree]
        return out, leaves

    described = tree_map(jax.typeof, (consts, [state[i] for i in held_at]))
    rest = [jax.typeof(state[i]) for i in kept_at]
    closed = unmixed(jax.make_jaxpr(step)(*described, rest, True))
    program = _Program(closed, len(consts) + len(held_at), len(kept_at))

    def backward(inv: Arrays, kept: Arrays, cts: Arrays, active: Any) -> tuple[Arrays, Arrays]:
        return trees[0].unflatten(program.join(inv, kept))(cts)

    return Pullback(
        invariants=lambda consts, held: program.invariants([*consts, *held]),
        forward=lambda consts, held, rest, active: program.forward([*consts, *held, *rest, active]),
        backward=backward,
        depends=program.depends,
        buffers=[loop.buffers[i] for i in ps],
    )


class _Program:
    """The traced step, with each output told apart by what it depends on.

    Args:
        closed: the program. Its first inputs are the same in each step.
        n_fixed: how many of these there are.
        n_state: how many of its outputs are the next state; what follows is for the way back.
    """

    def __init__(self, closed: Any, n_fixed: int, n_state: int) -> None:
        self._program, self._consts = without_constants(closed), list(closed.consts)
        self._n_fixed, self._n_state = n_fixed, n_state
        on = program_dependence(self._program)[n_state:]
        outvars = self._program.outvars[n_state:]
        # Each output once: (whether it is invariant, where among its like).
        self._where: list[tuple[bool, int]] = []
        self._kept: list[int] = []
        self._fixed: list[int] = []
        self.depends: list[set[int]] = []
        seen: dict[Any, tuple[bool, int]] = {}
        for i, (var, positions) in enumerate(zip(outvars, on, strict=True)):
            fixed = all(position < n_fixed for position in positions)
            key = (i,) if hasattr(var, "val") else var
            if key not in seen:
                like = self._fixed if fixed else self._kept
                seen[key] = (fixed, len(like))
                like.append(i + n_state)
                if fixed:
                    self.depends.append(positions)
            self._where.append(seen[key])

    def join(self, invariants: Arrays, kept: Arrays) -> Arrays:
        return [(invariants if fixed else kept)[i] for fixed, i in self._where]

    def forward(self, inputs: Arrays) -> tuple[Arrays, Arrays]:
        out = _jax.eval_jaxpr(self._program, self._consts, *inputs)
        return out[: self._n_state], [out[i] for i in self._kept]

    def invariants(self, fixed: Arrays) -> Arrays:
        """Evaluates just the operations that invariants are made of."""
        outvars = [self._program.outvars[i] for i in self._fixed]
        needed = {var for var in outvars if not hasattr(var, "val")}
        eqns = []
        for eqn in reversed(self._program.eqns):
            if needed.intersection(eqn.outvars):
                eqns.append(eqn)
                needed.update(var for var in eqn.invars if not hasattr(var, "val"))
        program = self._program.replace(
            eqns=eqns[::-1],
            outvars=outvars,
            invars=self._program.invars[: self._n_fixed],
            debug_info=self._program.debug_info.with_unknown_names(),
        )
        return _jax.eval_jaxpr(program, self._consts, *fixed)
