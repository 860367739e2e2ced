"""Rows for the table of layers: layers with a state.

Each is wrapped in a Module of one array, which holds the model together with its state. A call
makes two steps, so that the second sees what the first did to the state.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ecliptic import nn
from ecliptic.module import Module, field
from ecliptic.transform import filter_vmap
from ecliptic.tree import tree_at


class TwoSteps(Module):
    """A model and its state, called twice; for a batch where `axis_name` is given."""

    model: Any
    state: nn.State
    axis_name: str | None = field(static=True)

    def __call__(self, x: Any) -> jax.Array:
        x = jnp.asarray(x)
        call = self.model
        if self.axis_name is not None:
            axes = (0, None)
            call = filter_vmap(call, in_axes=axes, out_axes=axes, axis_name=self.axis_name)
        # The module is called many times: each call needs a state that no other uses up.
        state = jax.tree.map(lambda leaf: leaf, self.state)
        first, state = call(x, state)
        second, state = call(x * x, state)
        return first + second


def _two_steps(make: Callable[[Any, Any], Any], axis_name: str | None = "batch") -> Any:
    def make_both(key: Any, dtype: Any) -> TwoSteps:
        return TwoSteps(*nn.make_with_state(make)(key, dtype), axis_name)

    return make_both


def _batch_norm(mode: Any) -> Callable[[Any, Any], Any]:
    return lambda key, dtype: nn.BatchNorm(2, "batch", momentum=0.5, dtype=dtype, mode=mode)


def _spectral_norm(key: Any, dtype: Any) -> nn.SpectralNorm:
    linear = nn.Linear(3, 2, dtype=dtype, key=key)
    # Far apart, so that after some steps the vectors are singular ones, and the gradients those of
    # finite differences.
    weight = jnp.array([[5, 1, 0], [0, 0.5, 1]], linear.weight.dtype) + linear.weight / 8
    return nn.SpectralNorm(tree_at(_weight, linear, weight), "weight", 5, key=key)


def _weight(linear: nn.Linear) -> jax.Array:
    return linear.weight


def _sequential(key: Any, dtype: Any) -> nn.Sequential:
    return nn.Sequential(
        {
            "map": nn.Linear(3, 2, dtype=dtype, key=key),
            "norm": nn.BatchNorm(2, "batch", dtype=dtype, mode="batch"),
            "dropout": nn.Dropout(0),
        }
    )


# Name, construction, shape of the input, whether a call needs a key, whether something is learnt.
ROWS = (
    ("BatchNorm, ema", _two_steps(_batch_norm("ema")), (3, 2)),
    ("BatchNorm, batch", _two_steps(_batch_norm("batch")), (3, 2)),
    (
        "BatchNorm, inference",
        _two_steps(lambda key, dtype: nn.inference_mode(_batch_norm("batch")(key, dtype)), None),
        (2, 3),
    ),
    ("SpectralNorm", _two_steps(_spectral_norm, None), (3,)),
    ("Sequential with a state", _two_steps(_sequential), (3, 3)),
)
