"""The same multilayer perceptron in four forms.

``depth`` counts hidden layers, so that there are ``depth + 1`` linear ones; all are ``width`` wide.
"""

import importlib
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp

ECLIPTIC = "ecliptic"
EQUINOX = "equinox"


def library(name: str) -> ModuleType:
    """Ecliptic or Equinox, which have the same names; an ImportError fails the row alone."""
    return importlib.import_module(name)


def nnx() -> ModuleType:
    return importlib.import_module("flax.nnx")


def filtered_mlp(name: str, depth: int, width: int) -> Any:
    """The MLP of Ecliptic or Equinox."""
    return library(name).nn.MLP(width, width, width, depth, key=jax.random.key(0))


def flat_mlp(depth: int, width: int) -> list[jax.Array]:
    """Weight, bias, weight, bias, ...: the same arrays with nothing around them."""
    arrays: list[jax.Array] = []
    for key in jax.random.split(jax.random.key(0), depth + 1):
        arrays += [jax.random.normal(key, (width, width)) / width**0.5, jnp.zeros(width)]
    return arrays


def flat_forward(arrays: list[jax.Array], x: jax.Array) -> jax.Array:
    """What the MLP of the flat list computes for a batch."""
    *hidden, (weight, bias) = zip(arrays[::2], arrays[1::2], strict=True)
    for hidden_weight, hidden_bias in hidden:
        x = jax.nn.relu(x @ hidden_weight.T + hidden_bias[None])
    return x @ weight.T + bias[None]


def nnx_mlp(depth: int, width: int) -> Any:
    """The MLP as a Flax NNX module."""
    flax = nnx()

    class MLP(flax.Module):
        def __init__(self, rngs: Any) -> None:
            layers = [flax.Linear(width, width, rngs=rngs) for _ in range(depth + 1)]
            self.layers = flax.List(layers)

        def __call__(self, x: jax.Array) -> jax.Array:
            for layer in self.layers[:-1]:
                x = jax.nn.relu(layer(x))
            return self.layers[-1](x)

    return MLP(flax.Rngs(0))
