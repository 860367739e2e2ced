"""Which states of a loop are kept, and which are computed anew: integers only.

A loop is cut into *segments* of equally many steps. Going back through one segment takes the state
at its start, from which its steps are run again. Only some of these states fit into memory. Here
"position" is the number of a segment, and a *slot* is a place where one state can be kept.

- On the way forward nobody knows how long the loop will be. As soon as all slots are taken, further
  states replace ones that a later, more important one has made superfluous: `place`. As long as no
  segment has to run more than twice, that is Stumm and Walther, "New algorithms for optimal online
  checkpointing" (2010), which passes states over; from there on it is Wang, Moin and Iaccarino,
  "Minimal repetition dynamic checkpointing algorithm for unsteady adjoint calculation" (2009).
- On the way back the number of segments is known. Slots that have become free take states in
  between, spaced binomially: `offset`, after Griewank and Walther, "Algorithm 799: revolve" (2000).

If there is a slot for every segment, each step of the loop runs once more on the way back, and
these rules never come into play.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

# How many states are kept if neither the number of steps nor that of checkpoints is known: loops
# of up to 256 steps run each of them once more on the way back, up to about 2,400 twice.
DEFAULT_CHECKPOINTS = 32

_LARGEST = 2**31 - 1
_NEVER_SPARE = _LARGEST


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a loop is cut.

    Args:
        slots: how many states at the start of a segment are kept.
        stride: how many steps a segment has.
        covers: whether there certainly is a slot for every segment.
    """

    slots: int
    stride: int
    covers: bool


def plan(max_steps: int | None, checkpoints: int | None, stride: int | None = None) -> Plan:
    """Divides the states that may be kept between segments' starts and steps of one segment.

    Args:
        max_steps: the largest number of steps; None if there is none.
        checkpoints: how many states are kept at once, in all. Default: enough that no step runs
            more than once on the way back, about twice the square root of `max_steps`; 32 if that
            is not known.
        stride: how many steps a segment has. Default: so many that the fewest steps run again.
    """
    if stride is not None:
        return _plan_by_stride(max_steps, checkpoints, stride)
    if checkpoints is None:
        if max_steps is not None:
            stride = max(1, math.isqrt(max(0, max_steps - 1)) + 1)
            return Plan(max(1, -(-max_steps // stride)), stride, True)
        checkpoints = DEFAULT_CHECKPOINTS
    if max_steps is None:
        # Half and half leaves the longest loops with a single repetition. With few states, any
        # that holds a step is missed sorely where segments start.
        stride = checkpoints // 2 if checkpoints >= 8 else 1
        return Plan(checkpoints - stride + 1, stride, False)
    return min(
        (_cut(max_steps, checkpoints, stride) for stride in range(1, checkpoints + 1)),
        key=lambda cut: (_evaluations(max_steps, cut), cut.slots + cut.stride, cut.stride),
    )


def _plan_by_stride(max_steps: int | None, checkpoints: int | None, stride: int) -> Plan:
    if checkpoints is None and max_steps is not None:
        return Plan(max(1, -(-max_steps // stride)), stride, True)
    slots = max(1, (DEFAULT_CHECKPOINTS if checkpoints is None else checkpoints) - stride + 1)
    return Plan(slots, stride, max_steps is not None and slots * stride >= max_steps)


def plan_bounded(max_steps: int, base: int) -> Plan:
    """The plan with a slot for every segment, which has `base` steps at least."""
    stride = min(max(1, max_steps), max(base, math.isqrt(max(0, max_steps - 1)) + 1))
    return Plan(max(1, -(-max_steps // stride)), stride, True)


def _cut(max_steps: int, checkpoints: int, stride: int) -> Plan:
    segments = max(1, -(-max_steps // stride))
    slots = min(checkpoints - stride + 1, segments)
    return Plan(slots, stride, slots >= segments)


def _evaluations(max_steps: int, cut: Plan) -> int:
    """How many steps run again before the last segment's own ones."""
    segments = -(-max_steps // cut.stride)
    return cut.stride * evaluations(segments, cut.slots)


def evaluations(segments: int, slots: int) -> int:
    """The least number of segments that must be run to get to the start of each, last one first.

    Griewank and Walther's closed form, with `slots` states kept at once, the first one among them.
    """
    if segments <= 1:
        return 0
    repetitions, reach = 0, 1
    while reach < segments:
        repetitions += 1
        reach = math.comb(slots + repetitions, slots)
    return repetitions * segments - math.comb(slots + repetitions, slots + 1)


class Slots(NamedTuple):
    """What is known of each slot while the loop runs forward.

    In one step an array is read after it was written, and not before: XLA would copy it.

    Args:
        position: the segment at whose start the state was taken; -1 for a free slot. The last entry
            is for what is not kept.
        level: how important the state is.
        spare: slots whose state may go, as a later one is more important; the earliest state first.
        first: where in `spare` those begin that have not gone yet.
        last: where they end.
        next: the one of them that is to go next.
        latest: the slot, the position and the level of the latest state.
    """

    position: Int[Array, " slots+1"]
    level: Int[Array, " slots+1"]
    spare: Int[Array, " slots"]
    first: Int[Array, ""]
    last: Int[Array, ""]
    next: Int[Array, ""]
    latest: Int[Array, "3"]


def no_slots(count: int) -> Slots:
    """All slots free."""
    zero = jnp.zeros((), jnp.int32)
    free, levels = jnp.full(count + 1, -1, jnp.int32), jnp.zeros(count + 1, jnp.int32)
    latest = jnp.array([0, -1, 0], jnp.int32)
    return Slots(free, levels, jnp.zeros(count, jnp.int32), zero, zero, zero, latest)


def place(slots: Slots, position: Int[Array, ""]) -> tuple[Int[Array, ""], Slots]:
    """Chooses the slot for the state at `position`, when all before have been placed.

    Returns:
        The slot, and what is known of the slots from now on.
    """
    count = slots.spare.shape[0]
    previous, before, level = slots.latest
    # While no segment runs more than twice, the spare states go in order, and before a state
    # becomes more important than the one before, one is passed over.
    end = min(math.comb(count + 2, 2), _LARGEST)
    twice = position < end
    fresh, replaces = position < count, slots.first < slots.last
    passed = ~fresh & ~replaces & twice & ((before == position - 1) | (level > 0))
    raised = ~fresh & ~replaces & ~passed
    slot = jnp.where(fresh, position, jnp.where(replaces, slots.next, previous))
    # A single slot holds the start for ever.
    slot = jnp.where(passed | ((slot == 0) & (position > 0)), count, slot).astype(jnp.int32)
    level = jnp.where(raised, level + 1, 0)
    level = jnp.where(position == 0, _NEVER_SPARE, level).astype(jnp.int32)
    goes, kept = ~fresh & replaces, slot < count
    first = slots.first + (goes & twice).astype(jnp.int32)
    last = slots.last - (goes & ~twice).astype(jnp.int32)
    positions = with_entry(slots.position, slot, jnp.where(kept, position, -1))
    levels = with_entry(slots.level, slot, level)
    # A loop of at most one step, as a branch would copy the arrays.
    _, spare, first, last = jax.lax.while_loop(
        lambda queue: queue[0],
        lambda _: (jnp.zeros((), bool), *_superseded(positions, levels, level)),
        (raised, slots.spare, first, last),
    )
    # Later it is the latest: the gap that it leaves is passed early on the way back, when hardly
    # any slot is free.
    following = entry(spare, jnp.where(position + 1 < end, first, last - 1))
    latest = jnp.where(kept, jnp.stack([slot, position, level]), slots.latest)
    return slot, Slots(positions, levels, spare, first, last, following, latest)


def _superseded(positions: Array, levels: Array, level: Array) -> tuple[Array, Array, Array]:
    """The slots of states that are less important than the latest, with both ends."""
    some = (positions >= 0) & (levels < level)
    order = jnp.argsort(jnp.where(some, positions, _LARGEST)).astype(jnp.int32)
    return order[:-1], jnp.zeros((), jnp.int32), jnp.sum(some, dtype=jnp.int32)


class Taken(NamedTuple):
    """What is known of each slot on the way back.

    Args:
        position: the segment at whose start the state was taken. The last entry is for what is not
            kept.
        order: all slots: first those that hold a state, in the order of the states.
        number: how many these are.
    """

    position: Int[Array, " slots+1"]
    order: Int[Array, " slots"]
    number: Int[Array, ""]

    @classmethod
    def of(cls, slots: Slots) -> "Taken":
        """The slots as they are at the end of the way forward."""
        free = slots.position[:-1] < 0
        order = jnp.argsort(jnp.where(free, _LARGEST, slots.position[:-1])).astype(jnp.int32)
        return cls(slots.position, order, jnp.sum(~free, dtype=jnp.int32))

    @property
    def free(self) -> Int[Array, ""]:
        """How many slots are free."""
        return self.order.shape[0] - self.number

    def latest(self) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """The slot and the position of the latest state."""
        slot = entry(self.order, self.number - 1)
        return slot, entry(self.position, slot)

    def taken(self, position: Array, keep: Bool[Array, ""]) -> tuple[Int[Array, ""], "Taken"]:
        """Takes a free slot for a later state, if that is kept.

        Returns:
            The slot, or the number after the last, and what is known of the slots from now on.
        """
        slot = jnp.where(keep, entry(self.order, self.number), self.order.shape[0])
        positions = with_entry(self.position, slot, position)
        return slot, Taken(positions, self.order, self.number + keep.astype(jnp.int32))

    def freed(self, position: Array) -> "Taken":
        """Gives the slot free of the latest state, if that is at this position."""
        return self._replace(number=self.number - (self.latest()[1] >= position).astype(jnp.int32))


def entry(array: Array, i: Any) -> Array:
    """What is at a place of the first axis; the nearest entry if there is none."""
    return jax.lax.dynamic_index_in_dim(array, i, keepdims=False)


def with_entry(array: Array, i: Any, value: Array) -> Array:
    """The array with something put in at a place of the first axis."""
    return jax.lax.dynamic_update_index_in_dim(array, value, i, 0)


def offset(segments: Int[Array, ""], slots: Int[Array, ""]) -> Int[Array, ""]:
    """How far on the next state is to be kept.

    Args:
        segments: how many segments there are to go back through, at least two.
        slots: how many states may be kept, the one at the start among them.

    Returns:
        The number of segments to run from the start; the last segment's start, if nothing else can
        be kept.
    """

    def further(state: tuple[Array, ...]) -> tuple[Array, ...]:
        repetitions, reach, before, _ = state
        repetitions = repetitions + 1
        factor = slots + repetitions
        fits = reach <= _LARGEST // factor
        reach_next = jnp.where(fits, reach, 0) * factor // repetitions
        return repetitions, jnp.where(fits, reach_next, _LARGEST), reach, before

    one, none = jnp.ones((), jnp.int32), jnp.zeros((), jnp.int32)
    # How many segments can be passed with so many repetitions at most, with one fewer, two fewer.
    # With a single slot the answer needs no count.
    _, reach, before, earlier = jax.lax.while_loop(
        lambda state: (state[1] < segments) & (slots > 1), further, (none, one, none, none)
    )
    within = jnp.clip(segments - (reach - before), jnp.maximum(earlier, 1), segments - 1)
    return jnp.where(slots > 1, within, segments - 1).astype(jnp.int32)
