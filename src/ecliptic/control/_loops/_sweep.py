"""The two ways through a loop: forward, keeping some states, and back from each of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten, tree_leaves, tree_map
from jaxtyping import Array, Int

from ecliptic.control._loops._buffer import led_through
from ecliptic.control._loops._loop import Arrays, Loop, close
from ecliptic.control._loops._pullback import Pullback
from ecliptic.control._loops._schedule import (
    Plan,
    Slots,
    Taken,
    entry,
    no_slots,
    offset,
    place,
    plan,
    with_entry,
)

Bind = Callable[[Loop, Arrays, Arrays], Arrays]


class Saved(NamedTuple):
    """What the way forward leaves for the way back.

    Args:
        taken: how many steps were; by each element, if these stop on their own.
        states: for each part of the state that is no buffer, the ones that were kept. One row more
            than there are slots: what goes there is dropped.
        slots: which states these are; None if each segment has its slot.
    """

    taken: Int[Array, "*lanes"]
    states: Arrays
    slots: Slots | None


def repeat(
    bind: Bind,
    cond: Callable[[Any], Any],
    body: Callable[[Any, Any], Any],
    init: Any,
    buffers: Any = None,
    *,
    most: int | None,
) -> Any:
    """A while loop over a tree of arrays, of functions that may close over anything.

    Args:
        bind: what to do with the loop.
        cond: of the tree: whether to go on.
        body: of the tree and a boolean, as [`Loop`][]'s.
        init: the tree.
        buffers: for each array whether it is a buffer. Default: none is.
        most: how many steps there are at most, if that is known.
    """
    leaves, tree = tree_flatten(init)
    leaves = [jnp.asarray(x) for x in leaves]
    cond_fun, cond_consts, _ = close(lambda *s: [cond(tree.unflatten(s))], *leaves)
    body_fun, body_consts, _ = close(
        lambda active, *s: tree_leaves(body(tree.unflatten(s), active)), True, *leaves
    )
    n = len(cond_consts)
    loop = Loop(
        cond=lambda consts, s: cond_fun(consts[:n], *s)[0],
        body=lambda consts, s, active: body_fun(consts[n:], active, *s),
        buffers=(False,) * len(leaves) if buffers is None else tuple(tree_leaves(buffers)),
        cut=plan(most, None),
    )
    return tree.unflatten(bind(loop, cond_consts + body_consts, leaves))


def save(bind: Bind, loop: Loop, cut: Plan, consts: Arrays, init: Arrays) -> tuple[Arrays, Saved]:
    """Runs a loop forward.

    Returns:
        The last state, and what is kept.
    """
    rest = [i for i, is_buffer in enumerate(loop.buffers) if not is_buffer]
    zero = jnp.zeros((), jnp.int32)
    count = zero if loop.lanes is None else _lanes(loop, consts, init)

    def goes_on(steps: Any, state: Arrays) -> Any:
        go = loop.cond(consts, state)
        return go if loop.max_steps is None else (steps < loop.max_steps) & go

    def step(carry: Any, active: Any) -> Any:
        done, steps, count, state = carry
        count = count + (1 if loop.lanes is None else loop.lanes(consts, state).astype(jnp.int32))
        return done + 1, steps + 1, count, loop.body(consts, state, active)

    def segment(carry: Any, active: Any) -> Any:
        number, steps, count, state, states, slots = carry
        slot = number
        if slots is not None:
            slot, slots = place(slots, number)
        slot = jnp.where(active, slot, cut.slots)
        states = [with_entry(s, slot, state[i]) for s, i in zip(states, rest, strict=True)]
        _, steps, count, state = repeat(
            bind,
            lambda carry: (carry[0] < cut.stride) & goes_on(carry[1], carry[3]),
            lambda carry, inner: step(carry, active & inner),
            (zero, steps, count, state),
            (False, False, False, list(loop.buffers)),
            most=cut.stride,
        )
        return number + 1, steps, count, state, states, slots

    states = [blank(init[i], cut.slots + 1) for i in rest]
    slots = None if cut.covers else no_slots(cut.slots)
    _, _, count, last, states, slots = repeat(
        bind,
        lambda carry: goes_on(carry[1], carry[3]),
        segment,
        (zero, zero, count, init, states, slots),
        (False, False, False, list(loop.buffers), [True] * len(rest), _none_of(slots)),
        most=cut.slots if cut.covers else None,
    )
    return last, Saved(count, states, slots)


def sweep(
    bind: Bind,
    pieces: Pullback,
    cut: Plan,
    example: Arrays,
    operands: tuple[Arrays, Arrays, Saved, Arrays],
) -> tuple[Arrays, Arrays]:
    """Goes through a loop backwards.

    Args:
        bind: what to do with the loops of which this consists.
        pieces: how to go through one step.
        cut: how the loop was cut.
        example: descriptions of the cotangents of constants.
        operands: the constants; the buffers after the last step; what was kept; the cotangents of
            the last state.

    Returns:
        The cotangents of constants and of the first state.
    """
    consts, held, saved, cts = operands
    back = _Back(bind, pieces, cut, consts, held, saved.taken)
    totals = [jnp.zeros(x.shape, x.dtype) for x in example]
    if saved.slots is None:
        _, totals, cts = repeat(
            bind,
            lambda carry: carry[0] > 0,
            lambda carry, active: back.covered(saved.states, carry, active),
            (back.segments, totals, cts),
            most=cut.slots,
        )
        return totals, cts
    _, _, _, totals, cts = repeat(
        bind,
        lambda carry: carry[0] > 0,
        back.sparse,
        (back.segments, saved.states, Taken.of(saved.slots), totals, cts),
        most=None,
    )
    return totals, cts


class _Back:
    """The way back through one segment, and to the start of one."""

    def __init__(
        self, bind: Bind, pieces: Pullback, cut: Plan, consts: Arrays, held: Arrays, count: Any
    ) -> None:
        self._bind, self._pieces, self._cut = bind, pieces, cut
        self._consts, self._held, self._count = consts, held, count
        self._invariants = pieces.invariants(consts, held)
        self._steps = jnp.max(count)
        self.segments = -(-self._steps // cut.stride)

    def covered(self, states: Arrays, carry: Any, active: Any) -> Any:
        """Back through the last segment that is left, if each has its state."""
        left, totals, cts = carry
        state = [entry(s, left - 1) for s in states]
        return left - 1, *self._segment(left - 1, state, totals, cts, active)

    def sparse(self, carry: Any, active: Any) -> Any:
        """Back through the last segment that is left, if its state may have to be found."""
        left, states, slots, totals, cts = carry
        latest, at = slots.latest()
        state = [entry(s, latest) for s in states]

        def advance(carry: Any, active: Any) -> Any:
            at, state, states, slots = carry
            ahead = offset(left - at, slots.free + 1)
            state = self._advance(at * self._cut.stride, ahead * self._cut.stride, state, active)
            at = at + ahead
            slot, slots = slots.taken(at, active & (slots.free > 0))
            states = [with_entry(s, slot, x) for s, x in zip(states, state, strict=True)]
            return at, state, states, slots

        _, state, states, slots = repeat(
            self._bind,
            lambda carry: carry[0] < left - 1,
            advance,
            (at, state, states, slots),
            most=None,
        )
        totals, cts = self._segment(left - 1, state, totals, cts, active)
        return left - 1, states, slots.freed(left - 1), totals, cts

    def _taken(self, step: Any, active: Any) -> Any:
        return (step < self._count) & active

    def _advance(self, start: Any, steps: Any, state: Arrays, active: Any) -> Arrays:
        def body(carry: Any, inner: Any) -> Any:
            done, state = carry
            taken = self._taken(start + done, active & inner)
            return done + 1, self._pieces.forward(self._consts, self._held, state, taken)[0]

        zero = jnp.zeros((), jnp.int32)
        go = lambda carry: carry[0] < steps  # noqa: E731
        return repeat(self._bind, go, body, (zero, state), most=None)[1]

    def _segment(
        self, number: Any, state: Arrays, totals: Arrays, cts: Arrays, active: Any
    ) -> tuple[Arrays, Arrays]:
        stride = self._cut.stride
        start = number * stride
        steps = jnp.minimum(self._steps - start, stride)

        def forward(carry: Any, inner: Any) -> Any:
            done, state, kept = carry
            now = active & inner
            taken = self._taken(start + done, now)
            state, new = self._pieces.forward(self._consts, self._held, state, taken)
            row = jnp.where(now, done, stride)
            return done + 1, state, [with_entry(k, row, x) for k, x in zip(kept, new, strict=True)]

        taken = self._taken(start, active)
        described = jax.eval_shape(
            self._pieces.forward, self._consts, self._held, state, taken
        )[1]  # fmt: skip
        kept = [blank(x, stride + 1) for x in described]
        zero = jnp.zeros((), jnp.int32)
        _, _, kept = repeat(
            self._bind,
            lambda carry: carry[0] < steps,
            forward,
            (zero, state, kept),
            (False, [False] * len(state), [True] * len(kept)),
            most=stride,
        )

        def backward(carry: Any, inner: Any) -> Any:
            left, kept, totals, cts = carry
            now = active & inner
            pairs = [led_through(k, left - 1) for k in kept]
            taken = self._taken(start + left - 1, now)
            more, cts = self._pieces.backward(self._invariants, [v for _, v in pairs], cts, taken)
            totals = [total + ct for total, ct in zip(totals, more, strict=True)]
            return left - 1, [k for k, _ in pairs], totals, cts

        _, _, totals, cts = repeat(
            self._bind,
            lambda carry: carry[0] > 0,
            backward,
            (steps, kept, totals, cts),
            # The cotangent of a buffer is no buffer: a part of it is read, and then set to zero.
            (False, [True] * len(kept), [False] * len(totals), [False] * len(cts)),
            most=stride,
        )
        return totals, cts


def _lanes(loop: Loop, consts: Arrays, state: Arrays) -> Any:
    shape = jax.eval_shape(loop.lanes, consts, state).shape  # pyright: ignore
    return jnp.zeros(shape, jnp.int32)


def _none_of(tree: Any) -> Any:
    return tree_map(lambda _: False, tree)


def blank(like: Any, rows: int) -> Any:
    """Room for so many arrays like this one.

    Args:
        like: an array, or the description of one.
        rows: how many.
    """
    if not jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jnp.zeros((rows, *like.shape), like.dtype)
    data = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(like.shape, like.dtype))
    words = jnp.zeros((rows, *data.shape), data.dtype)
    return jax.random.wrap_key_data(words, impl=jax.random.key_impl(like))
