"""Train a variational autoencoder on handwritten digits, and let it draw new ones.

The encoder turns a picture into a normal distribution over a plane; the decoder turns a point of
the plane into a picture. Both are trained at once to give the pictures back, while the points stay
near the origin. Then every point there is a picture: a walk over the plane is a walk over all
digits. Run it with

    python examples/autoencoder.py

which leaves `autoencoder.png` in the folder GALLERY_OUT, by default `demo_output/`. With SMOKE=1
in the environment it trains for a moment only.
"""

# %%
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import optax
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray
from sklearn.datasets import load_digits

import ecliptic as ec

SMOKE = os.environ.get("SMOKE") == "1"
OUT = Path(os.environ.get("GALLERY_OUT", "demo_output"))
EPOCHS = 3 if SMOKE else 60
BATCH = 32
LATENT = 2
GRID = 12
SEED = 0

Picture = Float[Array, " 64"]
Point = Float[Array, " latent"]

# %% [markdown]
# ## The model
#
# Two networks in one Module. The distribution of a picture has a mean and a standard deviation for
# each axis of the plane.


# %%
class Autoencoder(ec.Module):
    encoder: ec.nn.MLP
    decoder: ec.nn.MLP

    def __init__(self, key: PRNGKeyArray):
        encoder_key, decoder_key = jax.random.split(key)
        self.encoder = ec.nn.MLP(64, 2 * LATENT, 256, 2, jax.nn.gelu, key=encoder_key)
        self.decoder = ec.nn.MLP(LATENT, 64, 256, 2, jax.nn.gelu, key=decoder_key)

    def encode(self, picture: Picture) -> tuple[Point, Point]:
        mean, log_deviation = jnp.split(self.encoder(picture), 2)
        return mean, jnp.exp(log_deviation)

    def decode(self, point: Point) -> Picture:
        return jax.nn.sigmoid(self.decoder(point))


# %% [markdown]
# ## The loss
#
# What is lost from the picture to its copy, and how far the distribution of the point is from the
# standard normal one.


# %%
def loss_of_one(model: Autoencoder, picture: Picture, key: PRNGKeyArray) -> Float[Array, ""]:
    mean, deviation = model.encode(picture)
    point = mean + deviation * jax.random.normal(key, mean.shape)
    lost = optax.sigmoid_binary_cross_entropy(model.decoder(point), picture).sum()
    distance = 0.5 * jnp.sum(mean**2 + deviation**2 - 1 - 2 * jnp.log(deviation))
    return lost + distance


def mean_loss(
    model: Autoencoder, pictures: Float[Array, "batch 64"], key: PRNGKeyArray
) -> Float[Array, ""]:
    keys = jax.random.split(key, len(pictures))
    return jax.vmap(loss_of_one, in_axes=(None, 0, 0))(model, pictures, keys).mean()


@ec.filter_jit
def train(
    model: Autoencoder, pictures: Float[Array, "n 64"], key: PRNGKeyArray
) -> tuple[Autoencoder, Float[Array, " steps"]]:
    """Train the model; return it with the loss of every step."""
    steps = EPOCHS * (len(pictures) // BATCH)
    optimiser = optax.adam(optax.cosine_decay_schedule(2e-3, steps))

    def step(carry, key):
        model, state = carry
        batch_key, loss_key = jax.random.split(key)
        batch = jax.random.choice(batch_key, pictures, (BATCH,), replace=False)
        loss, gradients = ec.filter_value_and_grad(mean_loss)(model, batch, loss_key)
        updates, state = optimiser.update(gradients, state)
        return (ec.apply_updates(model, updates), state), loss

    state = optimiser.init(ec.filter(model, ec.is_inexact_array))
    progress = ec.TqdmProgress(description="training")
    keys = jax.random.split(key, steps)
    (model, _), losses = ec.filter_scan(step, (model, state), keys, progress=progress)
    return model, losses


# %% [markdown]
# ## The plane
#
# A method of a Module is a function like any other, and can be mapped. The points of the walk have
# the quantiles of a normal distribution, so that each picture of it is equally likely.


# %%
def walk(model: Autoencoder) -> Float[Array, "grid grid 64"]:
    quantiles = norm.ppf((jnp.arange(GRID) + 0.5) / GRID)
    points = jnp.stack(jnp.meshgrid(quantiles, -quantiles), axis=-1)
    return jax.vmap(jax.vmap(model.decode))(points)


def draw(means, labels, pictures, path: Path) -> None:
    mpl.use("Agg")  # Draws to files, on machines without a screen too.
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
    for digit in range(10):
        where = means[labels == digit]
        left.plot(*where.T, ".", markersize=3, color=f"C{digit}")
        left.annotate(
            str(digit),
            np.median(where, axis=0),
            ha="center",
            va="center",
            weight="bold",
            bbox={"boxstyle": "circle", "facecolor": "white", "edgecolor": f"C{digit}"},
        )
    left.set(title="Where the digits are", aspect="equal", xlim=(-3.5, 3.5), ylim=(-3.5, 3.5))
    left.spines[["top", "right"]].set_visible(False)

    framed = np.pad(pictures.reshape(GRID, GRID, 8, 8), ((0, 0), (0, 0), (1, 1), (1, 1)))
    mosaic = framed.swapaxes(1, 2).reshape(10 * GRID, 10 * GRID)
    right.imshow(mosaic, cmap="gray_r")
    right.set(title="What the decoder makes of the plane")
    right.axis("off")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    digits = load_digits()
    pictures = jnp.asarray(digits.data / 16, jnp.float32)
    model_key, train_key = jax.random.split(jax.random.key(SEED))
    model, losses = train(Autoencoder(model_key), pictures, train_key)
    print(f"mean loss of ten steps: {losses[:10].mean():.1f} first, {losses[-10:].mean():.1f} last")

    means, deviations = jax.vmap(model.encode)(pictures)
    copies = jax.vmap(model.decode)(means)
    print(f"mean deviation of a point: {deviations.mean():.3f}")
    print(f"mean error of a pixel: {jnp.abs(copies - pictures).mean():.3f}")

    OUT.mkdir(parents=True, exist_ok=True)
    draw(np.asarray(means), digits.target, np.asarray(walk(model)), OUT / "autoencoder.png")
    print(f"picture: {OUT / 'autoencoder.png'}")


if __name__ == "__main__":
    main()
