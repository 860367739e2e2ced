"""Taking an MLP of 65 layers apart and putting it together again."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax

from bench._measure import Clock, Timed
from bench._models import ECLIPTIC, EQUINOX, filtered_mlp, nnx, nnx_mlp
from bench._row import Row

DEPTH, WIDTH = 64, 8


def _flatten(name: str) -> Clock:
    model = filtered_mlp(name, DEPTH, WIDTH)
    return Timed(lambda: jax.tree.flatten(model))


def _unflatten(name: str) -> Clock:
    leaves, structure = jax.tree.flatten(filtered_mlp(name, DEPTH, WIDTH))
    return Timed(lambda: structure.unflatten(leaves))


def _both(name: str) -> Clock:
    model = filtered_mlp(name, DEPTH, WIDTH)

    def both() -> Any:
        leaves, structure = jax.tree.flatten(model)
        return structure.unflatten(leaves)

    return Timed(both)


def _nnx_split() -> Clock:
    flax, model = nnx(), nnx_mlp(DEPTH, WIDTH)
    return Timed(lambda: flax.split(model))


def _nnx_merge() -> Clock:
    flax = nnx()
    graph, state = flax.split(nnx_mlp(DEPTH, WIDTH))
    return Timed(lambda: flax.merge(graph, state))


def _nnx_both() -> Clock:
    flax, model = nnx(), nnx_mlp(DEPTH, WIDTH)
    return Timed(lambda: flax.merge(*flax.split(model)))


def _row(name: str, budget: str, make: Callable[[str], Clock], flax: Callable[[], Clock]) -> Row:
    return Row(
        f"{name}, MLP of {DEPTH + 1} layers",
        budget=budget,
        subject=partial(make, ECLIPTIC),
        reference=partial(make, EQUINOX),
        against="equinox",
        peers={"flax nnx split/merge": flax},
    )


ROWS = (
    _row("flatten", "flatten.flatten", _flatten, _nnx_split),
    _row("unflatten", "flatten.unflatten", _unflatten, _nnx_merge),
    _row("flatten and unflatten", "flatten.both", _both, _nnx_both),
)
