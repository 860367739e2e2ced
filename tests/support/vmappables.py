"""Types that are registered with JAX as vmappable, as other libraries do it."""

import dataclasses
import importlib
from typing import Any

import jax

# Registering is public in JAX, in a module that the library itself borrows from in one room only.
_register = importlib.import_module("jax.interpreters.batching").register_vmappable


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Shared:
    """Elements that share one buffer, which is not batched."""

    state: Any
    buffer: Any

    @property
    def shape(self):
        return self.state.shape

    def replace(self, **changes):
        return dataclasses.replace(self, **changes)


_register(
    Shared,
    int,
    int,
    lambda cont, _, x, axis: Shared(cont(x.state, axis), x.buffer),
    lambda cont, size, x, axis: Shared(cont(size, x.state, axis), x.buffer),
    None,
)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Nested:
    """Holds another vmappable object, and has no shape."""

    inner: Any
    x: Any


_register(
    Nested,
    int,
    int,
    lambda cont, _, x, axis: Nested(cont(x.inner, axis), cont(x.x, axis)),
    lambda cont, size, x, axis: Nested(cont(size, x.inner, axis), cont(size, x.x, axis)),
    None,
)


class Rows:
    """An axis specification of its own kind."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Table:
    """Is mapped over its rows by `Rows()`."""

    cells: Any


def _number(axis):
    return 0 if isinstance(axis, Rows) else axis


_register(
    Table,
    Rows,
    int,
    lambda cont, _, x, axis: Table(cont(x.cells, _number(axis))),
    lambda cont, size, x, axis: Table(cont(size, x.cells, _number(axis))),
    None,
)
