"""Train, be interrupted, go on from the file, and end with the same numbers as without.

All that a run needs is one tree: the model, the state of the optimiser, the key of what is drawn
next, and the number of steps so far. It is saved every few steps. Whenever the program is stopped,
the file holds the last of these trees, whole, and the run goes on from it to the last bit. Run it
with

    python examples/resume.py

which leaves `resume.png` in the folder GALLERY_OUT, by default `demo_output/`. With SMOKE=1 in the
environment it trains for a moment only.
"""

# %%
import os
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import ecliptic as ec
from ecliptic.serialise import load, load_metadata, save

SMOKE = os.environ.get("SMOKE") == "1"
OUT = Path(os.environ.get("GALLERY_OUT", "demo_output"))
STEPS = 60 if SMOKE else 2000
EVERY = 20 if SMOKE else 250
BATCH = 64
SIZES = {"in_size": 1, "out_size": 1, "width_size": 32, "depth": 2}

optimiser = optax.adamw(1e-2)

# %% [markdown]
# ## All that a run needs
#
# A Module may hold whatever JAX can compute with: another model, the state of an optimiser of
# optax, a key. A step takes such a run to the next one.


# %%
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


# %% [markdown]
# ## From the file, if there is one
#
# `load` needs a skeleton: a run with shapes in place of arrays, which `filter_eval_shape` makes
# without computing anything. The metadata of the file say how large the model is.


# %%
def train(path: Path, losses: dict[int, float], stop: int | None = None) -> Run:
    """Train to the end, and note the losses by step. `stop` is where the power fails."""
    if path.exists():
        # The skeleton is built from what the file says about itself; its numbers are replaced.
        run = load(path, ec.filter_eval_shape(start, load_metadata(path).metadata))
        print(f"goes on from step {int(run.step)}")
    else:
        run = start(SIZES)
    while run.step < STEPS:
        run, loss = take_step(run)
        losses[int(run.step)] = float(loss)
        if run.step % EVERY == 0:
            save(path, run, metadata=SIZES)
        if run.step == stop:
            raise KeyboardInterrupt
    return run


# %%
def draw(whole: dict[int, float], pieces: list[dict[int, float]], path: Path) -> None:
    mpl.use("Agg")  # Draws to files, on machines without a screen too.
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.semilogy(whole.keys(), whole.values(), color="silver", linewidth=4, label="uninterrupted")
    for number, piece in enumerate(pieces):
        steps, losses = np.array(list(piece.items())).T
        axes.semilogy(steps, losses, color=f"C{number}", linewidth=0.8, label=f"run {number + 1}")
        if number < len(pieces) - 1:
            axes.plot(steps[-1], losses[-1], "X", color=f"C{number}", markersize=9)
    axes.set(xlabel="step", ylabel="loss", title="Interrupted (crosses), and resumed from the file")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=5, loc="upper right")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole: dict[int, float] = {}
        expected = train(Path(folder) / "whole.safetensors", whole)
        print(f"without interruption: loss {whole[STEPS]:.6f} after {int(expected.step)} steps")

        path = Path(folder) / "interrupted.safetensors"
        pieces: list[dict[int, float]] = []
        for stop in (EVERY // 2, STEPS // 2 + 3, STEPS - 1, None):
            pieces.append({})
            try:
                run = train(path, pieces[-1], stop)
            except KeyboardInterrupt:
                print(f"interrupted at step {stop}")
        print(f"with interruptions: loss {pieces[-1][STEPS]:.6f} after {int(run.step)} steps")
        same = ec.tree_equal(run, expected)
        print(f"the same model, optimiser state and key, to the last bit: {bool(same)}")

    OUT.mkdir(parents=True, exist_ok=True)
    draw(whole, pieces, OUT / "resume.png")
    print(f"picture: {OUT / 'resume.png'}")


if __name__ == "__main__":
    main()
