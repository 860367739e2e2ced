"""Loops: a model as the carry, and the gradient of each kind of loop that has one.

The reference is `jax.lax.scan`: with the model partitioned by hand, or for its gradient, for which
it keeps what it needs of each of 1024 small steps.
"""

import importlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from bench._measure import Clock, Reported, Timed
from bench._models import ECLIPTIC, filtered_mlp, library
from bench._row import Row

STEPS = 1024
WIDTH = 64

# Of the model in a carry.
DEPTH = 4
NARROW = 8

# These compile a program for each sample.
COMPILATIONS = 5

# States that a loop keeps.
FEW, MANY = 500, 20_000

Loss = Callable[[jax.Array, jax.Array], jax.Array]


def _step(weight: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.tanh(weight @ y)


def _plain() -> Loss:
    def loss(weight: jax.Array, y: jax.Array) -> jax.Array:
        y, _ = jax.lax.scan(lambda y, _: (_step(weight, y), None), y, None, STEPS)
        return jnp.sum(y**2)

    return loss


def _while(module: str, name: str, kind: str) -> Loss:
    loop = getattr(importlib.import_module(module), name)

    def loss(weight: jax.Array, y: jax.Array) -> jax.Array:
        _, y = loop(
            lambda carry: carry[0] < STEPS,
            lambda carry: (carry[0] + 1, _step(weight, carry[1])),
            (jnp.zeros((), jnp.int32), y),
            kind=kind,
            max_steps=STEPS,
        )
        return jnp.sum(y**2)

    return loss


def _scan() -> Loss:
    scan = library(ECLIPTIC).filter_scan

    def loss(weight: jax.Array, y: jax.Array) -> jax.Array:
        step = lambda y, _: (_step(weight, y), None)  # noqa: E731
        y, _ = scan(step, y, length=STEPS, kind="checkpointed")
        return jnp.sum(y**2)

    return loss


def _scan_of_equinox() -> Loss:
    scan = importlib.import_module("equinox.internal").scan

    def loss(weight: jax.Array, y: jax.Array) -> jax.Array:
        step = lambda y, _: (_step(weight, y), None)  # noqa: E731
        y, _ = scan(step, y, None, STEPS, kind="checkpointed")
        return jnp.sum(y**2)

    return loss


def _arguments() -> tuple[jax.Array, jax.Array]:
    weight = jax.random.normal(jax.random.key(0), (WIDTH, WIDTH)) / WIDTH**0.5
    return weight, jnp.ones(WIDTH)


def _compiled(make: Callable[[], Loss]) -> Any:
    return jax.jit(jax.grad(make(), (0, 1))).lower(*_arguments()).compile()


def _run(make: Callable[[], Loss]) -> Clock:
    program, arguments = _compiled(make), _arguments()
    return Timed(lambda: jax.block_until_ready(program(*arguments)))


def _memory(make: Callable[[], Loss]) -> Clock:
    size = _compiled(make).memory_analysis().temp_size_in_bytes
    return Reported(lambda: float(size))


def _compilation(make: Callable[[], Loss]) -> Clock:
    def sample() -> float:
        start = time.perf_counter()
        _compiled(make)
        return time.perf_counter() - start

    return Reported(sample)


_OURS = partial(_while, ECLIPTIC, "filter_while_loop")
_THEIRS = partial(_while, "equinox.internal", "while_loop")

KINDS: dict[str, tuple[Callable[[], Loss], Callable[[], Loss]]] = {
    "checkpointed while": (partial(_OURS, "checkpointed"), partial(_THEIRS, "checkpointed")),
    "bounded while": (partial(_OURS, "bounded"), partial(_THEIRS, "bounded")),
    "checkpointed scan": (_scan, _scan_of_equinox),
}

MEASURES: dict[str, tuple[Callable[[Callable[[], Loss]], Clock], int | None]] = {
    "time": (_run, None),
    "memory": (_memory, 1),
    "compilation": (_compilation, COMPILATIONS),
}


def _row(kind: str, measure: str) -> Row:
    (ours, theirs), (clock, repeats) = KINDS[kind], MEASURES[measure]
    budget = f"loops.{kind.replace(' ', '-')}" if measure == "time" else f"loops.{measure}"
    return Row(
        f"gradient of a {kind}, {measure}",
        budget=budget,
        subject=partial(clock, ours),
        reference=partial(clock, _plain),
        against="the gradient of jax.lax.scan",
        peers={"equinox": partial(clock, theirs)},
        repeats=repeats,
        quantity="B" if measure == "memory" else "s",
    )


def _model_in_carry(how: str) -> tuple[Callable[..., Any], Any, jax.Array]:
    """A loop over a model: by `filter_scan`, or partitioned by hand around `jax.lax.scan`."""
    lib = library(ECLIPTIC)
    model = filtered_mlp(ECLIPTIC, DEPTH, NARROW)
    arrays, static = lib.partition(model, lib.is_array)
    x = jnp.ones(NARROW)

    def filtered(model: Any, x: jax.Array) -> tuple[Any, jax.Array]:
        step = lambda carry, _: ((carry[0], carry[0](carry[1])), None)  # noqa: E731
        return lib.filter_scan(step, (model, x), length=STEPS)[0]

    def by_hand(arrays: Any, x: jax.Array) -> tuple[Any, jax.Array]:
        def step(carry: Any, _: Any) -> Any:
            arrays, x = carry
            return (arrays, lib.combine(arrays, static)(x)), None

        return jax.lax.scan(step, (arrays, x), length=STEPS)[0]

    if how == "filter_scan":
        return filtered, model, x
    return by_hand, arrays, x


def _call_of_loop(how: str) -> Clock:
    loop, carried, x = _model_in_carry(how)
    # Both through `jax.jit` over arrays alone: what is compared is the compiled loop.
    lib = library(ECLIPTIC)
    arrays, static = lib.partition(carried, lib.is_array)
    jitted = jax.jit(lambda arrays, x: loop(lib.combine(arrays, static), x)[1])
    return Timed(lambda: jax.block_until_ready(jitted(arrays, x)))


def _trace_of_loop(how: str) -> Clock:
    loop, carried, x = _model_in_carry(how)
    lib = library(ECLIPTIC)
    arrays, static = lib.partition(carried, lib.is_array)
    return Timed(
        lambda: jax.make_jaxpr(lambda arrays, x: loop(lib.combine(arrays, static), x)[1])(arrays, x)
    )


def _against_by_hand(name: str, budget: str, clock: Callable[[str], Clock], repeats: int) -> Row:
    return Row(
        name,
        budget=budget,
        subject=partial(clock, "filter_scan"),
        reference=partial(clock, "by hand"),
        against="jax.lax.scan, the model partitioned by hand",
        repeats=repeats,
    )


def _keeping(states: int) -> Clock:
    loop = library(ECLIPTIC).filter_while_loop

    def loss(y: jax.Array) -> jax.Array:
        # More than there is room for.
        most = 2 * MANY
        step = lambda carry: (carry[0] + 1, jnp.sin(carry[1]))  # noqa: E731
        init = (jnp.zeros((), jnp.int32), y)
        return loop(
            lambda carry: carry[0] < most, step, init, kind="checkpointed", base=1,
            checkpoints=states,
        )[1]  # fmt: skip

    gradient, y = jax.jit(jax.grad(loss)), jnp.array(0.5)
    return Timed(lambda: jax.block_until_ready(gradient(y)))


ROWS = (
    Row(
        "gradient of a while that keeps many states",
        budget="loops.many-states",
        subject=partial(_keeping, MANY),
        reference=partial(_keeping, FEW),
        against="the same, of which few fit",
        repeats=30,
    ),
    _against_by_hand("filter_scan over a model, call", "loops.scan-call", _call_of_loop, 60),
    _against_by_hand("filter_scan over a model, trace", "loops.scan-trace", _trace_of_loop, 40),
    *(_row(kind, measure) for measure in MEASURES for kind in KINDS),
)
