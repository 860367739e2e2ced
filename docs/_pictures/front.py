"""Draws the pictures of the front page, from the program that stands there."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import ecliptic as ec

FOLDER = Path(os.environ["GALLERY_OUT"])
STEPS = 500
optimiser = optax.adam(4e-3)


def make(key):
    """A model before its training."""
    return ec.nn.MLP(in_size=1, out_size=1, width_size=32, depth=2, key=key)


def train(model, x, y):
    """The model after its training, and the loss of each step."""

    def mean_loss(model):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    def step(carry, _):
        model, state = carry
        loss, gradients = ec.filter_value_and_grad(mean_loss)(model)
        updates, state = optimiser.update(gradients, state)
        return (ec.apply_updates(model, updates), state), loss

    state = optimiser.init(ec.filter(model, ec.is_inexact_array))
    (model, _), losses = ec.filter_scan(step, (model, state), length=STEPS)
    return model, losses


def save(figure, name):
    """Leaves a picture for the front page."""
    figure.savefig(FOLDER / f"{name}.png", dpi=150)


x = jnp.linspace(-3, 3, 128)[:, None]
y = jnp.sin(2 * x)
before = make(jax.random.key(0))
model, losses = ec.filter_jit(train)(before, x, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(5.6, 3.2), layout="constrained")
left.semilogy(losses)
left.set(xlabel="step", ylabel="mean loss")
right.plot(x, y, color="0.7", linewidth=5, label="sin 2x")
right.plot(x, jax.vmap(model)(x), color="C1", label="model")
right.set(xlabel="x")
right.legend(loc="lower right", fontsize="small")
save(figure, "trained")

figure, axes = plt.subplots(1, 3, figsize=(5.6, 3.2), layout="constrained")
for index, (axis, old, new) in enumerate(zip(axes, before.layers, model.layers, strict=True)):
    both = np.concatenate([old.weight.ravel(), new.weight.ravel()])
    bins = np.linspace(both.min(), both.max(), 25)
    axis.hist(old.weight.ravel(), bins, alpha=0.5, label="before")
    axis.hist(new.weight.ravel(), bins, alpha=0.5, label="after")
    axis.set(title=f"layers[{index}].weight", yticks=[])
    axis.title.set_fontsize("small")
axes[0].legend(fontsize="small")
save(figure, "weights")

noise, where, which = jax.random.split(jax.random.key(1), 3)
seen = jax.random.uniform(where, (64, 1), minval=-2, maxval=1)
heard = jnp.sin(2 * seen) + 0.1 * jax.random.normal(noise, seen.shape)
models = ec.filter_vmap(make)(jax.random.split(which, 16))
models, _ = ec.filter_jit(ec.filter_vmap(train, in_axes=(ec.if_array(0), None, None)))(
    models, seen, heard
)
wide = jnp.linspace(-3, 3, 200)[:, None]
lines = ec.filter_vmap(lambda model: jax.vmap(model)(wide))(models)[..., 0]

figure, axis = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
mean, spread = lines.mean(axis=0), lines.std(axis=0)
axis.fill_between(wide[:, 0], mean - 2 * spread, mean + 2 * spread, alpha=0.25)
axis.plot(wide, lines.T, color="C0", alpha=0.3, linewidth=0.8)
axis.plot(seen, heard, ".", color="C1", label="data")
axis.set(xlabel="x", ylim=(-3, 3))
axis.legend(fontsize="small")
save(figure, "ensemble")
