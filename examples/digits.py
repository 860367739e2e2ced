"""Train a multilayer perceptron to read handwritten digits, save it, and load it back.

The data are the 1,797 digits of 8 × 8 pixels that scikit-learn ships. Run it with

    python examples/digits.py [FOLDER]

which leaves `digits.eqx` (the model) and `digits.png` (its training, and what it is not sure of) in
FOLDER, by default the folder GALLERY_OUT or else `demo_output/`. With SMOKE=1 in the environment it
trains for a moment only.
"""

# %%
import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import trange

import ecliptic as ec

SMOKE = os.environ.get("SMOKE") == "1"
OUT = Path(os.environ.get("GALLERY_OUT", "demo_output"))
EPOCHS = 2 if SMOKE else 60
BATCH = 32
NOISE = 0.1
SEED = 0

# %% [markdown]
# ## The data
#
# They come as arrays of NumPy, and stay so: a compiled function takes these too.


# %%
def load_data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pictures and labels for training, then those for the test: the same split every time."""
    digits = load_digits()
    pictures = (digits.data / 16).astype(np.float32)
    labels = digits.target.astype(np.int32)
    x_train, x_test, y_train, y_test = train_test_split(
        pictures, labels, test_size=0.2, random_state=SEED, stratify=labels
    )
    return x_train, y_train, x_test, y_test


def batches(
    x: np.ndarray, y: np.ndarray, generator: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """One epoch in random order, the pictures with a little noise, never twice the same."""
    order = generator.permutation(len(x))
    # What is left over at the end waits for another epoch: batches of one size are compiled once.
    for start in range(0, len(x) - BATCH + 1, BATCH):
        chosen = order[start : start + BATCH]
        noise = NOISE * generator.standard_normal((BATCH, x.shape[1]), np.float32)
        yield x[chosen] + noise, y[chosen]


# %% [markdown]
# ## The model
#
# A Module is a PyTree: what JAX does with a tree of arrays, it does with a model.


# %%
def make_model(key: PRNGKeyArray) -> ec.nn.MLP:
    return ec.nn.MLP(in_size=64, out_size=10, width_size=256, depth=2, key=key)


def mean_loss(
    model: ec.nn.MLP, x: Float[Array, "batch 64"], y: Int[Array, " batch"]
) -> Float[Array, ""]:
    # A layer acts on one example. The batch is the business of `jax.vmap`.
    logits = jax.vmap(model)(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@ec.filter_jit
def predict(model: ec.nn.MLP, x: Float[Array, "batch 64"]) -> Float[Array, "batch 10"]:
    """How probable each digit is."""
    return jax.nn.softmax(jax.vmap(model)(x))


# %% [markdown]
# ## Training
#
# A loop of Python, and one compiled function for a step of it. The optimiser is one of optax.


# %%
def train(model: ec.nn.MLP, x: np.ndarray, y: np.ndarray) -> tuple[ec.nn.MLP, list[float]]:
    """Train the model; return it with the mean loss of every epoch."""
    steps = EPOCHS * (len(x) // BATCH)
    optimiser = optax.adamw(optax.cosine_decay_schedule(3e-3, steps), weight_decay=1e-2)
    # The model has leaves that are no arrays (its activation): the optimiser must not see them.
    state = optimiser.init(ec.filter(model, ec.is_array))

    @ec.filter_jit
    def step(model, state, x, y):
        loss, gradients = ec.filter_value_and_grad(mean_loss)(model, x, y)
        updates, state = optimiser.update(gradients, state, ec.filter(model, ec.is_array))
        return ec.apply_updates(model, updates), state, loss

    generator = np.random.default_rng(SEED)
    history = []
    progress = trange(EPOCHS, desc="training", unit="epoch")
    for _ in progress:
        losses = []
        for x_batch, y_batch in batches(x, y, generator):
            model, state, loss = step(model, state, x_batch, y_batch)
            losses.append(loss)
        # The one place where Python waits for the computation: once an epoch, not once a step.
        history.append(float(jnp.mean(jnp.stack(losses))))
        progress.set_postfix(loss=f"{history[-1]:.4f}")
    return model, history


# %%
def draw(
    history: list[float], x: np.ndarray, y: np.ndarray, probable: np.ndarray, path: Path
) -> None:
    mpl.use("Agg")  # Draws to files, on machines without a screen too.
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(10, 4.4), layout="constrained")
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    axes.semilogy(range(1, len(history) + 1), history, color="tab:blue")
    axes.set(xlabel="epoch", ylabel="mean training loss", title="Training")
    axes.spines[["top", "right"]].set_visible(False)

    right.suptitle("What it is not sure of (red: wrong)", fontsize="large")
    unsure = np.argsort(probable.max(axis=1))[:15]
    for axes, i in zip(right.subplots(3, 5).flat, unsure, strict=True):
        guess = probable[i].argmax()
        axes.imshow(x[i].reshape(8, 8), cmap="gray_r")
        axes.axis("off")
        colour = "black" if guess == y[i] else "tab:red"
        axes.set_title(f"{guess}: {probable[i].max():.0%}", fontsize="medium", color=colour)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a network on handwritten digits.")
    parser.add_argument("folder", nargs="?", type=Path, default=OUT)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)

    x_train, y_train, x_test, y_test = load_data()
    print(f"{len(x_train)} digits to train with, {len(x_test)} to test with")
    model_key, other_key = jax.random.split(jax.random.key(SEED))
    model, history = train(make_model(model_key), x_train, y_train)
    probable = np.asarray(predict(model, x_test))
    print(f"test accuracy: {np.mean(probable.argmax(axis=1) == y_test):.1%}")

    draw(history, x_test, y_test, probable, folder / "digits.png")
    print(f"picture:       {folder / 'digits.png'}")

    # The file holds the arrays and no code: loading fills a model of the same structure.
    ec.tree_serialise_leaves(folder / "digits.eqx", model)
    print(f"model:         {folder / 'digits.eqx'}")
    loaded = ec.tree_deserialise_leaves(folder / "digits.eqx", make_model(other_key))
    equal = np.array_equal(predict(loaded, x_test), probable)
    print(f"the loaded model predicts the same: {'yes' if equal else 'no'}")
    if not equal:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
