"""The table of layers: a row here is enough for a layer to be tested under every transformation."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ecliptic import nn
from ecliptic.module import Module
from tests.support import layers_attention, layers_conv, layers_stateful


def tanh(x: jax.Array) -> jax.Array:
    """A smooth activation. `jax.numpy.tanh` itself can be neither pickled nor copied."""
    return jnp.tanh(x)


class Slope(Module):
    """A learnt activation: smooth everywhere, so that finite differences are right."""

    slope: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.slope * jnp.tanh(x)


class Layer(NamedTuple):
    """A layer to test.

    Args:
        name: what the test is called.
        make: builds the layer from a key and a dtype.
        shape: the shape of one input.
        random: whether a call needs a key.
        learnt: whether the layer has parameters.
    """

    name: str
    make: Callable[[Any, Any], Any]
    shape: tuple[int, ...]
    random: bool = False
    learnt: bool = True

    def call(self, layer: Any, x: Any) -> Any:
        """Call the layer for one input."""
        return layer(x, key=jax.random.key(7)) if self.random else layer(x)


def _slope(dtype: Any) -> Slope:
    return Slope(jnp.asarray(0.5, dtype))


def _mlp(depth: int, **options: Any) -> Callable[[Any, Any], Any]:
    return lambda key, dtype: nn.MLP(3, 2, 4, depth, tanh, dtype=dtype, key=key, **options)


def _learnt(scan: bool) -> Callable[[Any, Any], Any]:
    return lambda key, dtype: nn.MLP(
        3, 2, 4, 3, _slope(dtype), _slope(dtype), dtype=dtype, scan=scan, key=key
    )


def _sequential(key: Any, dtype: Any) -> nn.Sequential:
    first, second = jax.random.split(key)
    return nn.Sequential(
        [
            nn.Linear(3, 4, dtype=dtype, key=first),
            nn.Lambda(tanh),
            tanh,
            nn.Sequential([nn.Dropout(0.5), nn.Identity()]),
            nn.Linear(4, 2, dtype=dtype, key=second),
        ]
    )


LAYERS = (
    Layer("Identity", lambda key, dtype: nn.Identity(), (3, 2), learnt=False),
    Layer("Lambda", lambda key, dtype: nn.Lambda(tanh), (3, 2), learnt=False),
    Layer("Lambda, learnt", lambda key, dtype: nn.Lambda(_slope(dtype)), (3, 2)),
    Layer("Linear", lambda key, dtype: nn.Linear(3, 2, dtype=dtype, key=key), (3,)),
    Layer(
        "Linear, no bias",
        lambda key, dtype: nn.Linear(3, 2, use_bias=False, dtype=dtype, key=key),
        (3,),
    ),
    Layer(
        "Linear, scalars",
        lambda key, dtype: nn.Linear("scalar", "scalar", dtype=dtype, key=key),
        (),
    ),
    Layer("MLP", _mlp(3), (3,)),
    Layer("MLP, depth 0", _mlp(0), (3,)),
    Layer("MLP, scan", _mlp(3, scan=True), (3,)),
    Layer("MLP, learnt activations", _learnt(scan=False), (3,)),
    Layer("MLP, learnt activations, scan", _learnt(scan=True), (3,)),
    Layer("Dropout", lambda key, dtype: nn.Dropout(0.5), (3, 2), random=True, learnt=False),
    Layer("Sequential", _sequential, (3,), random=True),
    *[Layer(*row) for row in layers_attention.ROWS],
    *[Layer(*row) for row in layers_conv.ROWS],
    *[Layer(*row) for row in layers_stateful.ROWS],
)
