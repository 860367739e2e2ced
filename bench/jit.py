"""What a warm call of a compiled function costs, with a model as its argument.

The programs do next to nothing, so that the time is that of the call. The reference gets the same
arrays as a flat list, which is the least that JAX can be asked for; where the program reads one of
them, JAX drops the others before it starts it.
"""

import dataclasses
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import jax

from bench._measure import Clock, Timed
from bench._models import ECLIPTIC, EQUINOX, filtered_mlp, flat_mlp, library, nnx, nnx_mlp
from bench._row import Row

DEPTHS = (1, 4, 16, 64)
WIDTH = 8


def _scalar(model: Any) -> jax.Array:
    return model.layers[0].weight[0, 0]


def _scalar_of_list(arrays: list[jax.Array]) -> jax.Array:
    return arrays[0][0, 0]


def _scalar_of_nnx(model: Any) -> jax.Array:
    return model.layers[0].kernel[0, 0]


def _whole(model: Any) -> Any:
    return model


def _doubled(model: Any) -> Any:
    """New arrays at every leaf, so that no output is an input that was passed through."""
    return jax.tree.map(lambda leaf: 2 * leaf if isinstance(leaf, jax.Array) else leaf, model)


@dataclasses.dataclass(frozen=True)
class Forms:
    """A function for each form of the model."""

    filtered: Callable[[Any], Any]
    flat: Callable[[Any], Any]
    nnx: Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class Program:
    """What is compiled, and, where it computes, which output to wait for.

    Calls that compute and are not waited for pile up behind each other, and what is timed then is
    how long the queue was that moment. All outputs of a program become ready together, so it is
    enough to wait for one, which costs each contender the same.
    """

    words: str
    budget: str
    run: Forms
    wait_for: Forms | None = None


def _clock(
    compiled: Callable[[Any], Any], models: list[Any], wait_for: Callable[[Any], jax.Array] | None
) -> Clock:
    """Calls with each model in turn, as a training loop brings a new one each time."""
    turns = itertools.cycle(models)
    if wait_for is None:
        return Timed(lambda: compiled(next(turns)))
    return Timed(lambda: wait_for(compiled(next(turns))).block_until_ready())


def _pair(model: Any) -> list[Any]:
    """Two models with their own arrays, which come out of no constructor but of a transform."""

    def renew(leaf: Any) -> Any:
        return leaf.copy() if isinstance(leaf, jax.Array) else leaf

    return [jax.tree.map(renew, model) for _ in range(2)]


def _filtered(name: str, program: Program, depth: int) -> Clock:
    compiled = library(name).filter_jit(program.run.filtered)
    wait_for = program.wait_for and program.wait_for.filtered
    return _clock(compiled, _pair(filtered_mlp(name, depth, WIDTH)), wait_for)


def _flat(program: Program, depth: int) -> Clock:
    wait_for = program.wait_for and program.wait_for.flat
    return _clock(jax.jit(program.run.flat), _pair(flat_mlp(depth, WIDTH)), wait_for)


def _nnx(program: Program, depth: int) -> Clock:
    wait_for = program.wait_for and program.wait_for.nnx
    return _clock(nnx().jit(program.run.nnx), [nnx_mlp(depth, WIDTH) for _ in range(2)], wait_for)


def _row(program: Program, depth: int) -> Row:
    return Row(
        f"filter_jit, MLP of depth {depth}, {program.words}",
        budget=program.budget,
        subject=partial(_filtered, ECLIPTIC, program, depth),
        reference=partial(_flat, program, depth),
        against="jax.jit on the flat list of arrays",
        peers={
            "equinox": partial(_filtered, EQUINOX, program, depth),
            "flax nnx.jit": partial(_nnx, program, depth),
        },
    )


SCALAR = Program("scalar out", "jit.scalar", Forms(_scalar, _scalar_of_list, _scalar_of_nnx))
WHOLE = Program("model out", "jit.whole", Forms(_whole, _whole, _whole))
DOUBLED = Program(
    "new model out",
    "jit.whole",
    Forms(_doubled, _doubled, _doubled),
    wait_for=Forms(
        lambda model: model.layers[0].weight,
        lambda arrays: arrays[0],
        lambda model: model.layers[0].kernel[...],
    ),
)

ROWS = (
    *(_row(SCALAR, depth) for depth in DEPTHS),
    *(_row(WHOLE, depth) for depth in DEPTHS),
    _row(DOUBLED, 16),
)
