"""Loops over lists of arrays that report to an `AbstractProgress` on their way."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten, tree_leaves, tree_map, tree_structure

from ecliptic import _jax
from ecliptic._jax._handle import tied_to
from ecliptic.control._kind import ScanKind
from ecliptic.control._progress import AbstractProgress, NoProgress
from ecliptic.errors import ArgumentTypeError

Arrays = list[Any]


class Meter(NamedTuple):
    """A progress that has started.

    Args:
        progress: the user's.
        state: its state. A tree of arrays.
    """

    progress: AbstractProgress[Any]
    state: Any


class Measured(NamedTuple):
    """What a loop returns, and the meter that went through it."""

    out: Any
    meter: Meter | None


def measured(
    construct: str, progress: Any, ties: Any, loop: Callable[[Meter | None], Measured]
) -> Any:
    """Runs a loop between the start and the end of its progress.

    Args:
        construct: the loop's public name.
        progress: the user's argument.
        ties: what differs between one run of the loop and another, if anything does.
        loop: given a meter, or None if there is nothing to report to.

    Returns:
        What the loop returns, without the meter.
    """
    if progress is None or isinstance(progress, NoProgress):
        return loop(None).out
    if not isinstance(progress, AbstractProgress):
        raise ArgumentTypeError(
            f"`{construct}(progress=...)` is an instance of a subclass of "
            f"`ecliptic.AbstractProgress`, such as `ecliptic.TqdmProgress()`; got {progress!r}."
        )
    with tied_to(tree_leaves(ties)):
        meter = Meter(progress, progress.init())
    with _closed_on_failure(meter):
        out, last = loop(meter)
        assert last is not None
        if _jax.trace_state_clean():
            # A failure while it runs has to be seen here. Whoever looks at a progress waits anyway.
            jax.block_until_ready((out, last.state))
    progress.close(last.state)
    if _jax.trace_state_clean():
        jax.effects_barrier()
    return out


@contextmanager
def _closed_on_failure(meter: Meter) -> Iterator[None]:
    try:
        yield
    except BaseException:
        meter.progress.close(meter.state)
        raise


def scan_in_parts(
    how: ScanKind,
    step: Callable[..., Any],
    init: Arrays,
    xs: Arrays,
    size: int,
    buffers: Sequence[bool],
    meter: Meter,
) -> tuple[tuple[Arrays, Any], Meter]:
    """A scan of scans, which reports between these: nothing is added to the steps themselves.

    Args:
        how: how a scan runs. Both the inner ones and the outer one run so.
        step: what is scanned.
        init: the carry.
        xs: the inputs.
        size: the number of steps.
        buffers: which parts of the carry `step` gets as buffers.
        meter: reports.

    Returns:
        What the scan returns, and the meter after it.
    """
    progress = meter.progress
    every = _interval(progress, size)
    parts, rest = divmod(size, every)
    state, treedef = tree_flatten(meter.state)
    carry, done, outputs = init, _zero_steps(), []

    def report(state: Arrays, done: Any) -> Arrays:
        fraction = done.astype(jnp.float32) / max(1, size)
        return _leaves(progress.step(treedef.unflatten(state), fraction))

    if parts:

        def part(carry: Arrays, inputs: Arrays) -> Any:
            arrays, (done, *state) = carry[: len(init)], carry[len(init) :]
            arrays, out = how.run(step, arrays, inputs, every, buffers)
            done = done + every
            return [*arrays, done, *report(state, done)], out

        whole = [_cut(x, rest, size) if how.reverse else _cut(x, 0, parts * every) for x in xs]
        whole = [x.reshape(parts, every, *x.shape[1:]) for x in whole]
        outer = dataclasses.replace(how, unroll=1)
        start = [*init, done, *_leaves(state)]
        end, out = outer.run(part, start, whole, parts, [False] * len(start))
        carry, (done, *state) = end[: len(init)], end[len(init) :]
        outputs.append(tree_map(lambda y: y.reshape(parts * every, *y.shape[2:]), out))
    if rest or not parts:
        left = [_cut(x, 0, rest) if how.reverse else _cut(x, parts * every, size) for x in xs]
        carry, out = how.run(step, carry, left, rest, buffers)
        outputs.append(out)
        state = report(state, done + rest)
    last = Meter(progress, treedef.unflatten(state))
    if len(outputs) == 1:
        return (carry, outputs[0]), last
    ordered = reversed(outputs) if how.reverse else outputs
    return (carry, tree_map(lambda *ys: jnp.concatenate(ys), *ordered)), last


def _leaves(tree: Any) -> Arrays:
    return [jnp.asarray(x) for x in tree_leaves(tree)]


def _zero_steps() -> Any:
    # A compiler that knew where the count starts would know where it ends, and the last report
    # would not wait for the loop.
    return jax.lax.optimization_barrier(jnp.zeros((), jnp.int32))


def _cut(x: Any, start: int, stop: int) -> Any:
    x = jnp.asarray(x)
    return x if (start, stop) == (0, x.shape[0]) else x[start:stop]


def _interval(progress: AbstractProgress[Any], length: int | None) -> int:
    every = max(1, int(progress.interval(length)))
    return every if length is None else min(every, max(1, length))


# What runs a while loop: condition, body, carry.
While = Callable[[Callable[[Arrays], Any], Callable[[Arrays], Arrays], Arrays], Arrays]


def while_with_reports(
    loop: While,
    cond: Callable[[Arrays], Any],
    body: Callable[[Arrays], Arrays],
    init: Arrays,
    fraction: Callable[[Arrays], Any] | None,
    max_steps: int | None,
    meter: Meter,
) -> tuple[Arrays, Meter]:
    """A while loop that reports every so many steps.

    Args:
        loop: runs a while loop over a list of arrays. The first ones are those of `init`.
        cond: the condition.
        body: the body.
        init: the arrays at the start.
        fraction: of these arrays: what fraction of the work is done.
        max_steps: at how many steps all is done, if there is no `fraction`.
        meter: reports.

    Returns:
        The arrays at the end, and the meter after the loop.
    """
    progress, first = meter
    size = len(init)
    every = _interval(progress, None if fraction else max_steps)
    treedef = tree_structure(first)

    def done(arrays: Arrays, count: Any) -> Any:
        if fraction is None:
            part = count.astype(jnp.float32) / max(1, max_steps or 1)
        else:
            # In a batch, the whole is as far as its elements are on average. Those that have
            # stopped may be seen one step further.
            own = jax.lax.stop_gradient(jnp.asarray(fraction(arrays), jnp.float32))
            part = for_batch(jnp.mean, jnp.clip(own, 0, 1))
        return jnp.minimum(part, 1)

    def with_report(all_arrays: Arrays) -> Arrays:
        arrays, (count, *state) = all_arrays[:size], all_arrays[size:]
        arrays = body(arrays)
        # In a batch, elements that have stopped keep an old state.
        count, *state = _of_longest(count, state)
        count = count + 1

        def tell() -> Arrays:
            return _leaves(progress.step(treedef.unflatten(state), done(arrays, count)))

        state = jax.lax.cond(count % every == 0, tell, lambda: state)
        return [*arrays, count, *state]

    start = [*init, _zero_steps(), *_leaves(first)]
    out = loop(lambda a: cond(a[:size]), with_report, start)
    count, *state = _of_longest(out[size], out[size + 1 :])
    last = progress.step(treedef.unflatten(state), done(out[:size], count))
    return out[:size], Meter(progress, last)


def with_more(flags: Sequence[bool], arrays: Arrays) -> list[bool]:
    """Flags for a list of arrays to which others were added, which have none."""
    return [*flags, *([False] * (len(arrays) - len(flags)))]


def _of_longest(count: Any, state: Arrays) -> Arrays:
    """Count and state, in a batch those of the element that has taken the most steps."""

    def pick(values: Arrays) -> Arrays:
        i = jnp.argmax(values[0])
        return [x[i] for x in values]

    return for_batch(pick, [jax.lax.stop_gradient(x) for x in (count, *state)])


def for_batch(reduce: Callable[[Any], Any], tree: Any) -> Any:
    """A tree of arrays as it is; under `jax.vmap`, the same for all elements.

    Args:
        reduce: makes one tree of a batch of them, which is along the first axis.
        tree: the tree.
    """

    @jax.custom_batching.custom_vmap
    def one(tree: Any) -> Any:
        return tree

    @one.def_vmap
    def _(axis_size: int, in_batched: list[Any], tree: Any) -> Any:
        (mapped,) = in_batched
        if not any(tree_leaves(mapped)):
            return for_batch(reduce, tree), tree_map(lambda _: False, tree)
        whole = tree_map(
            lambda x, is_mapped: x if is_mapped else jnp.broadcast_to(x, (axis_size, *x.shape)),
            tree,
            mapped,
        )
        return for_batch(reduce, reduce(whole)), tree_map(lambda _: False, tree)

    return one(tree)
