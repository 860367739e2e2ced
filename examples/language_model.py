"""Train a small transformer to write like the manual of Python, letter by letter.

The text is the reference that Python's own `help()` shows, which every installation has. Each block
attends to what was written before, with rotary embeddings for the positions; then the trained model
writes: a `filter_scan` whose carry is the text so far. Run it with

    python examples/language_model.py

which leaves `language_model.png` in the folder GALLERY_OUT, by default `demo_output/`. With SMOKE=1
in the environment it trains for a moment only.
"""

# %%
import os
from pathlib import Path
from pydoc_data.topics import topics

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import ecliptic as ec

SMOKE = os.environ.get("SMOKE") == "1"
OUT = Path(os.environ.get("GALLERY_OUT", "demo_output"))
STEPS = 30 if SMOKE else 1000
BATCH = 8
CONTEXT = 32 if SMOKE else 64
WIDTH = 32 if SMOKE else 64
BLOCKS = 1 if SMOKE else 2
HEADS = 4
SEED = 0

Codes = Int[Array, " context"]

# %% [markdown]
# ## The text
#
# Every letter becomes a number. Letters outside ASCII are rare, and left out.


# %%
text = "\n".join(topics.values()).encode("ascii", "ignore").decode()
letters = sorted(set(text))
codes = jnp.array([letters.index(letter) for letter in text], jnp.int32)

# %% [markdown]
# ## The model
#
# A block adds what attention finds, and then what a small network makes of it. Layers act on one
# vector, `jax.vmap` makes them act on a sequence.


# %%
class Block(ec.Module):
    attention_norm: ec.nn.LayerNorm
    attention: ec.nn.MultiheadAttention
    rope: ec.nn.RotaryPositionalEmbedding
    mlp_norm: ec.nn.LayerNorm
    mlp: ec.nn.MLP

    def __init__(self, key: PRNGKeyArray):
        attention_key, mlp_key = jax.random.split(key)
        self.attention_norm = ec.nn.LayerNorm(WIDTH)
        self.attention = ec.nn.MultiheadAttention(HEADS, WIDTH, key=attention_key)
        self.rope = ec.nn.RotaryPositionalEmbedding(WIDTH // HEADS)
        self.mlp_norm = ec.nn.LayerNorm(WIDTH)
        self.mlp = ec.nn.MLP(WIDTH, WIDTH, 4 * WIDTH, 1, activation=jax.nn.gelu, key=mlp_key)

    def rotate(self, query, key, value):
        rotate_heads = jax.vmap(self.rope, in_axes=1, out_axes=1)
        return rotate_heads(query), rotate_heads(key), value

    def __call__(self, x: Float[Array, "context width"]) -> Float[Array, "context width"]:
        causal = jnp.tril(jnp.ones((len(x), len(x)), bool))
        y = jax.vmap(self.attention_norm)(x)
        x = x + self.attention(y, y, y, mask=causal, process_heads=self.rotate)
        return x + jax.vmap(self.mlp)(jax.vmap(self.mlp_norm)(x))


class Writer(ec.Module):
    embed: ec.nn.Embedding
    blocks: list[Block]
    norm: ec.nn.LayerNorm
    unembed: ec.nn.Linear

    def __init__(self, key: PRNGKeyArray):
        embed_key, unembed_key, *block_keys = jax.random.split(key, 2 + BLOCKS)
        self.embed = ec.nn.Embedding(len(letters), WIDTH, key=embed_key)
        self.blocks = [Block(key) for key in block_keys]
        self.norm = ec.nn.LayerNorm(WIDTH)
        self.unembed = ec.nn.Linear(WIDTH, len(letters), key=unembed_key)

    def __call__(self, codes: Codes) -> Float[Array, "context letters"]:
        """The logits of the letter after each letter."""
        x = jax.vmap(self.embed)(codes)
        for block in self.blocks:
            x = block(x)
        return jax.vmap(self.unembed)(jax.vmap(self.norm)(x))


# %% [markdown]
# ## Training
#
# Passages from anywhere in the text; at each place of a passage, the next letter is to be guessed.


# %%
def mean_loss(model: Writer, passages: Int[Array, "batch context+1"]) -> Float[Array, ""]:
    logits = jax.vmap(model)(passages[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, passages[:, 1:]).mean()


@ec.filter_jit
def train(model: Writer, key: PRNGKeyArray) -> tuple[Writer, Float[Array, " steps"]]:
    """Train the model; return it with the loss of every step."""
    schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-3, STEPS // 10, STEPS)
    optimiser = optax.adamw(schedule)

    def step(carry, key):
        model, state = carry
        starts = jax.random.randint(key, (BATCH, 1), 0, len(codes) - CONTEXT)
        passages = codes[starts + jnp.arange(CONTEXT + 1)]
        loss, gradients = ec.filter_value_and_grad(mean_loss)(model, passages)
        updates, state = optimiser.update(gradients, state, ec.filter(model, ec.is_inexact_array))
        return (ec.apply_updates(model, updates), state), loss

    state = optimiser.init(ec.filter(model, ec.is_inexact_array))
    progress = ec.TqdmProgress(description="training")
    keys = jax.random.split(key, STEPS)
    (model, _), losses = ec.filter_scan(step, (model, state), keys, progress=progress)
    return model, losses


# %% [markdown]
# ## Writing
#
# The model sees the last letters, one is drawn from what it thinks comes next, and so on. A
# temperature below one makes it choose likely letters more often.


# %%
@ec.filter_jit
def write(model: Writer, start: Codes, length: int, key: PRNGKeyArray) -> Int[Array, " length"]:
    def step(seen, key):
        code = jax.random.categorical(key, model(seen)[-1] / 0.6)
        return jnp.append(seen[1:], code), code

    _, written = ec.filter_scan(step, start, jax.random.split(key, length))
    return written


# %%
def draw(losses: np.ndarray, path: Path) -> None:
    mpl.use("Agg")  # Draws to files, on machines without a screen too.
    import matplotlib.pyplot as plt

    frequencies = np.bincount(codes) / len(codes)
    entropy = -np.sum(frequencies * np.log2(frequencies))
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.axhline(entropy, color="black", linewidth=1, linestyle="--")
    axes.text(len(losses), entropy + 0.1, "frequencies of letters alone", ha="right")
    axes.plot(np.arange(1, len(losses) + 1), losses / np.log(2), color="tab:blue", linewidth=0.8)
    axes.set(xlabel="step", ylabel="bits per letter", title="Learning to write", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    model_key, train_key, write_key = jax.random.split(jax.random.key(SEED), 3)
    model = Writer(model_key)
    parameters = jax.tree.leaves(ec.filter(model, ec.is_inexact_array))
    print(f"{len(text):,} letters, {len(letters)} different ones")
    print(f"{sum(parameter.size for parameter in parameters):,} parameters")

    model, losses = train(model, train_key)
    first, last = losses[:10].mean() / np.log(2), losses[-10:].mean() / np.log(2)
    print(f"bits per letter, mean of ten steps: {first:.2f} first, {last:.2f} last")

    written = write(model, codes[:CONTEXT], 40 if SMOKE else 600, write_key)
    print("it writes:")
    print("".join(letters[code] for code in written))

    OUT.mkdir(parents=True, exist_ok=True)
    draw(np.asarray(losses), OUT / "language_model.png")
    print(f"picture: {OUT / 'language_model.png'}")


if __name__ == "__main__":
    main()
