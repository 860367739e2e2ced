"""How long a compiled call of about one second keeps the caller.

On the CPU, JAX dispatches a program asynchronously only if ``jax_cpu_enable_async_dispatch`` is on
(it is by default), the program calls no Python back, and it is not so cheap that XLA runs it in
the caller's thread; loops and matrix products are not cheap. So the work here is a loop of matrix
products, whose number is an argument: it is set to take a second without compiling again.
``jax.jit`` runs it first, and if that waits, the row fails, for then it could show nothing.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from bench._measure import Clock, Reported
from bench._models import ECLIPTIC, EQUINOX, library
from bench._row import Row

SIDE = 512
SECONDS = 1.0


def _work(model: Any, rounds: jax.Array) -> jax.Array:
    """``rounds`` products; the model holds a function too, as models do."""
    matrix = model["matrix"]
    return jax.lax.fori_loop(0, rounds, lambda _, x: model["scale"](x @ matrix), matrix)


def _scale(x: jax.Array) -> jax.Array:
    return x / 2


def _call(function: Callable[[Any, jax.Array], jax.Array], rounds: int) -> tuple[float, float]:
    """Seconds until the call returned, and until the result was there."""
    matrix = jnp.full((SIDE, SIDE), 1 / SIDE)
    model = jax.block_until_ready({"matrix": matrix, "scale": _scale})
    count = jax.block_until_ready(jnp.int32(rounds))
    start = time.perf_counter()
    result = function(model, count)
    returned = time.perf_counter() - start
    result.block_until_ready()
    return returned, time.perf_counter() - start


def _rounds(function: Callable[[Any, jax.Array], jax.Array]) -> int:
    """How many rounds take about ``SECONDS``; at least one, however slow the machine."""
    probe = 20
    _call(function, probe)
    seconds = min(_call(function, probe)[1] for _ in range(3))
    return max(1, round(probe * SECONDS / seconds))


def _share(function: Callable[[Any, jax.Array], jax.Array]) -> Clock:
    rounds = _rounds(function)

    def share() -> float:
        returned, whole = _call(function, rounds)
        return returned / whole

    return Reported(share)


def _jax() -> Clock:
    compiled = jax.jit(lambda matrix, rounds: _work({"matrix": matrix, "scale": _scale}, rounds))
    clock = _share(lambda model, rounds: compiled(model["matrix"], rounds))
    clock.calibrate()
    share = clock.sample()
    if share > 0.01:
        raise RuntimeError(
            f"jax.jit itself took {share:.1%} of the time to return: JAX does not dispatch this "
            f"program asynchronously here (jax_cpu_enable_async_dispatch is "
            f"{jax.config.read('jax_cpu_enable_async_dispatch')})."
        )
    return clock


def _filtered(name: str) -> Clock:
    return _share(library(name).filter_jit(_work))


ROWS = (
    Row(
        "filter_jit of one second, until it returns",
        budget="asynchrony.return",
        subject=partial(_filtered, ECLIPTIC),
        reference=_jax,
        against="jax.jit",
        peers={"equinox": partial(_filtered, EQUINOX)},
        repeats=3,
    ),
)
