"""The schedules of states against the best there is, found by trying everything."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic.control._loops import _schedule

MOST = 40


@functools.cache
def least(segments, slots):
    """The fewest segments to run: Bellman's equation of going backwards."""
    if segments <= 1:
        return 0
    if slots == 1:
        return segments * (segments - 1) // 2
    return min(at + least(segments - at, slots - 1) + least(at, slots) for at in range(1, segments))


@functools.cache
def placed(slots):
    """Positions that are kept when the loop turns out to have 1, 2, 3, … segments."""
    place = jax.jit(_schedule.place)
    state, kept = _schedule.no_slots(slots), []
    for position in range(MOST):
        slot, state = place(state, jnp.int32(position))
        assert 0 <= slot <= slots
        kept.append(sorted(p for p in np.asarray(state.position).tolist() if p >= 0))
    return kept


def run_again(kept, segments, slots):
    """How many segments run again if these positions are kept at first."""
    total = 0
    for used, at in reversed(list(enumerate(kept))):
        total += least(segments - at, slots - used)
        segments = at
    return total


SLOTS = pytest.mark.parametrize("slots", [1, 2, 3, 4, 6])


@SLOTS
def test_the_closed_form_is_the_optimum(slots):
    for segments in range(MOST):
        assert _schedule.evaluations(segments, slots) == least(segments, slots)


@SLOTS
def test_the_next_state_is_where_the_optimum_has_it(slots):
    offset = jax.jit(_schedule.offset)
    for segments in range(2, MOST):
        at = int(offset(jnp.int32(segments), jnp.int32(slots)))
        rest = least(segments - at, slots - 1) if slots > 1 else 0
        assert at + rest + least(at, slots) == least(segments, slots)


def test_the_next_state_of_a_loop_too_long_to_count():
    at = int(_schedule.offset(jnp.int32(2**31 - 1), jnp.int32(60)))
    assert 0 < at < 2**31 - 1


@SLOTS
def test_the_start_is_always_kept_and_no_slot_wasted(slots):
    for segments, kept in enumerate(placed(slots), start=1):
        assert kept[0] == 0
        assert len(kept) == min(segments, slots)


@pytest.mark.parametrize("slots", [2, 3, 4, 6])
def test_unknown_length_costs_at_most_half_more_than_known_length(slots):
    for segments, kept in enumerate(placed(slots), start=1):
        online = segments - 1 + run_again(kept, segments, slots)
        assert online <= 1.5 * least(segments, slots)


@pytest.mark.parametrize("slots", [3, 4, 6])
def test_unknown_length_costs_one_segment_more_while_none_runs_more_than_twice(slots):
    # This range is the one for which Stumm and Walther's first algorithm is optimal.
    for segments in range(1, slots * (slots + 1) // 2):
        online = segments - 1 + run_again(placed(slots)[segments - 1], segments, slots)
        assert online <= least(segments, slots) + 1


@pytest.mark.parametrize("max_steps", [1, 2, 3, 16, 17, 1000, 1024])
def test_by_default_each_segment_has_its_state(max_steps):
    plan = _schedule.plan(max_steps, None)
    assert plan.covers
    assert plan.slots * plan.stride >= max_steps
    assert plan.slots + plan.stride <= 2 * max_steps**0.5 + 2


@pytest.mark.parametrize("checkpoints", [1, 2, 5, 31, 32, 64, 2000])
@pytest.mark.parametrize("max_steps", [None, 1, 17, 1000])
def test_no_more_states_are_kept_than_allowed(max_steps, checkpoints):
    plan = _schedule.plan(max_steps, checkpoints)
    assert plan.slots + plan.stride - 1 <= checkpoints
    assert plan.slots >= 1
    assert plan.stride >= 1
    assert not plan.covers or plan.slots * plan.stride >= max_steps


@pytest.mark.parametrize(
    ("max_steps", "base", "stride"), [(1000, 16, 32), (100, 16, 16), (3, 16, 3)]
)
def test_a_bounded_loop_has_a_state_for_each_segment(max_steps, base, stride):
    plan = _schedule.plan_bounded(max_steps, base)
    assert plan.covers
    assert plan.stride == stride
    assert plan.slots * plan.stride >= max_steps


@pytest.mark.parametrize(
    ("slots", "kept"),
    [
        # Positions after each number of segments, as Stumm and Walther (2010) draw them for four
        # states; the larger numbers are those of Wang, Moin and Iaccarino (2009).
        (4, {4: [0, 1, 2, 3], 5: [0, 1, 2, 3], 6: [0, 1, 2, 5], 7: [0, 2, 5, 6], 8: [0, 5, 6, 7],
             9: [0, 5, 6, 7], 10: [0, 5, 6, 9], 11: [0, 5, 9, 10], 13: [0, 5, 9, 12]}),
        (3, {5: [0, 1, 4], 6: [0, 4, 5], 8: [0, 4, 7], 11: [0, 4, 10]}),
        (2, {5: [0, 3], 8: [0, 7]}),
        (1, {5: [0]}),
    ],
)  # fmt: skip
def test_the_states_are_those_of_the_papers(slots, kept):
    assert {segments: placed(slots)[segments - 1] for segments in kept} == kept


@pytest.mark.parametrize(
    ("max_steps", "checkpoints", "expected"),
    [
        (20, 4, (4, 1, False)),
        (3, 4, (4, 1, True)),
        (None, 4, (4, 1, False)),
        (20, None, (20, 1, True)),
    ],
)
def test_a_stride_may_be_asked_for(max_steps, checkpoints, expected):
    plan = _schedule.plan(max_steps, checkpoints, 1)
    assert (plan.slots, plan.stride, plan.covers) == expected
