"""Small PyTree nodes of several kinds, for the tests of `ecliptic.tree`."""

import dataclasses
from typing import Any, NamedTuple

import jax

from ecliptic import _jax


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Affine:
    """A callable dataclass node with a static field."""

    weight: Any
    bias: Any
    name: Any = dataclasses.field(default="affine", metadata={"static": True})

    def __call__(self, x):
        return self.weight * x + self.bias


@jax.tree_util.register_pytree_node_class
class NeverConstructed:
    """A node whose constructor must not run when a tree is built again."""

    def __init__(self, value):
        raise AssertionError("the constructor ran")

    @classmethod
    def make(cls, value):
        self = object.__new__(cls)
        self.value = value
        return self

    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls.make(*children)


@jax.tree_util.register_pytree_node_class
class OnlyNumbers:
    """A node that, against JAX's rules, refuses placeholders."""

    def __init__(self, value):
        self.value = value + 0

    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


class Empty(NamedTuple):
    """A NamedTuple without fields."""


class Pair(NamedTuple):
    """A NamedTuple."""

    first: Any
    second: Any


def literal(array):
    """Make the array that JAX puts into a trace for a constant; its class moved with versions."""
    try:
        return _jax.TypedNdArray(array)
    except TypeError:
        return _jax.TypedNdArray(array, weak_type=False)
