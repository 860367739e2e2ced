"""What a warm call of a compiled function costs, with a model as its argument.

The programs do next to nothing, so that the time is that of the call. The reference gets the same
arrays as a flat list, which is the least that JAX can be asked for; where the program reads one of
them, JAX drops the others before it starts it.
"""

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


def _filtered(name: str, function: Callable[[Any], Any], depth: int) -> Clock:
    model = filtered_mlp(name, depth, WIDTH)
    compiled = library(name).filter_jit(function)
    return Timed(lambda: compiled(model))


def _flat(function: Callable[[Any], Any], depth: int) -> Clock:
    arrays = flat_mlp(depth, WIDTH)
    compiled = jax.jit(function)
    return Timed(lambda: compiled(arrays))


def _nnx(function: Callable[[Any], Any], depth: int) -> Clock:
    model = nnx_mlp(depth, WIDTH)
    compiled = nnx().jit(function)
    return Timed(lambda: compiled(model))


def _row(
    words: str,
    budget: str,
    depth: int,
    functions: tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]],
) -> Row:
    filtered, flat, flax = functions
    return Row(
        f"filter_jit, MLP of depth {depth}, {words}",
        budget=budget,
        subject=partial(_filtered, ECLIPTIC, filtered, depth),
        reference=partial(_flat, flat, depth),
        against="jax.jit on the flat list of arrays",
        peers={
            "equinox": partial(_filtered, EQUINOX, filtered, depth),
            "flax nnx.jit": partial(_nnx, flax, depth),
        },
    )


SCALAR = (_scalar, _scalar_of_list, _scalar_of_nnx)
WHOLE = (_whole, _whole, _whole)
DOUBLED = (_doubled, _doubled, _doubled)

ROWS = (
    *(_row("scalar out", "jit.scalar", depth, SCALAR) for depth in DEPTHS),
    *(_row("model out", "jit.whole", depth, WHOLE) for depth in DEPTHS),
    _row("new model out", "jit.whole", 16, DOUBLED),
)
