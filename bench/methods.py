"""Calling a method that returns a field, and reading a field."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax

from bench._measure import Clock, unrolled
from bench._models import ECLIPTIC, EQUINOX, library, nnx
from bench._row import Row

CALL, APPLY, READ = "model.get()", "model()", "model.weight"

# A read takes two nanoseconds, a call between fifty and fifty thousand.
LINES = {CALL: 10, APPLY: 10, READ: 100}

# Where nanoseconds count, the least of the samples takes longer to come by.
REPEATS = 300


@dataclasses.dataclass(frozen=True)
class Plain:
    weight: float
    bias: float

    def get(self) -> float:
        return self.weight

    def __call__(self) -> float:
        return self.weight


def _built(name: str) -> Any:
    class Model(library(name).Module):
        weight: float
        bias: float

        def get(self) -> float:
            return self.weight

        def __call__(self) -> float:
            return self.weight

    return Model(1.0, 2.0)


def _unflattened(name: str) -> Any:
    """An instance as a transform hands it to the user's function, made by no ``__init__``."""
    leaves, structure = jax.tree.flatten(_built(name))
    return jax.tree.unflatten(structure, leaves)


def _nnx() -> Any:
    class Model(nnx().Module):
        def __init__(self) -> None:
            self.weight = 1.0
            self.bias = 2.0

        def get(self) -> float:
            return self.weight

        def __call__(self) -> float:
            return self.weight

    return Model()


def _plain() -> Plain:
    return Plain(1.0, 2.0)


def _clock(expression: str, make: Callable[[], Any]) -> Clock:
    return unrolled(expression, lines=LINES[expression], model=make())


def _row(name: str, budget: str, expression: str, make: Callable[[str], Any]) -> Row:
    return Row(
        name,
        budget=budget,
        subject=partial(_clock, expression, partial(make, ECLIPTIC)),
        reference=partial(_clock, expression, _plain),
        against="a frozen dataclass",
        peers={
            "equinox": partial(_clock, expression, partial(make, EQUINOX)),
            "flax nnx": partial(_clock, expression, _nnx),
        },
        repeats=REPEATS,
    )


ROWS = (
    _row("call a method, instance built", "methods.call", CALL, _built),
    _row("call a method, instance unflattened", "methods.call", CALL, _unflattened),
    _row("call __call__, instance built", "methods.call", APPLY, _built),
    _row("read an attribute, instance built", "methods.read", READ, _built),
    _row("read an attribute, instance unflattened", "methods.read-unflattened", READ, _unflattened),
)
