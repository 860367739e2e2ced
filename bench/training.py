"""One step of Adam for an MLP with eight hidden layers, as users write it.

The reference is the step that nobody wants to write: lists of arrays in, lists of arrays out, the
model computed from the list and the optimiser's state put together inside. Each call waits for its
loss, as a loop that prints it does, so that nothing of the call hides behind the computation.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

from bench._measure import Clock, Timed
from bench._models import (
    ECLIPTIC,
    EQUINOX,
    filtered_mlp,
    flat_forward,
    flat_mlp,
    library,
    nnx,
    nnx_mlp,
)
from bench._row import Row

DEPTH = 8
BATCH = 64

# A step computes on several threads, so the least of its times takes longer to come by.
REPEATS = 300

OPTIMISER = optax.adam(1e-3)


def _batch(width: int) -> tuple[jax.Array, jax.Array]:
    x, y = jax.random.split(jax.random.key(1))
    return jax.random.normal(x, (BATCH, width)), jax.random.normal(y, (BATCH, width))


def _mean_square(predicted: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((predicted - y) ** 2)


def _stepping(
    step: Callable[..., tuple[Any, Any, jax.Array]], model: Any, state: Any, width: int
) -> Clock:
    """Goes on from the last step's result, as a training loop does."""
    x, y = _batch(width)

    def advance() -> jax.Array:
        nonlocal model, state
        model, state, loss = step(model, state, x, y)
        return loss.block_until_ready()

    return Timed(advance)


def _filtered(name: str, width: int) -> Clock:
    lib = library(name)

    def loss(model: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        return _mean_square(jax.vmap(model)(x), y)

    @lib.filter_jit
    def step(model: Any, state: Any, x: jax.Array, y: jax.Array) -> tuple[Any, Any, jax.Array]:
        value, gradient = lib.filter_value_and_grad(loss)(model, x, y)
        updates, state = OPTIMISER.update(gradient, state, lib.filter(model, lib.is_array))
        return lib.apply_updates(model, updates), state, value

    model = filtered_mlp(name, DEPTH, width)
    return _stepping(step, model, OPTIMISER.init(lib.filter(model, lib.is_array)), width)


def _flat(width: int) -> Clock:
    arrays = flat_mlp(DEPTH, width)
    leaves, structure = jax.tree.flatten(OPTIMISER.init(arrays))

    def loss(arrays: list[jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
        return _mean_square(flat_forward(arrays, x), y)

    @jax.jit
    def step(
        arrays: list[jax.Array], leaves: list[jax.Array], x: jax.Array, y: jax.Array
    ) -> tuple[Any, list[jax.Array], jax.Array]:
        value, gradient = jax.value_and_grad(loss)(arrays, x, y)
        updates, state = OPTIMISER.update(gradient, structure.unflatten(leaves), arrays)
        return optax.apply_updates(arrays, updates), jax.tree.leaves(state), value

    return _stepping(step, arrays, leaves, width)


def _nnx(width: int) -> Clock:
    flax, model = nnx(), nnx_mlp(DEPTH, width)
    optimiser = flax.Optimizer(model, OPTIMISER, wrt=flax.Param)

    def loss(model: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        return _mean_square(model(x), y)

    @flax.jit
    def step(model: Any, optimiser: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        value, gradient = flax.value_and_grad(loss)(model, x, y)
        optimiser.update(model, gradient)
        return value

    x, y = _batch(width)
    return Timed(lambda: step(model, optimiser, x, y).block_until_ready())


def _row(width: int, budget: str | None) -> Row:
    return Row(
        f"Adam step, MLP of depth {DEPTH}, width {width}",
        budget=budget,
        subject=partial(_filtered, ECLIPTIC, width),
        reference=partial(_flat, width),
        against="a hand-partitioned jax.jit over flat lists",
        peers={"equinox": partial(_filtered, EQUINOX, width), "flax nnx": partial(_nnx, width)},
        repeats=REPEATS,
    )


# The budget is about a small real model. At width 8 there is nothing to compute, and the row shows
# the cost of the call alone.
ROWS = (_row(128, "training.adam"), _row(8, None))
