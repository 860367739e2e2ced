"""Layers have their constructors, and calling one gives an array."""

import jax

import ecliptic as eqx


def use(x: jax.Array, key: jax.Array) -> None:
    mlp = eqx.nn.MLP(2, 2, width_size=8, depth=1, key=key)
    reveal_type(mlp)  # reveals: MLP
    reveal_type(mlp(x))  # reveals: Array
    reveal_type(eqx.nn.Linear(2, "scalar", key=key).use_bias)  # reveals: bool
    eqx.nn.MLP(2, 2, 8, 1)  # error: reportCallIssue
    eqx.nn.Linear("two", 2, key=key)  # error: reportArgumentType
