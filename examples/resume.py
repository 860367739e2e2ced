"""Train, be interrupted, go on from the file, and end with the same numbers as without.

All that a run needs is one tree: the model, the state of the optimiser, the key of what is drawn
next, and the number of steps so far. It is saved every few steps. Whenever the program is stopped,
the file holds the last of these trees, whole, and the run goes on from it to the last bit. Run it
with

    python examples/resume.py

With SMOKE=1 in the environment it trains for a moment only.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import ecliptic as ec
from ecliptic.serialise import load, load_metadata, save

SMOKE = os.environ.get("SMOKE") == "1"
STEPS = 60 if SMOKE else 2000
EVERY = 20 if SMOKE else 250
BATCH = 64
SIZES = {"in_size": 1, "out_size": 1, "width_size": 32, "depth": 2}

optimiser = optax.adamw(1e-2)


class Run(ec.Module):
    """A training run between two steps."""

    model: ec.nn.MLP
    optimiser: optax.OptState
    key: PRNGKeyArray
    step: Array


def start(sizes: dict[str, int]) -> Run:
    """A run before its first step."""
    model_key, key = jax.random.split(jax.random.key(0))
    model = ec.nn.MLP(**sizes, activation=jax.nn.tanh, key=model_key)
    state = optimiser.init(ec.filter(model, ec.is_inexact_array))
    return Run(model, state, key, jnp.zeros((), jnp.int32))


@ec.filter_jit
def take_step(run: Run) -> tuple[Run, Float[Array, ""]]:
    key, drawn = jax.random.split(run.key)
    x = jax.random.uniform(drawn, (BATCH, 1), minval=-3.0, maxval=3.0)

    def loss(model: ec.nn.MLP) -> Float[Array, ""]:
        return jnp.mean((jax.vmap(model)(x) - jnp.sin(2 * x)) ** 2)

    value, gradients = ec.filter_value_and_grad(loss)(run.model)
    parameters = ec.filter(run.model, ec.is_inexact_array)
    updates, state = optimiser.update(gradients, run.optimiser, parameters)
    return Run(ec.apply_updates(run.model, updates), state, key, run.step + 1), value


def train(path: Path, stop: int | None = None) -> tuple[Run, Float[Array, ""]]:
    """Train to the end; from the file, if there is one. `stop` is where the power fails."""
    if path.exists():
        # The skeleton is built from what the file says about itself; its numbers are replaced.
        run = load(path, ec.filter_eval_shape(start, load_metadata(path).metadata))
        print(f"goes on from step {int(run.step)}")
    else:
        run = start(SIZES)
    loss: Any = None
    while run.step < STEPS:
        run, loss = take_step(run)
        if run.step % EVERY == 0:
            save(path, run, metadata=SIZES)
        if run.step == stop:
            raise KeyboardInterrupt
    return run, loss


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        expected, loss = train(Path(folder) / "whole.safetensors")
        print(f"without interruption: loss {loss:.6f} after {int(expected.step)} steps")

        path = Path(folder) / "interrupted.safetensors"
        for stop in (EVERY // 2, STEPS // 2 + 3, STEPS - 1):
            try:
                train(path, stop)
            except KeyboardInterrupt:
                print(f"interrupted at step {stop}")
        run, loss = train(path)
        print(f"with interruptions: loss {loss:.6f} after {int(run.step)} steps")
        same = ec.tree_equal(run, expected)
        print(f"the same model, optimiser state and key, to the last bit: {bool(same)}")


if __name__ == "__main__":
    main()
