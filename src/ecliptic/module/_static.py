"""`Static`: a value that is all structure and no leaf."""

from typing import Any, Generic, TypeVar

import jax

from ecliptic.module._field import field
from ecliptic.module._module import Module
from ecliptic.tree import equality

_Value = TypeVar("_Value")


class _Held:
    """A value inside a treedef, compared as a tree: arrays in it do not break the comparison."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Held):
            return NotImplemented
        if self.value is other.value:
            return True
        return bool(equality((self.value, other.value), typematch=True)[0])

    def __hash__(self) -> int:
        leaves, structure = jax.tree_util.tree_flatten(self.value)
        hashes = []
        for leaf in leaves:
            try:
                hashes.append(hash(leaf))
            except TypeError:
                # Without a hash of its own (an array), its type must do: equal implies this.
                hashes.append(hash(getattr(leaf, "shape", None)))
        return hash((structure, *hashes))

    def __repr__(self) -> str:
        return repr(self.value)

    def __reduce__(self) -> Any:
        return _Held, (self.value,)


class Static(Module, Generic[_Value]):
    """Holds one value as structure: a tree without leaves.

    With it, anything can go where JAX wants arrays only: into a carry, through `jax.jit`, out of
    `jax.vmap`. Two of them are the same structure if their values are equal as trees and leaf
    for leaf of the same type.

    Args:
        value: anything. Arrays in it are constants to every transformation.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax
        >>> held = ec.Static("a string")
        >>> jax.tree.leaves(held)
        []
        >>> held.value
        'a string'
    """

    _held: Any = field(static=True)

    def __init__(self, value: _Value) -> None:
        self._held = _Held(value)

    @property
    def value(self) -> _Value:
        """The value that was given."""
        return self._held.value

    def __repr__(self) -> str:
        return f"Static({self.value!r})"
