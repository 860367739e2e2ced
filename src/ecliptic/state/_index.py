"""`StateIndex`: the key under which a layer finds its part of the state."""

from typing import Any, Generic, TypeVar

import jax.tree_util as jtu
from jaxtyping import PyTree

from ecliptic.module import Module, field
from ecliptic.tree import format_path

Value = TypeVar("Value")


class Taken(Module):
    """Stands where an initial value was, before it was moved into a state. It has no leaves."""


class Unnamed:
    """The marker of an index that has no name yet, and so is in no state.

    All of them are equal: models of equal construction have equal structures.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unnamed)

    def __hash__(self) -> int:
        return hash(Unnamed)

    def __repr__(self) -> str:
        return "<unnamed>"


class StateIndex(Module, Generic[Value]):
    """The key under which a layer reads and writes its part of a `State`.

    A layer holds one in a field for each value that changes from call to call. `make_with_state`
    moves the initial values of a whole model into one `State`, and names each index by its place
    in the model. An index that is in several places of a model is a separate one at each place.

    Args:
        init: the initial value: a PyTree of arrays and numbers, of which the state makes arrays.
            Every later value has the same structure, shapes and dtypes.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> class Counter(ec.Module):
        ...     count: ec.nn.StateIndex
        ...     def __init__(self):
        ...         self.count = ec.nn.StateIndex(jnp.array(0))
        ...     def __call__(self, x, state):
        ...         count = state.get(self.count) + 1
        ...         return x * count, state.set(self.count, count)
        >>> counter, state = ec.nn.make_with_state(Counter)()
        >>> counter.count
        StateIndex(marker='Counter.count', init=Taken())
        >>> y, state = counter(2, state)
        >>> y, state = counter(2, state)
        >>> int(y)
        4
    """

    marker: object = field(static=True)
    init: Value | Taken

    def __init__(self, init: Value):
        self.marker = Unnamed()
        self.init = init


def give_name(index: StateIndex[Any], name: object) -> None:
    """Name an index that has no name yet, in place.

    Modules do not change. But a name only says what has been the case: which place this index has
    in the model that a state is being made for.
    """
    object.__setattr__(index, "marker", name)


def emptied(index: StateIndex[Any]) -> StateIndex[Any]:
    """The same index, without its initial value."""
    other: StateIndex[Any] = StateIndex(Taken())
    give_name(other, index.marker)
    return other


def is_index(node: Any) -> bool:
    """Whether a node is an index, at which a walk through a model stops."""
    return isinstance(node, StateIndex)


def named_indices(model: PyTree) -> list[tuple[str, StateIndex[Any]]]:
    """The indices in a model, each with its path. Those that have no name get one."""
    nodes = jtu.tree_flatten_with_path(model, is_leaf=is_index)[0]
    root = type(model).__name__
    found = [(format_path(p, root), node) for p, node in nodes if isinstance(node, StateIndex)]
    taken = {index.marker for _, index in found}
    for path, index in found:
        if isinstance(index.marker, Unnamed):
            name = path
            # Another index may have had this place in another tree.
            while name in taken:
                name += "'"
            give_name(index, name)
            taken.add(name)
    return found


def place_of(key: Any) -> str:
    """What messages call the place of an entry in the model."""
    return "an index that is in no state yet" if isinstance(key, Unnamed) else f"`{key}`"
