"""`filter_while_loop` and `filter_fori_loop`: those of `jax.lax`, over any PyTree."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import jax
from jaxtyping import ArrayLike, Bool, Int, Real

from ecliptic.control._carry import Split, loop_wording, with_promotion
from ecliptic.control._eager import run
from ecliptic.control._kind import Lent, WhileKind, buffer_flags, without_buffers
from ecliptic.control._metered import Measured, measured, while_with_reports, with_more
from ecliptic.control._progress import AbstractProgress, NoProgress
from ecliptic.errors import ArgumentError
from ecliptic.runtime._active import only_where

_Carry = TypeVar("_Carry")


def filter_while_loop(
    cond_fun: Callable[[_Carry], Bool[ArrayLike, ""]],
    body_fun: Callable[[_Carry], _Carry],
    init_val: _Carry,
    *,
    max_steps: int | None = None,
    kind: Literal["lax", "checkpointed", "bounded"] = "lax",
    checkpoints: int | None = None,
    base: int | None = None,
    buffers: Callable[[_Carry], Any] | None = None,
    progress: AbstractProgress[Any] | None = None,
    fraction: Callable[[_Carry], Real[ArrayLike, ""]] | None = None,
) -> _Carry:
    """Repeats a function while a condition holds: `jax.lax.while_loop`.

    The carry may be any PyTree. Arrays in it are traced; everything else is held, and both
    functions see it whole. A Python number may change, and is an array then.

    Args:
        cond_fun: a function of the carry that says whether to go on.
        body_fun: a function from one carry to the next.
        init_val: the carry at the start.
        max_steps: the largest number of steps. Default: as many as it takes.
        kind: which derivatives the loop has. `"lax"`: forward mode alone, as in JAX.
            `"checkpointed"`: all modes, from a bounded number of states that are kept; the steps in
            between run again on the way back. `"bounded"`: the same, with enough states for
            `max_steps`, so that no step runs more than twice.
        checkpoints: how many states a checkpointed loop keeps at once. Default: about twice the
            square root of `max_steps`, with which no step runs more than twice; 32 if there is no
            `max_steps`. With fewer, steps run more often: 10 states go back through 1,000 steps in
            some 4 times the work.
        base: how many steps lie between two states that are kept. Default: in a checkpointed loop,
            so many that the fewest steps run again; in a bounded one 16, or the square root of
            `max_steps` if that is more.
        buffers: a function from the carry to a node of it, or several: arrays that `body_fun` only
            writes to at an index, and reads from at an index, and which change nowhere once they
            have been read there. Such an array is not copied on the way back, however often a state
            is kept. In both functions it appears as a [`Buffer`][].
        progress: shows how far the loop is, for instance `TqdmProgress()`. It has to be known
            what is far: by `fraction`, or else all is done after `max_steps` steps. The call waits
            until the loop is done, unless it is part of a compiled function.
        fraction: a function of the carry, for `progress`: which fraction of the work is done, from
            0 to 1. In a batch, the average counts.

    Returns:
        The first carry for which `cond_fun` is false, or the one after `max_steps` steps.

    Raises:
        ArgumentError: if `max_steps`, `kind`, `checkpoints`, `base` and `buffers` do not go
            together; if there is a `progress`, and neither `max_steps` nor `fraction`; or a
            `fraction` without `progress`.
        CarryError: if `body_fun` changes the carry's structure, a shape, a dtype, or anything
            that is no array. Lists every such leaf by path.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> def halve(carry):
        ...     return {"x": carry["x"] / 2, "steps": carry["steps"] + 1, "name": carry["name"]}
        >>> out = ec.filter_while_loop(
        ...     lambda carry: carry["x"] > 1, halve, {"x": jnp.array(20.0), "steps": 0, "name": "n"}
        ... )
        >>> float(out["x"]), int(out["steps"]), out["name"]
        (0.625, 5, 'n')
    """
    how = WhileKind(kind, max_steps, checkpoints, base)
    how.check()
    _check_progress(max_steps, progress, fraction)
    return measured(
        "filter_while_loop",
        progress,
        init_val,
        lambda meter: run(
            _while_loop, (body_fun, cond_fun, fraction, buffers), (init_val, meter), how
        ),
    )


def _check_progress(max_steps: int | None, progress: Any, fraction: Any) -> None:
    if progress is None and fraction is not None:
        raise ArgumentError(
            "`filter_while_loop(fraction=...)` says how far a loop is to `progress=`, and there is "
            "none. Pass one, such as `ecliptic.TqdmProgress()`, or leave out `fraction`."
        )
    shown = not (progress is None or isinstance(progress, NoProgress))
    if shown and fraction is None and max_steps is None:
        raise ArgumentError(
            "`filter_while_loop(progress=...)` does not know how far the loop has to go. Pass "
            "`max_steps=`, or `fraction=`: a function of the carry that returns which fraction of "
            "the work is done, from 0 to 1."
        )


def _while_loop(
    functions: tuple[Any, ...],
    trees: tuple[Any, ...],
    options: Any,
    learn: Callable[[frozenset[int]], None],
) -> Any:
    (body_fun, cond_fun, fraction, buffers), (init_val, meter) = functions, trees
    how: WhileKind = options
    say = loop_wording("filter_while_loop")
    lent = Lent(init_val)

    def attempt(promoted: frozenset[int]) -> Any:
        carry = Split(lent.tree, promoted)

        def cond(arrays: list[Any]) -> Any:
            return cond_fun(carry.merge(lent.inside(arrays, carry)))

        def body(arrays: list[Any]) -> list[Any]:
            out = body_fun(carry.enter(lent.inside(arrays, carry)))
            return carry.accept(without_buffers(out), say)

        flags = lent.flags(buffer_flags("filter_while_loop", carry, buffers), carry)
        after = None
        if meter is None:
            last = how.run(cond, body, carry.arrays, flags)
        else:
            last, after = while_with_reports(
                lambda cond, body, arrays: how.run(cond, body, arrays, with_more(flags, arrays)),
                cond,
                body,
                carry.arrays,
                fraction and (lambda arrays: fraction(carry.merge(arrays))),
                how.max_steps,
                meter,
            )
        carry.finish()
        return Measured(lent.back(carry.merge(last)), after)

    return with_promotion(attempt, learn)


def filter_fori_loop(
    lower: Int[ArrayLike, ""],
    upper: Int[ArrayLike, ""],
    body_fun: Callable[[Int[ArrayLike, ""], _Carry], _Carry],
    init_val: _Carry,
    *,
    unroll: int | bool | None = None,
) -> _Carry:
    """Repeats a function for each integer of a range: `jax.lax.fori_loop`.

    The carry may be any PyTree, as for [`filter_while_loop`][].

    Args:
        lower: the first integer.
        upper: the integer after the last.
        body_fun: a function of the integer and the carry, which returns the next carry.
        init_val: the carry at the start.
        unroll: how many steps are written out in one iteration of the compiled loop, if the range
            is known when tracing. Default: JAX's.

    Returns:
        The carry after the last step; `init_val` if the range is empty.

    Raises:
        CarryError: if `body_fun` changes the carry's structure, a shape, a dtype, or anything
            that is no array. Lists every such leaf by path.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> total, name = ec.filter_fori_loop(
        ...     0, 5, lambda i, carry: (carry[0] + i, carry[1]), (jnp.array(0), "sum")
        ... )
        >>> int(total), name
        (10, 'sum')
    """
    return run(_fori_loop, (body_fun,), (init_val, lower, upper), unroll)


def _fori_loop(
    functions: tuple[Any, ...],
    trees: tuple[Any, ...],
    unroll: Any,
    learn: Callable[[frozenset[int]], None],
) -> Any:
    (body_fun,), (init_val, lower, upper) = functions, trees
    say = loop_wording("filter_fori_loop")

    def attempt(promoted: frozenset[int]) -> Any:
        carry = Split(init_val, promoted)

        def body(i: Any, arrays: list[Any]) -> list[Any]:
            return carry.accept(body_fun(i, carry.enter(arrays)), say)

        step = only_where(body, lambda i, arrays: i < upper)
        last = jax.lax.fori_loop(lower, upper, step, carry.arrays, unroll=unroll)
        carry.finish()
        return carry.merge(last)

    return with_promotion(attempt, learn)
