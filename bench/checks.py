"""What runtime checks cost: one in each step of a scan, and one in a small function.

A check waits for its result, so a call of a function that holds one takes as long as the function.
Its reference is the same call without the check that waits as well.
"""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from bench._measure import Clock, Timed
from bench._models import ECLIPTIC, EQUINOX, library
from bench._row import Row

STEPS = 1000
# A step takes about 0.7 µs; below that the 40 ns of a branch of XLA show.
WIDTH = 128

Check = Callable[[Any, Any, str], Any]


def _none(x: Any, pred: Any, message: str) -> Any:
    return x


def _check(name: str) -> Check:
    return importlib.import_module(f"{name}.runtime" if name == ECLIPTIC else name).error_if


def _scan(check: Callable[[], Check], jit: Callable[[], Any]) -> Clock:
    test, weight, start = check(), jnp.eye(WIDTH) / 2, jnp.ones(WIDTH)

    def step(y: jax.Array, _: None) -> tuple[jax.Array, None]:
        y = jnp.tanh(weight @ y)
        return test(y, jnp.any(jnp.isnan(y)), "not a number"), None

    run = jit()(lambda y: jax.lax.scan(step, y, None, STEPS)[0])
    return Timed(lambda: run(start).block_until_ready())


def _small(check: Callable[[], Check], jit: Callable[[], Any]) -> Clock:
    test, x = check(), jnp.ones(())
    run = jit()(lambda x: test(x, x < 0, "negative") + 1)
    return Timed(lambda: run(x).block_until_ready())


def _filter_jit(name: str) -> Any:
    return library(name).filter_jit


ROWS = tuple(
    Row(
        name,
        budget=budget,
        subject=partial(clock, partial(_check, ECLIPTIC), partial(_filter_jit, ECLIPTIC)),
        reference=partial(clock, lambda: _none, partial(_filter_jit, ECLIPTIC)),
        against="the same without a check",
        peers={
            "equinox": partial(clock, partial(_check, EQUINOX), partial(_filter_jit, EQUINOX)),
        },
        repeats=repeats,
    )
    for name, budget, clock, repeats in (
        (f"error_if in a scan of {STEPS} steps", "checks.scan", _scan, 40),
        ("filter_jit with a check, waited for", "checks.small", _small, None),
    )
)
