"""A while loop with derivatives in every mode, of which a bounded number of states is kept."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ecliptic.control._loops._buffer import Buffer
from ecliptic.control._loops._loop import Arrays, Loop, close
from ecliptic.control._loops._primitive import bind


def checkpointed_while_loop(
    cond_fun: Callable[[Arrays], Any],
    body_fun: Callable[[Arrays], Arrays],
    init: Sequence[Any],
    *,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    buffers: Sequence[bool] | None = None,
) -> Arrays:
    """Repeats a function of a list of arrays while a condition holds.

    Args:
        cond_fun: of the arrays: whether to go on.
        body_fun: of the arrays: the next ones, with the same shapes and dtypes.
        init: the arrays at the start.
        max_steps: the largest number of steps.
        checkpoints: how many states are kept at once.
        buffers: which arrays the functions get as buffers.

    Returns:
        The arrays after the last step.
    """
    flags = (False,) * len(init) if buffers is None else tuple(buffers)
    init = [jnp.asarray(x) for x in init]

    def body(active: Any, *state: Any) -> Arrays:
        out = body_fun(shown(state, flags, active))
        return [x._array if isinstance(x, Buffer) else jnp.asarray(x) for x in out]

    # A weakly typed array takes the dtype of what replaces it, as in `jax.lax.while_loop`. That may
    # give others a new dtype in turn.
    for _ in range(len(init) + 1):
        body_fun_closed, body_consts, out = close(body, True, *init)
        fitted = [_fitted(x, new) for x, new in zip(init, out, strict=True)]
        if all(one is other for one, other in zip(fitted, init, strict=True)):
            break
        init = fitted
    if max_steps == 0:
        return init
    cond_fun_closed, cond_consts, _ = close(
        lambda *state: [jnp.asarray(cond_fun(shown(state, flags, True)))], *init
    )
    n = len(cond_consts)
    loop = Loop(
        cond=lambda consts, state: cond_fun_closed(consts[:n], *state)[0],
        body=lambda consts, state, active: body_fun_closed(consts[n:], active, *state),
        buffers=flags,
        max_steps=max_steps,
        checkpoints=checkpoints,
    )
    return bind(loop, cond_consts + body_consts, init)


def shown(state: Sequence[Any], buffers: Sequence[bool], active: Any) -> Arrays:
    """The arrays as the user's functions see them."""
    return [
        Buffer(x, active) if is_buffer else x
        for x, is_buffer in zip(state, buffers, strict=True)
    ]


def _fitted(x: Any, new: Any) -> Any:
    weak = getattr(jax.typeof(x), "weak_type", False)
    if weak and (x.dtype != new.dtype or not getattr(new, "weak_type", False)):
        return jax.lax.convert_element_type(x, new.dtype)
    return x
