"""The loops of `equinox.internal`, which take options that their kind has no use for."""

from collections.abc import Callable
from typing import Any, Literal

import jax
from jaxtyping import PyTree

from ecliptic.compat.equinox.internal._observed import observed
from ecliptic.control import filter_scan, filter_while_loop
from ecliptic.errors import ArgumentError


def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    *,
    max_steps: int | None = None,
    buffers: Callable[[Any], Any] | None = None,
    kind: Literal["lax", "checkpointed", "bounded"],
    checkpoints: int | None = None,
    base: int = 16,
) -> Any:
    """`filter_while_loop`, where `checkpoints` and `base` count for the kinds that have them.

    Programs pass both whichever kind they choose; `filter_while_loop` refuses what has no effect.

    Args:
        cond_fun: as there, like all that follows.
        body_fun: a function from one carry to the next.
        init_val: the carry at the start.
        max_steps: the largest number of steps.
        buffers: parts of the carry that are written in place.
        kind: which derivatives the loop has.
        checkpoints: how many states a checkpointed loop keeps.
        base: how many steps lie between two states that a bounded loop keeps.
    """
    options: dict[str, Any] = {}
    if kind == "checkpointed" and checkpoints is not None:
        # A state may be kept at each step, as programs that count evaluations expect.
        options.update(checkpoints=checkpoints, base=1)
    if kind == "bounded":
        options["base"] = base
    options.update(max_steps=max_steps, buffers=buffers, kind=kind)
    if kind != "checkpointed" or buffers is not None:
        return filter_while_loop(cond_fun, body_fun, init_val, **options)
    return observed(
        lambda body, init: filter_while_loop(cond_fun, body, init, **options), body_fun, init_val
    )


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: PyTree,
    length: int | None = None,
    *,
    buffers: Callable[[Any], Any] | None = None,
    kind: Literal["lax", "checkpointed"],
    checkpoints: int | Literal["all"] | None = None,
) -> tuple[Any, Any]:
    """`filter_scan`, where `checkpoints` may be `"all"`, and counts for the kind that has them.

    Args:
        f: as there, like all that follows.
        init: the carry at the start.
        xs: what is scanned over.
        length: how many steps there are.
        buffers: parts of the carry that are written in place.
        kind: which derivatives the loop has.
        checkpoints: how many states a checkpointed loop keeps; `"all"`: one for each step.
    """
    options: dict[str, Any] = {}
    if kind == "checkpointed":
        if checkpoints == "all":
            checkpoints = max(_length(xs, length), 1)
        options["checkpoints"] = checkpoints
    return filter_scan(f, init, xs, length, buffers=buffers, kind=kind, **options)


def _length(xs: PyTree, length: int | None) -> int:
    if length is not None:
        return length
    for leaf in jax.tree_util.tree_leaves(xs):
        if getattr(leaf, "ndim", 0):
            return leaf.shape[0]
    raise ArgumentError('`scan(checkpoints="all")` needs a `length=`, or arrays in `xs`.')
