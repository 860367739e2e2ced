"""Train a recurrent network to read handwritten digits row by row.

A picture of 8 × 8 pixels is a sequence of 8 rows. A GRU reads them in a `filter_scan`, and a
linear layer names the digit at the end. What the network reads is standardised by the mean and the
variance of all rows that it has seen in training: these are a state, which a layer of this program
keeps. Run it with

    python examples/sequences_rnn.py

which leaves `sequences_rnn.png` in the folder GALLERY_OUT, by default `demo_output/`. With SMOKE=1
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
from jaxtyping import Array, Float, Int, PRNGKeyArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import ecliptic as ec

SMOKE = os.environ.get("SMOKE") == "1"
OUT = Path(os.environ.get("GALLERY_OUT", "demo_output"))
EPOCHS = 6 if SMOKE else 30
BATCH = 32
HIDDEN = 64
SEED = 0

Sequence = Float[Array, "rows pixels"]
Sequences = Float[Array, "batch rows pixels"]
Labels = Int[Array, " batch"]

# %% [markdown]
# ## A layer with a state
#
# A `StateIndex` says what the state of a layer is at first. A call reads it from the state of the
# model, and returns a state with another value; in inference mode it leaves the value as it is.


# %%
class Standardise(ec.nn.StatefulLayer):
    """Subtracts the mean of all that was seen in training, and divides by its deviation."""

    seen: ec.nn.StateIndex
    axis_name: str = ec.field(static=True)
    inference: bool

    def __init__(self, size: int, axis_name: str):
        # The sums of numbers and of their squares, and how many there were.
        self.seen = ec.nn.StateIndex((jnp.zeros(size), jnp.ones(size), jnp.array(1.0)))
        self.axis_name = axis_name
        self.inference = False

    def __call__(
        self, x: Sequence, state: ec.nn.State, *, key: PRNGKeyArray | None = None
    ) -> tuple[Sequence, ec.nn.State]:
        total, squares, count = state.get(self.seen)
        if not self.inference:
            total = total + jax.lax.pmean(x.mean(axis=0), self.axis_name)
            squares = squares + jax.lax.pmean((x**2).mean(axis=0), self.axis_name)
            count = count + 1
            state = state.set(self.seen, (total, squares, count))
        mean = total / count
        deviation = jnp.sqrt(jnp.maximum(squares / count - mean**2, 1e-2))
        return (x - mean) / deviation, state


# %% [markdown]
# ## The model
#
# The cell is a Module, and called in the loop. What it has read so far is a guess already: the
# guesses after each row are what the picture shows.


# %%
class Reader(ec.nn.StatefulLayer):
    standardise: Standardise
    cell: ec.nn.GRUCell
    classify: ec.nn.Linear

    def __init__(self, key: PRNGKeyArray):
        cell_key, classify_key = jax.random.split(key)
        self.standardise = Standardise(8, "batch")
        self.cell = ec.nn.GRUCell(8, HIDDEN, key=cell_key)
        self.classify = ec.nn.Linear(HIDDEN, 10, key=classify_key)

    def __call__(
        self, rows: Sequence, state: ec.nn.State, *, key: PRNGKeyArray | None = None
    ) -> tuple[Float[Array, " 10"], ec.nn.State]:
        hidden, state = self.read(rows, state)
        return self.classify(hidden[-1]), state

    def read(
        self, rows: Sequence, state: ec.nn.State
    ) -> tuple[Float[Array, "rows hidden"], ec.nn.State]:
        rows, state = self.standardise(rows, state)

        def step(hidden, row):
            hidden = self.cell(row, hidden)
            return hidden, hidden

        _, hidden = ec.filter_scan(step, jnp.zeros(HIDDEN), rows)
        return hidden, state

    def guesses(self, rows: Sequence, state: ec.nn.State) -> Float[Array, "rows 10"]:
        """How probable each digit is, after each row."""
        hidden, _ = self.read(rows, state)
        return jax.nn.softmax(jax.vmap(self.classify)(hidden))


# %%
def load_data() -> tuple[Sequences, Sequences, Labels, Labels]:
    """Sequences for training and for the test, then their labels: the same split every time."""
    digits = load_digits()
    parts = train_test_split(
        digits.images, digits.target, test_size=0.2, random_state=SEED, stratify=digits.target
    )
    sequences = [jnp.asarray(x, jnp.float32) for x in parts[:2]]
    labels = [jnp.asarray(y, jnp.int32) for y in parts[2:]]
    return sequences[0], sequences[1], labels[0], labels[1]


# %% [markdown]
# ## Training
#
# One loop again: its carry is the model, the state, and the state of the optimiser.


# %%
def apply(
    model: Reader, state: ec.nn.State, x: Sequences
) -> tuple[Float[Array, "batch 10"], ec.nn.State]:
    batched = ec.filter_vmap(model, in_axes=(0, None), out_axes=(0, None), axis_name="batch")
    return batched(x, state)


@ec.filter_value_and_grad(has_aux=True)
def loss_and_slope(
    model: Reader, state: ec.nn.State, x: Sequences, y: Labels
) -> tuple[Float[Array, ""], ec.nn.State]:
    logits, state = apply(model, state, x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), state


@ec.filter_jit
def accuracy(model: Reader, state: ec.nn.State, x: Sequences, y: Labels) -> Float[Array, ""]:
    logits, _ = apply(ec.nn.inference_mode(model), state, x)
    return jnp.mean(jnp.argmax(logits, axis=1) == y)


def train(
    model: Reader, state: ec.nn.State, x_train: Sequences, y_train: Labels, key: PRNGKeyArray
) -> tuple[Reader, ec.nn.State, Float[Array, " steps"]]:
    """Train the model; return it with its state and the loss of every step."""
    per_epoch = len(x_train) // BATCH
    optimiser = optax.adamw(optax.cosine_decay_schedule(5e-3, EPOCHS * per_epoch))

    def step(carry, batch):
        model, state, opt_state = carry
        (loss, state), slope = loss_and_slope(model, state, x_train[batch], y_train[batch])
        parameters = ec.filter(model, ec.is_inexact_array)
        updates, opt_state = optimiser.update(slope, opt_state, parameters)
        return (ec.apply_updates(model, updates), state, opt_state), loss

    orders = jax.vmap(lambda key: jax.random.permutation(key, len(x_train)))(
        jax.random.split(key, EPOCHS)
    )
    batches = orders[:, : per_epoch * BATCH].reshape(-1, BATCH)
    opt_state = optimiser.init(ec.filter(model, ec.is_inexact_array))
    (model, state, _), losses = ec.filter_scan(step, (model, state, opt_state), batches)
    return model, state, losses


# %%
def draw(pictures: np.ndarray, guesses: np.ndarray, path: Path) -> None:
    mpl.use("Agg")  # Draws to files, on machines without a screen too.
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(pictures), figsize=(10, 4.2), layout="constrained")
    for (above, below), picture, guess in zip(axes.T, pictures, guesses, strict=True):
        above.imshow(picture, cmap="gray_r")
        above.set_title(f"reads {guess[-1].argmax()}")
        shown = below.imshow(guess, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        below.set(xlabel="digit", xticks=range(0, 10, 3))
        for one in (above, below):
            one.set_yticks([])
        above.set_xticks([])
    axes[0, 0].set_ylabel("rows, as they come")
    axes[1, 0].set_ylabel("guess after each row")
    figure.colorbar(shown, ax=axes[1], label="probability")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    x_train, x_test, y_train, y_test = load_data()
    model_key, order_key = jax.random.split(jax.random.key(SEED))
    model, state = ec.nn.make_with_state(Reader)(model_key)
    model, state, losses = train(model, state, x_train, y_train, order_key)

    first, last = losses[:10].mean(), losses[-10:].mean()
    print(f"mean loss of ten steps: {first:.3f} first, {last:.3f} last")
    print(f"batches in the state: {state.get(model.standardise.seen)[2] - 1:.0f} of {len(losses)}")
    print(f"test accuracy: {accuracy(model, state, x_test, y_test):.1%}")

    # One of the first pictures of each of six digits.
    chosen = np.array([np.flatnonzero(y_test == digit)[0] for digit in (0, 2, 3, 5, 6, 9)])
    reader = ec.nn.inference_mode(model)
    guesses = jax.vmap(lambda rows: reader.guesses(rows, state))(x_test[chosen])
    OUT.mkdir(parents=True, exist_ok=True)
    draw(np.asarray(x_test[chosen]), np.asarray(guesses), OUT / "sequences_rnn.png")
    print(f"picture: {OUT / 'sequences_rnn.png'}")


if __name__ == "__main__":
    main()
