"""Train one model on four devices: the batch is split, or the weights are too.

The devices are simulated: XLA makes four of one processor, and the same program runs on four
accelerators. `filter_shard` puts a model and its data where they should be, and the compiler adds
the communication. The training function does not change, and the result is the same. Run it with

    python examples/several_devices.py

which leaves `several_devices.png` in the folder GALLERY_OUT, by default `demo_output/`. With
SMOKE=1 in the environment it trains for a moment only.
"""

# %% [markdown]
# ## Four devices
#
# The number has to be set before JAX starts. On a machine with several accelerators leave this out.

# %%
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int
from sklearn.datasets import load_digits

import ecliptic as ec
from ecliptic.view import plot_sharding

SMOKE = os.environ.get("SMOKE") == "1"
OUT = Path(os.environ.get("GALLERY_OUT", "demo_output"))
STEPS = 30 if SMOKE else 300
SEED = 0

Pictures = Float[Array, "n 64"]
Labels = Int[Array, " n"]

# %% [markdown]
# ## Training
#
# Nothing here knows of devices. Each step sees all pictures.


# %%
def mean_loss(model: ec.nn.MLP, x: Pictures, y: Labels) -> Float[Array, ""]:
    return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()


@ec.filter_jit
def train(
    model: ec.nn.MLP, x: Pictures, y: Labels
) -> tuple[ec.nn.MLP, optax.OptState, Float[Array, " steps"]]:
    optimiser = optax.adam(3e-3)

    def step(carry, _):
        model, state = carry
        loss, gradients = ec.filter_value_and_grad(mean_loss)(model, x, y)
        updates, state = optimiser.update(gradients, state)
        return (ec.apply_updates(model, updates), state), loss

    state = optimiser.init(ec.filter(model, ec.is_inexact_array))
    (model, state), losses = ec.filter_scan(step, (model, state), length=STEPS)
    return model, state, losses


# %% [markdown]
# ## Who has what
#
# The devices are two by two. Along the axis `data` they have different pictures, along the axis
# `model` different neurons: the rows of the first weight, which are the columns of the second one.
# `tree_at` writes a tree that says so: a sharding for each array of the model.


# %%
def split_weights(model: ec.nn.MLP, mesh: jax.sharding.Mesh) -> ec.nn.MLP:
    everywhere = NamedSharding(mesh, PartitionSpec())
    shardings = jax.tree.map(lambda leaf: everywhere if ec.is_array(leaf) else None, model)
    rows = NamedSharding(mesh, PartitionSpec("model"))
    columns = NamedSharding(mesh, PartitionSpec(None, "model"))
    return ec.tree_at(
        lambda model: (model.layers[0].weight, model.layers[0].bias, model.layers[1].weight),
        shardings,
        (rows, rows, columns),
    )


def main() -> None:
    digits = load_digits()
    x = jnp.asarray(digits.data[:1600] / 16, jnp.float32)
    y = jnp.asarray(digits.target[:1600], jnp.int32)
    model = ec.nn.MLP(64, 10, width_size=128, depth=1, key=jax.random.key(SEED))
    _, _, losses = train(model, x, y)
    print(f"on one device:   loss {losses[0]:.4f} first, {losses[-1]:.4f} last")

    # With automatic axes the compiler chooses where everything in between is.
    mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    pictures = NamedSharding(mesh, PartitionSpec("data"))
    x, y = ec.filter_shard((x, y), pictures)
    model = ec.filter_shard(model, split_weights(model, mesh))
    shared, state, losses = train(model, x, y)
    print(f"on {len(jax.devices())} devices:    loss {losses[0]:.4f} first, {losses[-1]:.4f} last")

    parts = [shard.data.shape for shard in shared.layers[0].weight.addressable_shards]
    print(f"the first weight is in {len(parts)} parts of shape {parts[0]}")
    momentum = state[0].mu.layers[0].weight.sharding
    print(f"its momentum is where it is: {momentum == shared.layers[0].weight.sharding}")

    OUT.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")  # Draws to files, on machines without a screen too.
    plot_sharding(shared).savefig(OUT / "several_devices.png", dpi=150)
    print(f"picture: {OUT / 'several_devices.png'}")


if __name__ == "__main__":
    main()
