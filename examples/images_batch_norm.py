"""Train a convolutional network with BatchNorm to read handwritten digits.

The running statistics of BatchNorm are the state of the model: each step takes the state and
returns a new one. An epoch is one `filter_scan`, whose carry is model, state and optimiser;
evaluation reads the state and leaves it as it is. Run it with

    python examples/images_batch_norm.py

which leaves `images_batch_norm.png` in the folder GALLERY_OUT, by default `demo_output/`. With
SMOKE=1 in the environment it trains for a moment only.
"""

# %%
import os
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
EPOCHS = 3 if SMOKE else 12
BATCH = 32
SEED = 0

Pictures = Float[Array, "batch 1 8 8"]
Labels = Int[Array, " batch"]

# %% [markdown]
# ## The model
#
# `Sequential` takes layers and functions; with names, they can be asked for by name.


# %%
def make_model(key: PRNGKeyArray) -> ec.nn.Sequential:
    keys = jax.random.split(key, 3)
    return ec.nn.Sequential(
        {
            "first": ec.nn.Conv2d(1, 16, 3, padding=1, key=keys[0]),
            "first_norm": ec.nn.BatchNorm(16, "batch", momentum=0.9, mode="batch"),
            "first_activation": jax.nn.relu,
            "pool": ec.nn.MaxPool2d(2, 2),
            "second": ec.nn.Conv2d(16, 32, 3, padding=1, key=keys[1]),
            "second_norm": ec.nn.BatchNorm(32, "batch", momentum=0.9, mode="batch"),
            "second_activation": jax.nn.relu,
            "flatten": jnp.ravel,
            "classify": ec.nn.Linear(32 * 4 * 4, 10, key=keys[2]),
        }
    )


# %%
def load_data() -> tuple[Pictures, Pictures, Labels, Labels]:
    """Pictures for training and for the test, then their labels: the same split every time."""
    digits = load_digits()
    parts = train_test_split(
        digits.images / 16, digits.target, test_size=0.2, random_state=SEED, stratify=digits.target
    )
    pictures = [jnp.asarray(x, jnp.float32)[:, None] for x in parts[:2]]
    labels = [jnp.asarray(y, jnp.int32) for y in parts[2:]]
    return pictures[0], pictures[1], labels[0], labels[1]


# %% [markdown]
# ## Model and state
#
# A call takes the state and returns the next one. Both pass through `filter_vmap` without an axis:
# the statistics are those of the whole batch.


# %%
def apply(
    model: ec.nn.Sequential, state: ec.nn.State, x: Pictures
) -> tuple[Float[Array, "batch 10"], ec.nn.State]:
    # One model and one state for the whole batch, whose axis has the name that BatchNorm knows.
    batched = ec.filter_vmap(model, in_axes=(0, None), out_axes=(0, None), axis_name="batch")
    return batched(x, state)


def mean_loss(
    model: ec.nn.Sequential, state: ec.nn.State, x: Pictures, y: Labels
) -> tuple[Float[Array, ""], ec.nn.State]:
    logits, state = apply(model, state, x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), state


@ec.filter_jit
def accuracy(
    model: ec.nn.Sequential, state: ec.nn.State, x: Pictures, y: Labels
) -> Float[Array, ""]:
    logits, _ = apply(ec.nn.inference_mode(model), state, x)
    return jnp.mean(jnp.argmax(logits, axis=1) == y)


# %% [markdown]
# ## Training
#
# `make_with_state` calls the function that makes the model, and collects the first state of each
# layer that has one.


# %%
def running_means(model: ec.nn.Sequential, state: ec.nn.State) -> Float[Array, " 16"]:
    return state.get(model["first_norm"].batch_state_index)[0]


def train(
    x_train: Pictures, x_test: Pictures, y_train: Labels, y_test: Labels
) -> tuple[ec.nn.Sequential, ec.nn.State, list[float], Float[Array, "steps 16"]]:
    """A trained model with its state, the test accuracies, the running means after each step."""
    model_key, order_key = jax.random.split(jax.random.key(SEED))
    model, state = ec.nn.make_with_state(make_model)(model_key)
    per_epoch = len(x_train) // BATCH
    optimiser = optax.adamw(optax.cosine_decay_schedule(3e-3, EPOCHS * per_epoch))
    opt_state = optimiser.init(ec.filter(model, ec.is_inexact_array))

    def step(carry, batch):
        model, state, opt_state = carry
        gradient = ec.filter_value_and_grad(mean_loss, has_aux=True)
        (loss, state), slope = gradient(model, state, x_train[batch], y_train[batch])
        parameters = ec.filter(model, ec.is_inexact_array)
        updates, opt_state = optimiser.update(slope, opt_state, parameters)
        carry = ec.apply_updates(model, updates), state, opt_state
        return carry, (loss, running_means(model, state))

    carry = model, state, opt_state
    accuracies, means = [], []
    for epoch, key in enumerate(jax.random.split(order_key, EPOCHS)):
        order = jax.random.permutation(key, len(x_train))[: per_epoch * BATCH]
        carry, (losses, seen) = ec.filter_scan(step, carry, order.reshape(per_epoch, BATCH))
        model, state, _ = carry
        accuracies.append(float(accuracy(model, state, x_test, y_test)))
        means.append(seen)
        if epoch in (0, EPOCHS - 1) or epoch % 10 == 9:
            correct = accuracies[-1]
            print(f"epoch {epoch + 1}: loss {losses.mean():.4f}, test accuracy {correct:.1%}")
    return model, state, accuracies, jnp.concatenate(means)


# %%
def draw(accuracies: list[float], means: np.ndarray, path: Path) -> None:
    mpl.use("Agg")  # Draws to files, on machines without a screen too.
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.plot(range(1, len(accuracies) + 1), 100 * np.array(accuracies), color="tab:blue")
    left.set(xlabel="epoch", ylabel="test accuracy in %", title="Reading digits, in inference mode")
    right.plot(np.arange(1, len(means) + 1), means, linewidth=0.8)
    right.set(xlabel="step", ylabel="running mean", title="The state: one line a channel")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    model, state, accuracies, means = train(*load_data())
    flags = ec.nn.inference_flags(ec.nn.inference_mode(model))
    print(f"layers that know of inference: {len(flags)}")
    last = np.asarray(running_means(model, state))
    print(f"running means of the first BatchNorm: {last[:3].round(3)}")

    OUT.mkdir(parents=True, exist_ok=True)
    draw(accuracies, np.asarray(means), OUT / "images_batch_norm.png")
    print(f"picture: {OUT / 'images_batch_norm.png'}")


if __name__ == "__main__":
    main()
