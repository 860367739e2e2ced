"""Building a module of two fields, with a generated and with its own ``__init__``."""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from bench._measure import Clock, unrolled
from bench._models import ECLIPTIC, EQUINOX, library, nnx
from bench._row import Row

# A module may look at what is put into it, so what it holds can matter.
NUMBERS = (1.0, 2.0)
ARRAYS = "arrays"


def _values(kind: object) -> tuple[Any, Any]:
    return (jnp.ones((8, 8)), jnp.zeros(8)) if kind == ARRAYS else NUMBERS


def _generated(base: type) -> type:
    class Pair(base):
        weight: jax.Array
        bias: jax.Array

    return Pair


def _custom(base: type) -> type:
    class Pair(base):
        weight: jax.Array
        bias: jax.Array

        def __init__(self, weight: Any, bias: Any) -> None:
            self.weight = weight
            self.bias = bias

    return Pair


@dataclasses.dataclass(frozen=True)
class PlainGenerated:
    weight: jax.Array
    bias: jax.Array


@dataclasses.dataclass(frozen=True)
class PlainCustom:
    weight: jax.Array
    bias: jax.Array

    def __init__(self, weight: Any, bias: Any) -> None:
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "bias", bias)


def _build(kind: object, cls: type) -> Clock:
    weight, bias = _values(kind)
    return unrolled("Pair(weight, bias)", lines=10, Pair=cls, weight=weight, bias=bias)


def _generated_of(name: str, kind: object) -> Clock:
    return _build(kind, _generated(library(name).Module))


def _custom_of(name: str, kind: object) -> Clock:
    return _build(kind, _custom(library(name).Module))


def _nnx(kind: object) -> Clock:
    return _build(kind, _custom(nnx().Module))


def _rows(kind: object, words: str) -> tuple[Row, Row]:
    return (
        Row(
            f"build, generated __init__, {words}",
            budget="construction.generated",
            subject=partial(_generated_of, ECLIPTIC, kind),
            reference=partial(_build, kind, PlainGenerated),
            against="a frozen dataclass",
            peers={"equinox": partial(_generated_of, EQUINOX, kind)},
        ),
        Row(
            f"build, custom __init__, {words}",
            budget="construction.custom",
            subject=partial(_custom_of, ECLIPTIC, kind),
            reference=partial(_build, kind, PlainCustom),
            against="a frozen dataclass with object.__setattr__ in its __init__",
            peers={
                "equinox": partial(_custom_of, EQUINOX, kind),
                "flax nnx": partial(_nnx, kind),
            },
        ),
    )


ROWS = (*_rows(NUMBERS, "two numbers"), *_rows(ARRAYS, "two arrays"))
