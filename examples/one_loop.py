"""Train a network on handwritten digits in a single compiled loop, with a progress bar.

All epochs are one `filter_scan`: its carry is the model, with the functions that are in it, and the
state of the optimiser. Python starts the loop and waits for its end; between two steps there is
nothing but the next step. Run it with

    python examples/one_loop.py

which leaves `one_loop.png` in the folder GALLERY_OUT, by default `demo_output/`. With SMOKE=1 in
the environment it trains for a moment only.
"""

# %%
import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import ecliptic as ec

SMOKE = os.environ.get("SMOKE") == "1"
OUT = Path(os.environ.get("GALLERY_OUT", "demo_output"))
EPOCHS = 3 if SMOKE else 100
BATCH = 32
SEED = 0

Pictures = Float[Array, "batch 64"]
Labels = Int[Array, " batch"]


# %%
def load_data() -> tuple[Pictures, Pictures, Labels, Labels]:
    """Pictures for training and for the test, then their labels: the same split every time."""
    digits = load_digits()
    parts = train_test_split(
        digits.data / 16, digits.target, test_size=0.2, random_state=SEED, stratify=digits.target
    )
    pictures = [jnp.asarray(x, jnp.float32) for x in parts[:2]]
    labels = [jnp.asarray(y, jnp.int32) for y in parts[2:]]
    return pictures[0], pictures[1], labels[0], labels[1]


def mean_loss(model: ec.nn.MLP, x: Pictures, y: Labels) -> Float[Array, ""]:
    return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()


def accuracy(model: ec.nn.MLP, x: Pictures, y: Labels) -> Float[Array, ""]:
    return jnp.mean(jnp.argmax(jax.vmap(model)(x), axis=1) == y)


# %% [markdown]
# ## The loop
#
# What a step needs from outside is one row of indices. `progress` shows a bar, which is drawn anew
# for each hundredth of the work.


# %%
def train(
    model: ec.nn.MLP, x: Pictures, y: Labels, key: PRNGKeyArray
) -> tuple[ec.nn.MLP, Float[Array, " steps"]]:
    """Train the model; return it with the loss of every step."""
    per_epoch = len(x) // BATCH
    steps = EPOCHS * per_epoch
    optimiser = optax.adamw(optax.cosine_decay_schedule(3e-3, steps), weight_decay=1e-2)

    def step(carry, batch):
        # The model in the carry is whole: it can be called, differentiated and updated.
        model, state = carry
        loss, gradients = ec.filter_value_and_grad(mean_loss)(model, x[batch], y[batch])
        updates, state = optimiser.update(gradients, state, ec.filter(model, ec.is_array))
        return (ec.apply_updates(model, updates), state), loss

    # One row of indices a step, each epoch in an order of its own.
    orders = jax.vmap(lambda key: jax.random.permutation(key, len(x)))(
        jax.random.split(key, EPOCHS)
    )
    batches = orders[:, : per_epoch * BATCH].reshape(steps, BATCH)
    state = optimiser.init(ec.filter(model, ec.is_array))
    progress = ec.TqdmProgress(description="training")
    (model, _), losses = ec.filter_scan(step, (model, state), batches, progress=progress)
    return model, losses


# %%
def draw(losses: np.ndarray, path: Path) -> None:
    mpl.use("Agg")  # Draws to files, on machines without a screen too.
    import matplotlib.pyplot as plt

    per_epoch = losses.reshape(EPOCHS, -1)
    steps = np.arange(1, losses.size + 1)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.semilogy(steps, losses, color="silver", linewidth=0.5, label="a step")
    last = steps.reshape(per_epoch.shape)[:, -1]
    axes.semilogy(last, per_epoch.mean(axis=1), color="tab:blue", label="mean of an epoch")
    axes.set(xlabel="step", ylabel="loss", title=f"{losses.size:,} steps in one call")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    x_train, x_test, y_train, y_test = load_data()
    model_key, order_key = jax.random.split(jax.random.key(SEED))
    model = ec.nn.MLP(in_size=64, out_size=10, width_size=128, depth=2, key=model_key)

    started = time.perf_counter()
    model, losses = train(model, x_train, y_train, order_key)
    seconds = time.perf_counter() - started
    print(f"{len(losses)} steps in one loop: {seconds:.1f} s, compilation included")
    print(f"mean loss of ten steps: {losses[:10].mean():.3f} first, {losses[-10:].mean():.3f} last")
    print(f"test accuracy: {accuracy(model, x_test, y_test):.1%}")

    OUT.mkdir(parents=True, exist_ok=True)
    draw(np.asarray(losses), OUT / "one_loop.png")
    print(f"picture: {OUT / 'one_loop.png'}")


if __name__ == "__main__":
    main()
