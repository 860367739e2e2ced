"""While loops that can be gone through backwards."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ecliptic.control._loops._buffer import shown, unwrapped
from ecliptic.control._loops._loop import Arrays, Loop, close
from ecliptic.control._loops._primitive import bind
from ecliptic.control._loops._schedule import Plan, plan, plan_bounded


def lax_while_loop(
    cond_fun: Callable[[Arrays], Any],
    body_fun: Callable[[Arrays], Arrays],
    init: Arrays,
    *,
    max_steps: int | None = None,
    buffers: Sequence[bool] | None = None,
) -> Arrays:
    """`jax.lax.while_loop`, with a largest number of steps and with buffers.

    Args and returns are those of [`checkpointed_while_loop`][].
    """
    flags = (False,) * len(init) if buffers is None else tuple(buffers)

    def cond(state: Arrays) -> Any:
        return cond_fun(shown(state, flags))

    def body(state: Arrays) -> Arrays:
        return unwrapped(body_fun(shown(state, flags)))

    if max_steps is None:
        return jax.lax.while_loop(cond, body, init)
    _, last = jax.lax.while_loop(
        lambda carry: (carry[0] < max_steps) & cond(carry[1]),
        lambda carry: (carry[0] + 1, body(carry[1])),
        (jnp.zeros((), jnp.int32), init),
    )
    return last


def checkpointed_while_loop(
    cond_fun: Callable[[Arrays], Any],
    body_fun: Callable[[Arrays], Arrays],
    init: Arrays,
    *,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    stride: int | None = None,
    buffers: Sequence[bool] | None = None,
) -> Arrays:
    """Repeats a function of a list of arrays while a condition holds.

    Args:
        cond_fun: of the arrays: whether to go on.
        body_fun: of the arrays: the next ones, with the same shapes and dtypes.
        init: the arrays at the start.
        max_steps: the largest number of steps.
        checkpoints: how many states are kept at once; see [`plan`][].
        stride: how many steps lie between two of them; see there.
        buffers: which arrays the functions get as [`Buffer`][].

    Returns:
        The arrays after the last step.
    """
    return _differentiable(
        cond_fun, body_fun, init, plan(max_steps, checkpoints, stride), max_steps, buffers
    )


def bounded_while_loop(
    cond_fun: Callable[[Arrays], Any],
    body_fun: Callable[[Arrays], Arrays],
    init: Arrays,
    *,
    max_steps: int,
    base: int = 16,
    buffers: Sequence[bool] | None = None,
) -> Arrays:
    """The same with a state kept for every segment: two nested loops, both of known length at most.

    Args:
        cond_fun: as above.
        body_fun: as above.
        init: as above.
        max_steps: the largest number of steps.
        base: how many steps the inner loop has at least; see [`plan_bounded`][].
        buffers: as above.

    Returns:
        The arrays after the last step.
    """
    cut = plan_bounded(max_steps, base)
    return _differentiable(cond_fun, body_fun, init, cut, max_steps, buffers)


def _differentiable(
    cond_fun: Callable[[Arrays], Any],
    body_fun: Callable[[Arrays], Arrays],
    init: Arrays,
    cut: Plan,
    max_steps: int | None,
    buffers: Sequence[bool] | None,
) -> Arrays:
    flags = (False,) * len(init) if buffers is None else tuple(buffers)
    init = [jnp.asarray(x) for x in init]

    def body(active: Any, *state: Any) -> Arrays:
        return unwrapped(body_fun(shown(state, flags, active)))

    # A weakly typed array takes the dtype of what replaces it, as in `jax.lax.while_loop`. That may
    # give others a new dtype in turn.
    while True:
        body_closed, body_consts, out = close(body, True, *init)
        fitted = [_fitted(x, new) for x, new in zip(init, out, strict=True)]
        if all(one is other for one, other in zip(fitted, init, strict=True)):
            break
        init = fitted
    if max_steps == 0:
        return init
    cond_closed, cond_consts, _ = close(
        lambda *state: [jnp.asarray(cond_fun(shown(state, flags)))], *init
    )
    n = len(cond_consts)
    loop = Loop(
        cond=lambda consts, state: cond_closed(consts[:n], *state)[0],
        body=lambda consts, state, active: body_closed(consts[n:], active, *state),
        buffers=flags,
        cut=cut,
        max_steps=max_steps,
    )
    return bind(loop, cond_consts + body_consts, init)


def _fitted(x: Any, new: Any) -> Any:
    weak = getattr(jax.typeof(x), "weak_type", False)
    if weak and (x.dtype != new.dtype or not getattr(new, "weak_type", False)):
        return jax.lax.convert_element_type(x, new.dtype)
    return x
