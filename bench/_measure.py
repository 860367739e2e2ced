"""Clocks, and the loop that reads several of them in turn and keeps each one's minimum.

Noise on a machine only ever adds time, and it comes in bursts that last longer than a sample. So
the contenders take turns (a burst hits all of them), the order of the turn rotates (none always
runs behind the same neighbour), and the least sample counts.
"""

import contextlib
import gc
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import jax

# Long enough that reading the timer (about 0.1 µs) and the first calls after a change of contender
# vanish, short enough that many samples fall between two bursts of noise.
SAMPLE_SECONDS = 1e-3

UNROLLED_TURNS = 10

# How fast a few nanoseconds of code are depends, by some ten per cent, on where its instructions
# happen to lie in memory. So an unrolled function exists this many times.
UNROLLED_COPIES = 8


class Clock(Protocol):
    """Something that can be sampled: less is better."""

    def calibrate(self) -> None:
        """Runs what is timed until it is warm, and decides how often one sample runs it."""
        ...

    def sample(self) -> float:
        """One sample, in seconds a call (or another quantity, where the clock says so)."""
        ...


class Timed:
    """Times ``thunk`` from outside, in batches of a calibrated number of calls.

    ``calls`` says how many of the operations in question one call of ``thunk`` does.
    """

    def __init__(self, thunk: Callable[[], object], *, calls: int = 1) -> None:
        self._thunk = thunk
        self._calls = calls
        self.loops = 1

    def calibrate(self) -> None:
        self.loops = 1
        self.sample()
        while self._batch() < SAMPLE_SECONDS:
            self.loops *= 2

    def sample(self) -> float:
        # Work that an asynchronous neighbour left on the device must not count here; and the
        # first call after a change of contender finds cold caches.
        jax.block_until_ready(self._thunk())
        return self._batch() / (self.loops * self._calls)

    def _batch(self) -> float:
        thunk = self._thunk
        turns = itertools.repeat(None, self.loops)
        start = time.perf_counter()
        for _ in turns:
            thunk()
        return time.perf_counter() - start


class Reported:
    """A clock whose function does its own timing and returns the sample."""

    def __init__(self, function: Callable[[], float]) -> None:
        self._function = function

    def calibrate(self) -> None:
        self._function()

    def sample(self) -> float:
        return self._function()


class Varied:
    """Several clocks for the same thing, which take turns, sample by sample."""

    def __init__(self, clocks: Sequence[Clock]) -> None:
        self._clocks = clocks
        self._turns = itertools.cycle(clocks)

    def calibrate(self) -> None:
        for clock in self._clocks:
            clock.calibrate()

    def sample(self) -> float:
        return next(self._turns).sample()


def unrolled(expression: str, *, lines: int, **names: object) -> Clock:
    """A clock for an expression that takes nanoseconds, such as an attribute read.

    A lambda around it would cost more than it does and push every ratio towards one. So a function
    is generated that has the expression on many lines of a loop, where each occurrence has its own
    inline cache, as it would in a user's method.

    Args:
        expression: Python source, over ``names``.
        lines: How often it is written down: enough that the loop around vanishes, and so few that
            the function stays in the processor's first cache.
        **names: The variables of the expression; they become local variables.
    """
    head = [f"def run(turns, {', '.join(names)}):", "    for _ in turns:"]
    source = "\n".join([*head, *([f"        {expression}"] * lines)])
    return Varied([_compiled(source, lines, tuple(names.values())) for _ in range(UNROLLED_COPIES)])


def _compiled(source: str, lines: int, values: tuple[object, ...]) -> Timed:
    scope: dict[str, Callable[..., None]] = {}
    exec(compile(source, "<unrolled>", "exec"), scope)
    run, turns = scope["run"], range(UNROLLED_TURNS)
    return Timed(lambda: run(turns, *values), calls=UNROLLED_TURNS * lines)


@contextlib.contextmanager
def collector_off() -> Iterator[None]:
    """Collects garbage once, then keeps the collector off, so that it hits nobody's sample."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def interleave(clocks: Mapping[str, Clock], repeats: int) -> dict[str, float]:
    """Samples calibrated clocks in turn, ``repeats`` times each, and returns the minima."""
    labels = list(clocks)
    best = dict.fromkeys(labels, math.inf)
    with collector_off():
        for turn in range(repeats):
            first = turn % len(labels)
            for label in labels[first:] + labels[:first]:
                best[label] = min(best[label], clocks[label].sample())
    return best
