"""The table of trees: each is a model of another making, which filtered transformations take."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax.experimental import sparse

import ecliptic as ec


class Unit(ec.Module):
    """A Module with a function and a string among its leaves."""

    weight: Any
    activation: Callable[..., Any] = jnp.tanh
    name: str = "unit"

    def __call__(self, x: Any) -> Any:
        return self.activation(self.weight * x)


class OtherUnit(eqx.Module):
    """The same as a module of Equinox."""

    weight: Any
    activation: Callable[..., Any] = jnp.tanh
    name: str = "unit"

    def __call__(self, x: Any) -> Any:
        return self.activation(self.weight * x)


@struct.dataclass
class Parameters:
    """The same as a dataclass of Flax."""

    weight: Any
    activation: Any = struct.field(pytree_node=False, default=jnp.tanh)

    def __call__(self, x: Any) -> Any:
        return self.activation(self.weight * x)


def _noisy(tree: Any, x: Any) -> Any:
    return jnp.tanh(tree["weight"] * x) + jax.random.normal(tree["key"], x.shape, x.dtype)


@dataclasses.dataclass(frozen=True)
class Tree:
    """A tree to test.

    Args:
        name: what the test is called.
        make: builds the tree from an array of shape `(2,)`.
        call: the function to transform, of the tree and an array of shape `(2,)`; it returns
            another one of the same dtype.
        dtype: of all that is differentiated.
        numpy: whether the arrays in the tree are NumPy's.
    """

    name: str
    make: Callable[[Any], Any]
    call: Callable[[Any, Any], Any] = dataclasses.field(default=lambda tree, x: tree(x))
    dtype: Any = jnp.float32
    numpy: bool = False

    @property
    def tree(self) -> Any:
        """The tree for one element."""
        return self.make(self.vector(0.5, 1.5))

    @property
    def x(self) -> Any:
        """The array that the function is called with."""
        return self.vector(0.3, -0.7)

    def vector(self, *numbers: float) -> Any:
        """An array of the tree's kind."""
        return (np if self.numpy else jnp).asarray(numbers, self.dtype)


TREES = (
    Tree("Module", Unit),
    Tree("bfloat16", Unit, dtype=jnp.bfloat16),
    Tree("NumPy", Unit, numpy=True),
    Tree("Equinox", OtherUnit),
    Tree("Flax", Parameters),
    Tree(
        "BCOO",
        lambda w: sparse.BCOO((w, jnp.array([[0, 1], [1, 0]])), shape=(2, 2)),
        # Not `tree @ x`: JAX itself cannot map the second derivative of that.
        lambda tree, x: jnp.tanh(tree.todense() @ x),
    ),
    Tree("typed key", lambda w: {"weight": w, "key": jax.random.key(3), "n": "n"}, _noisy),
)
