"""Train a convolutional network with BatchNorm to read handwritten digits.

The running statistics of BatchNorm are the state of the model: each step takes the state and
returns a new one. An epoch is one `filter_scan`, whose carry is model, state and optimiser;
evaluation reads the state and leaves it as it is. Run it with

    python examples/images_batch_norm.py

With SMOKE=1 in the environment it trains for a moment only.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import ecliptic as ec

SMOKE = os.environ.get("SMOKE") == "1"
EPOCHS = 3 if SMOKE else 30
BATCH = 32
SEED = 0

Pictures = Float[Array, "batch 1 8 8"]
Labels = Int[Array, " batch"]


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


def load_data() -> tuple[Pictures, Pictures, Labels, Labels]:
    """Pictures for training and for the test, then their labels: the same split every time."""
    digits = load_digits()
    parts = train_test_split(
        digits.images / 16, digits.target, test_size=0.2, random_state=SEED, stratify=digits.target
    )
    pictures = [jnp.asarray(x, jnp.float32)[:, None] for x in parts[:2]]
    labels = [jnp.asarray(y, jnp.int32) for y in parts[2:]]
    return pictures[0], pictures[1], labels[0], labels[1]


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


def main() -> None:
    x_train, x_test, y_train, y_test = load_data()
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
        return (ec.apply_updates(model, updates), state, opt_state), loss

    carry = model, state, opt_state
    for epoch, key in enumerate(jax.random.split(order_key, EPOCHS)):
        order = jax.random.permutation(key, len(x_train))[: per_epoch * BATCH]
        carry, losses = ec.filter_scan(step, carry, order.reshape(per_epoch, BATCH))
        if epoch in (0, EPOCHS - 1) or epoch % 10 == 9:
            model, state, _ = carry
            correct = accuracy(model, state, x_test, y_test)
            print(f"epoch {epoch + 1}: loss {losses.mean():.4f}, test accuracy {correct:.1%}")

    flags = ec.nn.inference_flags(ec.nn.inference_mode(model))
    print(f"layers that know of inference: {len(flags)}")
    means = state.get(model["first_norm"].batch_state_index)[0]
    print(f"running means of the first BatchNorm: {np.asarray(means)[:3].round(3)}")


if __name__ == "__main__":
    main()
