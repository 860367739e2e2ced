"""Fine-tune a trained network in three ways: all of it, its last layer, or adapters of low rank.

A model is a tree, and what is trained is a part of it. `partition` splits a model into the part
that is trained and the rest, by a tree of booleans that `tree_at` writes; `tree_at` also puts new
layers in place of old ones. A network learns the digits as they are; then there are few examples of
digits on their side. Run it with

    python examples/fine_tuning.py

which leaves `fine_tuning.png` in the folder GALLERY_OUT, by default `demo_output/`. With SMOKE=1
in the environment it trains for a moment only.
"""

# %%
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from sklearn.datasets import load_digits

import ecliptic as ec

SMOKE = os.environ.get("SMOKE") == "1"
OUT = Path(os.environ.get("GALLERY_OUT", "demo_output"))
STEPS = 200 if SMOKE else 2000
FINE_STEPS = 100 if SMOKE else 1000
FEW = 200
BATCH = 32
RANK = 8
SEED = 0

Pictures = Float[Array, "n 64"]
Labels = Int[Array, " n"]

# %% [markdown]
# ## Training a part of a model
#
# `trained` is a tree of the structure of the model with a boolean for each leaf. Gradients and the
# state of the optimiser exist for the trained part alone.


# %%
def train(
    model: ec.nn.MLP, trained: Any, x: Pictures, y: Labels, steps: int, key: PRNGKeyArray
) -> ec.nn.MLP:
    optimiser = optax.adam(optax.cosine_decay_schedule(3e-3, steps))
    parameters, frozen = ec.partition(model, trained)

    def mean_loss(parameters, x, y) -> Float[Array, ""]:
        model = ec.combine(parameters, frozen)
        return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()

    def step(carry, key):
        parameters, state = carry
        chosen = jax.random.choice(key, len(x), (BATCH,))
        gradients = ec.filter_grad(mean_loss)(parameters, x[chosen], y[chosen])
        updates, state = optimiser.update(gradients, state)
        return (ec.apply_updates(parameters, updates), state), None

    carry = parameters, optimiser.init(parameters)
    (parameters, _), _ = ec.filter_scan(step, carry, jax.random.split(key, steps))
    return ec.combine(parameters, frozen)


@ec.filter_jit
def correct(model: ec.nn.MLP, x: Pictures, y: Labels) -> Bool[Array, " n"]:
    return jnp.argmax(jax.vmap(model)(x), axis=1) == y


# %% [markdown]
# ## Adapters
#
# A frozen layer, to which the product of two thin matrices is added (Hu et al., 2021). One matrix
# starts at zero, so the new model does what the old one did.


# %%
class Adapted(ec.Module):
    layer: ec.nn.Linear
    down: Float[Array, "rank inputs"]
    up: Float[Array, "outputs rank"]

    def __init__(self, layer: ec.nn.Linear, *, key: PRNGKeyArray):
        self.layer = layer
        self.down = jax.random.normal(key, (RANK, layer.in_features)) / layer.in_features**0.5
        self.up = jnp.zeros((layer.out_features, RANK))

    def __call__(self, x: Float[Array, " inputs"], *, key=None) -> Float[Array, " outputs"]:
        return self.layer(x) + self.up @ (self.down @ x)


def with_adapters(model: ec.nn.MLP, key: PRNGKeyArray) -> ec.nn.MLP:
    keys = jax.random.split(key, len(model.layers))
    adapted = tuple(Adapted(layer, key=key) for layer, key in zip(model.layers, keys, strict=True))
    return ec.tree_at(lambda model: model.layers, model, adapted)


# %% [markdown]
# ## What is trained
#
# Start with no leaf, and put in what should be. `tree_at` takes a function from a tree to places in
# it: here they are a whole layer, or the matrices of all adapters.


# %%
def everything(model: ec.nn.MLP) -> Any:
    return jax.tree.map(ec.is_inexact_array, model)


def last_layer(model: ec.nn.MLP) -> Any:
    nothing = jax.tree.map(lambda _: False, model)
    return ec.tree_at(lambda model: model.layers[-1], nothing, everything(model).layers[-1])


def adapters(model: ec.nn.MLP) -> Any:
    nothing = jax.tree.map(lambda _: False, model)

    def matrices(model):
        return [matrix for layer in model.layers for matrix in (layer.down, layer.up)]

    return ec.tree_at(matrices, nothing, replace_fn=lambda _: True)


def count(model: ec.nn.MLP, trained: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(ec.filter(model, trained)))


# %%
def load_data() -> tuple[Pictures, Pictures, Labels]:
    """All pictures, the same on their side, and the labels, in random order."""
    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.target))
    pictures = jnp.asarray(digits.images[order] / 16, jnp.float32)
    turned = jnp.rot90(pictures, axes=(1, 2))
    labels = jnp.asarray(digits.target[order], jnp.int32)
    return pictures.reshape(-1, 64), turned.reshape(-1, 64), labels


def draw(results: dict[str, tuple[int, float, float]], path: Path) -> None:
    mpl.use("Agg")  # Draws to files, on machines without a screen too.
    import matplotlib.pyplot as plt

    names = [f"{name}\n{count:,} trained" for name, (count, _, _) in results.items()]
    places = np.arange(len(names))
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for shift, label, colour in ((-0.2, "on their side", "tab:blue"), (0.2, "upright", "silver")):
        index = 1 if label == "on their side" else 2
        heights = [100 * result[index] for result in results.values()]
        bars = axes.bar(places + shift, heights, 0.38, color=colour, label=label)
        axes.bar_label(bars, fmt="%.0f", padding=2)
    axes.set_xticks(places, names)
    axes.set(ylabel="test accuracy in %", ylim=(0, 118), title=f"After {FEW} turned digits")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=2, loc="upper right")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    upright, turned, labels = load_data()
    model_key, train_key, adapter_key, fine_key = jax.random.split(jax.random.key(SEED), 4)
    model = ec.nn.MLP(64, 10, width_size=128, depth=2, key=model_key)
    half = len(labels) // 2
    model = train(model, everything(model), upright[:half], labels[:half], STEPS, train_key)

    adapted = with_adapters(model, adapter_key)
    ways = {
        "not at all": (model, None),
        "everything": (model, everything(model)),
        "last layer": (model, last_layer(model)),
        "adapters": (adapted, adapters(adapted)),
    }
    results = {}
    for name, (start, trained) in ways.items():
        tuned = start
        if trained is not None:
            few = slice(half, half + FEW)
            tuned = train(start, trained, turned[few], labels[few], FINE_STEPS, fine_key)
        test = slice(half + FEW, None)
        results[name] = (
            0 if trained is None else count(start, trained),
            float(correct(tuned, turned[test], labels[test]).mean()),
            float(correct(tuned, upright[test], labels[test]).mean()),
        )
        number, on_side, as_before = results[name]
        print(f"{name}: {number} trained, {on_side:.1%} on their side, {as_before:.1%} upright")

    same = [ec.tree_equal(a.layer, b) for a, b in zip(tuned.layers, model.layers, strict=True)]
    print(f"the layers under the adapters are as they were: {all(map(bool, same))}")

    OUT.mkdir(parents=True, exist_ok=True)
    draw(results, OUT / "fine_tuning.png")
    print(f"picture: {OUT / 'fine_tuning.png'}")


if __name__ == "__main__":
    main()
