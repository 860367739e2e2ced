"""Train an ensemble of networks at once, and see where they disagree.

`filter_vmap` of a constructor makes all members, `filter_vmap` of the training trains them: one
compiled program, in which every array has one more axis. Where there are data the members agree;
where there are none they do not, and their spread says how far a prediction can be trusted. Run it
with

    python examples/ensemble.py

which leaves `ensemble.png` in the folder GALLERY_OUT, by default `demo_output/`. With SMOKE=1 in
the environment it trains for a moment only.
"""

# %%
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

import ecliptic as ec

SMOKE = os.environ.get("SMOKE") == "1"
OUT = Path(os.environ.get("GALLERY_OUT", "demo_output"))
MEMBERS = 4 if SMOKE else 32
STEPS = 100 if SMOKE else 2000
NOISE = 0.1
SEED = 0

# %% [markdown]
# ## The data
#
# Noisy samples of a curve, with a gap in the middle and nothing beyond the ends.


# %%
def truth(x: Float[Array, " n"]) -> Float[Array, " n"]:
    return jnp.sin(3 * x) + 0.3 * x


def load_data(key: PRNGKeyArray) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    x_key, noise_key = jax.random.split(key)
    x = jax.random.uniform(x_key, (80,), minval=0.4, maxval=2.0)
    x = jnp.where(jnp.arange(80) % 2 == 0, x, -x)
    return x, truth(x) + NOISE * jax.random.normal(noise_key, x.shape)


# %% [markdown]
# ## One member
#
# Nothing here knows of the ensemble. The model is the carry of the loop, with the activation
# function that is in it.


# %%
def make_model(key: PRNGKeyArray) -> ec.nn.MLP:
    return ec.nn.MLP("scalar", "scalar", width_size=32, depth=2, activation=jnp.tanh, key=key)


def train(
    model: ec.nn.MLP, key: PRNGKeyArray, x: Float[Array, " n"], y: Float[Array, " n"]
) -> tuple[ec.nn.MLP, Float[Array, " steps"]]:
    """Train on a sample of the data, drawn with replacement; return the loss of every step."""
    optimiser = optax.adam(optax.cosine_decay_schedule(1e-2, STEPS))
    chosen = jax.random.choice(key, len(x), x.shape)
    x, y = x[chosen], y[chosen]

    def mean_loss(model: ec.nn.MLP) -> Float[Array, ""]:
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    def step(carry, _):
        model, state = carry
        loss, gradients = ec.filter_value_and_grad(mean_loss)(model)
        updates, state = optimiser.update(gradients, state)
        return (ec.apply_updates(model, updates), state), loss

    state = optimiser.init(ec.filter(model, ec.is_inexact_array))
    (model, _), losses = ec.filter_scan(step, (model, state), length=STEPS)
    return model, losses


# %% [markdown]
# ## All of them
#
# The data are the same for every member: `None` as their axis. What is not an array needs no axis.


# %%
@ec.filter_jit
def predict(models: ec.nn.MLP, x: Float[Array, " n"]) -> Float[Array, "members n"]:
    return ec.filter_vmap(lambda model: jax.vmap(model)(x))(models)


def draw(x, y, grid, predictions, path: Path) -> None:
    mpl.use("Agg")  # Draws to files, on machines without a screen too.
    import matplotlib.pyplot as plt

    mean, spread = predictions.mean(axis=0), predictions.std(axis=0)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(grid, predictions.T, color="tab:blue", linewidth=0.5, alpha=0.3)
    axes.fill_between(
        grid,
        mean - 2 * spread,
        mean + 2 * spread,
        color="tab:blue",
        alpha=0.15,
        linewidth=0,
        label="mean ± 2 standard deviations",
    )
    axes.plot(grid, mean, color="tab:blue", linewidth=2, label=f"mean of {len(predictions)} models")
    axes.plot(grid, truth(grid), "--", color="black", linewidth=1, label="truth")
    axes.plot(x, y, ".", color="tab:red", markersize=5, label="data")
    axes.set(xlabel="x", ylabel="y", ylim=(-4, 4), title="Where the members disagree")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    data_key, model_key, train_key = jax.random.split(jax.random.key(SEED), 3)
    x, y = load_data(data_key)

    models = ec.filter_vmap(make_model)(jax.random.split(model_key, MEMBERS))
    print(f"weights of the first layer, all members: {models.layers[0].weight.shape}")

    train_all = ec.filter_jit(ec.filter_vmap(train, in_axes=(ec.if_array(0), 0, None, None)))
    models, losses = train_all(models, jax.random.split(train_key, MEMBERS), x, y)
    print(f"mean loss: {losses[:, 0].mean():.3f} first, {losses[:, -1].mean():.3f} last")

    grid = jnp.linspace(-3, 3, 301)
    predictions = predict(models, grid)
    spread = predictions.std(axis=0)
    seen = (jnp.abs(grid) > 0.4) & (jnp.abs(grid) < 2)
    print(f"spread: {spread[seen].mean():.3f} near data, {spread[~seen].mean():.3f} elsewhere")

    OUT.mkdir(parents=True, exist_ok=True)
    draw(x, y, np.asarray(grid), np.asarray(predictions), OUT / "ensemble.png")
    print(f"picture: {OUT / 'ensemble.png'}")


if __name__ == "__main__":
    main()
