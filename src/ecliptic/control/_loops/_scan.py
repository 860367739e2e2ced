"""A scan of which a bounded number of states is kept."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_leaves, tree_map, tree_structure

from ecliptic.control._loops._buffer import shown, unwrapped
from ecliptic.control._loops._loop import Arrays
from ecliptic.control._loops._schedule import plan
from ecliptic.control._loops._sweep import blank
from ecliptic.control._loops._while import checkpointed_while_loop

Step = Callable[[Arrays, Arrays], tuple[Arrays, Any]]


def checkpointed_scan(
    step: Step,
    init: Arrays,
    xs: Arrays,
    length: int,
    *,
    reverse: bool = False,
    unroll: int | bool = 1,
    checkpoints: int | None = None,
    buffers: Sequence[bool] | None = None,
) -> tuple[Arrays, Any]:
    """Runs a function over the steps of a loop, carrying a list of arrays along.

    Args:
        step: of the arrays that are carried, and of one step's inputs: the next arrays, and a tree
            of arrays as the step's output.
        init: the arrays at the start.
        xs: arrays that are scanned along their first axis.
        length: the number of steps.
        reverse: whether to go from the last step to the first.
        unroll: how many steps are written out in one iteration, where nested scans are used.
        checkpoints: how many states are kept at once. Default: about twice the square root of
            `length`, with which no step runs more than once on the way back.
        buffers: which of the carried arrays the function gets as buffers.

    Returns:
        The arrays after the last step, and the outputs, stacked.
    """
    flags = (False,) * len(init) if buffers is None else tuple(buffers)
    nested = None if any(flags) else _halves(length, checkpoints)
    if nested is not None:
        return _nested(step, init, xs, nested, reverse=reverse, unroll=unroll)
    return _one_loop(step, init, xs, length, flags, reverse=reverse, checkpoints=checkpoints)


def lax_scan(
    step: Step,
    init: Arrays,
    xs: Arrays,
    length: int,
    *,
    reverse: bool,
    unroll: int | bool,
    split_transpose: bool,
    buffers: Sequence[bool] | None,
) -> tuple[Arrays, Any]:
    """`jax.lax.scan`, with buffers."""
    flags = (False,) * len(init) if buffers is None else buffers

    def plain(carry: Arrays, inputs: Arrays) -> tuple[Arrays, Any]:
        return _plain(step, carry, inputs, flags)

    return jax.lax.scan(plain, init, xs, length, reverse, unroll, split_transpose)


def _halves(length: int, checkpoints: int | None) -> tuple[int, int] | None:
    """Two factors of the length, if there are any that keep no more states than allowed."""
    cut = plan(length, checkpoints)
    if not cut.covers or length == 0:
        return None
    # Without `checkpoints`, anything not much worse than the square root will do.
    most = checkpoints + 1 if checkpoints is not None else math.ceil(1.5 * (cut.slots + cut.stride))
    pairs = [(length // n, n) for n in range(1, length + 1) if length % n == 0]
    outer, inner = min(pairs, key=lambda pair: (sum(pair), pair))
    return (outer, inner) if outer + inner <= most else None


def _nested(
    step: Step, init: Arrays, xs: Arrays, lengths: tuple[int, int], *, reverse: bool, unroll: Any
) -> tuple[Arrays, Any]:
    outer, inner = lengths

    def segment(carry: Arrays, inputs: Arrays) -> tuple[Arrays, Any]:
        return jax.lax.scan(step, carry, inputs, inner, reverse, unroll)

    # In a loop nothing is merged across the borders of what is run again, so that the compiler need
    # not be told to keep off.
    kept = jax.checkpoint(segment, prevent_cse=False)
    xs = [x.reshape(outer, inner, *x.shape[1:]) for x in xs]
    last, outputs = jax.lax.scan(kept, init, xs, outer, reverse)
    return last, tree_map(lambda y: y.reshape(outer * inner, *y.shape[2:]), outputs)


def _one_loop(
    step: Step,
    init: Arrays,
    xs: Arrays,
    length: int,
    flags: tuple[bool, ...],
    *,
    reverse: bool,
    checkpoints: int | None,
) -> tuple[Arrays, Any]:
    """A while loop that reads its inputs from buffers and writes its outputs into others."""
    element = [jax.eval_shape(lambda x: x[0], x) for x in xs] if length else None
    if element is None:
        return jax.lax.scan(lambda c, x: _plain(step, c, x, flags), init, xs, length)
    described = jax.eval_shape(lambda c, x: _plain(step, c, x, flags)[1], init, element)
    leaves, trees = tree_leaves(described), []
    n, m = len(init), len(xs)

    def body(state: Arrays) -> Arrays:
        number, rest = state[0], state[1:]
        i = length - 1 - number if reverse else number
        carry, inputs, outputs = rest[:n], rest[n : n + m], rest[n + m :]
        carry, new = step(carry, [x[i] for x in inputs])
        rows, trees[:] = tree_leaves(new), [tree_structure(new)]
        outputs = [y.at[i].set(row) for y, row in zip(outputs, rows, strict=True)]
        return [number + 1, *carry, *inputs, *outputs]

    state = checkpointed_while_loop(
        lambda state: state[0] < length,
        body,
        [jnp.zeros((), jnp.int32), *init, *xs, *(blank(y, length) for y in leaves)],
        max_steps=length,
        checkpoints=checkpoints,
        buffers=(False, *flags, *([True] * (m + len(leaves)))),
    )
    return state[1 : n + 1], trees[0].unflatten(state[n + m + 1 :])


def _plain(step: Step, carry: Arrays, inputs: Arrays, flags: Sequence[bool]) -> tuple[Arrays, Any]:
    out, outputs = step(shown(carry, flags), inputs)
    return unwrapped(out), outputs
