"""A while loop as a value, and what transformations make of it.

A loop is two functions of *constants* and *state*, both flat lists of arrays. Constants are what
the user's functions close over. To batch a loop, or to run it together with its derivative, is to
make another loop.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ecliptic import _jax
from ecliptic._jax._constants import without_constants
from ecliptic.control._loops._dependence import dependence, is_smooth, spread
from ecliptic.control._loops._schedule import Plan

Arrays = list[Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Loop:
    """A while loop.

    Args:
        cond: of constants and state: a boolean scalar.
        body: of constants, state and a boolean scalar: the next state. Where the scalar is false,
            nothing is written into buffers (and the rest of the output will be dropped).
        buffers: for each array of the state, whether it is only written to and read from at an
            index, and never changed where it has been read.
        cut: what is kept for the way back.
        max_steps: the largest number of steps; None if `cond` sees to it.
        lanes: like `cond`, before the elements of a batch were reduced to one boolean: which of
            them go on. None if all go together.
    """

    cond: Callable[[Arrays, Arrays], Any]
    body: Callable[[Arrays, Arrays, Any], Arrays]
    buffers: tuple[bool, ...]
    cut: Plan
    max_steps: int | None = None
    lanes: Callable[[Arrays, Arrays], Any] | None = None

    def run(self, consts: Arrays, state: Arrays) -> Arrays:
        """The state after the last step, by `jax.lax.while_loop`."""
        most = self.max_steps
        if most is None:
            return jax.lax.while_loop(
                lambda s: self.cond(consts, s), lambda s: self.body(consts, s, True), state
            )
        _, state = jax.lax.while_loop(
            lambda s: (s[0] < most) & self.cond(consts, s[1]),
            lambda s: (s[0] + 1, self.body(consts, s[1], True)),
            (jnp.zeros((), jnp.int32), state),
        )
        return state

    def perturbed(
        self, consts: Arrays, state: Arrays, tangents: set[int]
    ) -> tuple[list[int], list[int], list[set[int]]]:
        """Which constants and which parts of the state have a derivative.

        Args:
            consts: the constants.
            state: the state.
            tangents: positions of those with a derivative at the start, constants first.

        Returns:
            The positions of these, and for each part of the state, which parts it depends on.
        """
        split = len(consts)
        smooth = {i for i in tangents if is_smooth(jax.typeof([*consts, *state][i]))}
        on = dependence(lambda c, s: self.body(c, s, True), consts, state, smooth=True)
        of_state = [{i - split for i in positions} for positions in on]
        of_consts = {i - split for i in smooth if i < split}
        start = {i - split for i in smooth if i >= split}
        reached = spread(start, of_state, of_consts)
        of_state = [{i for i in positions if i >= 0} for positions in of_state]
        return sorted(i + split for i in of_consts), sorted(reached), of_state

    def with_tangents(self, consts: list[int], state: list[int], n: tuple[int, int]) -> "Loop":
        """The loop that carries tangents along.

        Args:
            consts: which constants have tangents; these come after the `n[0]` constants.
            state: which parts of the state have tangents; these come after the `n[1]` parts.
            n: the numbers of constants and of parts of the state.
        """

        def body(all_consts: Arrays, all_state: Arrays, active: Any) -> Arrays:
            primal_c, tangent_c = all_consts[: n[0]], all_consts[n[0] :]
            primal_s, tangent_s = all_state[: n[1]], all_state[n[1] :]

            def step(some_c: Arrays, some_s: Arrays) -> tuple[Arrays, Arrays]:
                out = self.body(replaced(primal_c, consts, some_c),
                                replaced(primal_s, state, some_s), active)  # fmt: skip
                return [out[i] for i in state], out

            some = [primal_c[i] for i in consts], [primal_s[i] for i in state]
            _, tangents, out = jax.jvp(step, some, (tangent_c, tangent_s), has_aux=True)
            return [*out, *tangents]

        return Loop(
            cond=lambda c, s: self.cond(c[: n[0]], s[: n[1]]),
            body=body,
            buffers=(*self.buffers, *(self.buffers[i] for i in state)),
            cut=self.cut,
            max_steps=self.max_steps,
            lanes=self.lanes and (lambda c, s: self.lanes(c[: n[0]], s[: n[1]])),  # pyright: ignore
        )

    def batched(
        self, axis: "Axis", consts: Arrays, state: Arrays, mapped: tuple[list[bool], list[bool]]
    ) -> tuple["Loop", list[bool]]:
        """The loop that does what this one does for each element of a batch.

        Args:
            axis: the batch.
            consts: the constants of one element.
            state: the state of one element.
            mapped: whether these have a leading axis for the batch.

        Returns:
            The loop, which goes on while any element does, and whether each part of its state has
            the axis.
        """
        split = len(consts)
        const_in, given = mapped
        on = dependence(lambda c, s: self.body(c, s, True), consts, state)
        (cond_on,) = dependence(self.cond, consts, state)
        of_consts = {i - split for i, is_mapped in enumerate(const_in) if is_mapped}
        start = {i for i, is_mapped in enumerate(given) if is_mapped}
        state_on = [{i - split for i in positions} for positions in on]
        reached = spread(start, state_on, of_consts)
        together = not ({i - split for i in cond_on} & (reached | of_consts))
        if not together:
            reached = set(range(len(state)))
        in_axes = (axes(const_in), axes([i in reached for i in range(len(state))]))
        body = axis.vmap(self.body, (*in_axes, None if together else 0), in_axes[1])
        if together:
            lanes = self.lanes and axis.vmap(self.lanes, in_axes, 0)
            cond = axis.vmap(self.cond, in_axes, None)
            made = dataclasses.replace(self, cond=cond, body=body, lanes=lanes)
        else:
            made = self._independent(axis, in_axes, body)
        return made, [i in reached for i in range(len(state))]

    def _independent(self, axis: "Axis", in_axes: tuple[Any, Any], body: Any) -> "Loop":
        """The loop in which each element of a batch stops at its own time."""
        lanes = axis.vmap(self.lanes or self.cond, in_axes, 0)
        own_cond = axis.vmap(self.cond, in_axes, 0)

        def masked(consts: Arrays, state: Arrays, active: Any) -> Arrays:
            goes_on = own_cond(consts, state) & active
            out = body(consts, state, goes_on)
            return [
                new if is_buffer else where(goes_on, new, old)
                for is_buffer, new, old in zip(self.buffers, out, state, strict=True)
            ]

        return dataclasses.replace(
            self, cond=lambda c, s: jnp.any(own_cond(c, s)), body=masked, lanes=lanes
        )


@dataclasses.dataclass(frozen=True)
class Axis:
    """A batch axis, as `jax.vmap` knows it."""

    size: int
    name: Any
    spmd_name: Any

    @classmethod
    def of(cls, data: Any) -> "Axis":
        """The axis of a batching rule."""
        return cls(data.size, data.name, data.spmd_name)

    def vmap(self, function: Callable[..., Any], in_axes: Any, out_axes: Any) -> Callable[..., Any]:
        """`jax.vmap` over this axis, of functions that may not be mapped in any argument."""
        # The name of an axis without one is an object, which can be given on.
        mapped = jax.vmap(
            lambda _, args: function(*args),
            in_axes=(0, in_axes),
            out_axes=out_axes,
            axis_size=self.size,
            axis_name=self.name,
            spmd_axis_name=self.spmd_name,
        )
        return lambda *args: mapped(np.zeros(self.size, bool), args)


def axes(mapped: Sequence[bool]) -> list[int | None]:
    """Axis specifications for a list of which some have a leading axis."""
    return [0 if is_mapped else None for is_mapped in mapped]


def where(condition: Any, new: Any, old: Any) -> Any:
    """`jnp.where`, with a condition for the leading axes."""
    extra = jnp.ndim(new) - jnp.ndim(condition)
    return jnp.where(condition.reshape(condition.shape + (1,) * extra), new, old)


def replaced(items: Sequence[Any], positions: Sequence[int], by: Sequence[Any]) -> Arrays:
    """The list with others in some positions."""
    out = list(items)
    for i, item in zip(positions, by, strict=True):
        out[i] = item
    return out


def close(function: Callable[..., Any], *inputs: Any) -> tuple[Callable[..., Any], Arrays, Any]:
    """Makes what a function closes over an argument of it.

    Args:
        function: a function of arrays, which returns a list of arrays.
        *inputs: the arrays.

    Returns:
        A function of a list of constants, and of the arrays; the constants; descriptions of the
        outputs.
    """
    closed = jax.make_jaxpr(function)(*inputs)
    program = without_constants(closed)

    def evaluate(consts: Arrays, *args: Any) -> Arrays:
        return _jax.eval_jaxpr(program, consts, *args)

    return evaluate, list(closed.consts), list(closed.out_avals)
