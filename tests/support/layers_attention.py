"""Rows for the table of layers: attention, embeddings, recurrent cells, normalisations.

Layers that are called with more than one array, or with integers, are wrapped in a Module of one
array.
"""

from typing import Any

import jax
import jax.numpy as jnp

from ecliptic import nn
from ecliptic.module import Module


class SelfAttention(Module):
    """A sequence looks at itself."""

    attention: nn.MultiheadAttention

    def __call__(self, x: Any) -> jax.Array:
        return self.attention(x, x, x)


class Lookup(Module):
    """Looks up the place of the largest number."""

    embedding: nn.Embedding

    def __call__(self, x: Any) -> jax.Array:
        return self.embedding(jnp.argmax(x))


class Step(Module):
    """One step of a recurrent network: the first half of the input is the hidden state."""

    cell: Any

    def __call__(self, x: Any) -> jax.Array:
        hidden, rest = jnp.split(jnp.asarray(x), 2)
        if isinstance(self.cell, nn.GRUCell):
            return self.cell(rest, hidden)
        return jnp.concatenate(self.cell(rest, (hidden, hidden)))


class Tied(Module):
    """Two linear maps with one weight."""

    shared: nn.Shared

    def __call__(self, x: Any) -> jax.Array:
        first, second = self.shared()
        return second(jnp.tanh(first(x)))


def second_weight(layers: Any) -> Any:
    """Where the shared weight goes."""
    return layers[1].weight


def first_weight(layers: Any) -> Any:
    """Where it is."""
    return layers[0].weight


def _attention(key: Any, dtype: Any) -> SelfAttention:
    return SelfAttention(nn.MultiheadAttention(2, 4, dtype=dtype, key=key))


def _tied(key: Any, dtype: Any) -> Tied:
    layers = [nn.Linear(3, 3, dtype=dtype, key=one) for one in jax.random.split(key)]
    return Tied(nn.Shared(layers, second_weight, first_weight))


# Name, construction, shape of the input, whether a call needs a key, whether something is learnt.
ROWS = (
    ("MultiheadAttention", _attention, (3, 4)),
    (
        "RotaryPositionalEmbedding",
        lambda key, dtype: nn.RotaryPositionalEmbedding(2, dtype=dtype),
        (3, 2),
        False,
        False,
    ),
    ("Embedding", lambda key, dtype: Lookup(nn.Embedding(5, 3, dtype=dtype, key=key)), (5,)),
    ("GRUCell", lambda key, dtype: Step(nn.GRUCell(2, 2, dtype=dtype, key=key)), (4,)),
    ("LSTMCell", lambda key, dtype: Step(nn.LSTMCell(2, 2, dtype=dtype, key=key)), (4,)),
    ("LayerNorm", lambda key, dtype: nn.LayerNorm((2, 3), dtype=dtype), (2, 3)),
    ("RMSNorm", lambda key, dtype: nn.RMSNorm(3, dtype=dtype), (3,)),
    ("GroupNorm", lambda key, dtype: nn.GroupNorm(2, 4, dtype=dtype), (4, 2)),
    (
        "WeightNorm",
        lambda key, dtype: nn.WeightNorm(nn.Linear(3, 2, dtype=dtype, key=key)),
        (3,),
    ),
    ("PReLU", lambda key, dtype: nn.PReLU(dtype=dtype), (2, 3)),
    ("Shared", _tied, (3,)),
)
