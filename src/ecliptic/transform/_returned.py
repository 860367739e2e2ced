"""What goes around JAX: of a tree whose arrays JAX gets, all but these arrays."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten

from ecliptic.tree import is_array, is_inexact_array


def dtype_of(array: Any) -> Any:
    """The dtype that an array has in JAX: without `jax_enable_x64`, float64 becomes float32."""
    return array.dtype if isinstance(array, jax.Array) else jnp.result_type(array)


class Slot:
    """The place of a leaf: what there is to know of it without holding it."""

    __slots__ = ("differentiable", "dtype", "picked", "shape", "type")

    def __init__(self, leaf: Any, picked: bool) -> None:
        self.type = type(leaf)
        self.picked = picked
        if picked and not is_array(leaf):
            leaf = jnp.asarray(leaf)
        array = is_array(leaf)
        self.shape: tuple[int, ...] = tuple(leaf.shape) if array else ()
        self.dtype: Any = dtype_of(leaf) if array else None
        # Whether what was here can have a derivative that is not zero.
        self.differentiable = picked and is_inexact_array(leaf)

    def zeros(self) -> Any:
        """The derivative of what does not change."""
        return jnp.zeros(self.shape, self.dtype)


class Returned:
    """The output of one function, with slots for its arrays. It holds nothing of a trace."""

    __slots__ = ("leaves", "treedef")

    def __init__(self) -> None:
        # None until the function has run.
        self.leaves: list[Any] | None = None
        self.treedef: Any = None

    def put(self, out: Any, picks: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
        """Keeps what is no array.

        Returns:
            The leaves that `picks` says yes to, and all other arrays of JAX.
        """
        leaves, self.treedef = tree_flatten(out)
        self.leaves, picked, carried = [], [], []
        for leaf in leaves:
            pick = picks(leaf)
            if pick or isinstance(leaf, jax.Array):
                (picked if pick else carried).append(leaf)
                leaf = Slot(leaf, pick)
            self.leaves.append(leaf)
        return picked, carried

    def get(self, picked: Iterable[Any], carried: Iterable[Any] = ()) -> Any:
        """The output, with these arrays in it."""
        picked, carried = iter(picked), iter(carried)
        return self.treedef.unflatten(
            [
                leaf if type(leaf) is not Slot
                else next(picked) if leaf.picked else next(carried)
                for leaf in self.leaves or ()
            ]
        )  # fmt: skip

    def slots(self) -> list[Slot]:
        """One for each leaf."""
        return [x if type(x) is Slot else Slot(x, False) for x in self.leaves or ()]

    def derivative(self, values: Sequence[Any]) -> Any:
        """These derivatives in the structure of the output, with None for all other leaves."""
        return _derivative(self.treedef, self.slots(), values)


class Given:
    """The arguments of one call, without their leaves."""

    __slots__ = ("leaves", "treedef")

    def __init__(self, treedef: Any, leaves: list[Any], picks: Callable[[Any], bool]):
        self.treedef = treedef
        self.leaves = [Slot(leaf, picks(leaf)) for leaf in leaves]

    def slots(self) -> list[Slot]:
        """One for each leaf."""
        return self.leaves

    def derivative(self, values: Sequence[Any]) -> Any:
        """These derivatives in the structure of the arguments, with None for all other leaves."""
        return _derivative(self.treedef, self.leaves, values)


def _derivative(treedef: Any, slots: list[Slot], values: Sequence[Any]) -> Any:
    rest = iter(values)
    return treedef.unflatten([next(rest) if slot.picked else None for slot in slots])


def filled(leaves: Sequence[Any], positions: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """The leaves, with these values at these positions."""
    out = list(leaves)
    for position, value in zip(positions, values, strict=True):
        out[position] = value
    return out


class _Hole:
    """Stands where an array was."""


_HOLE = _Hole()


class Held:
    """The arguments of one call without their arrays, which JAX gets. It holds nothing of a trace.

    Args:
        leaves: the leaves of the tuple of arguments.
        treedef: its structure.
    """

    __slots__ = ("leaves", "positions", "sizes", "treedef")

    def __init__(self, leaves: list[Any], treedef: Any) -> None:
        self.treedef = treedef
        self.sizes = [child.num_leaves for child in treedef.children()]
        self.positions = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
        self.leaves = filled(leaves, self.positions, [_HOLE] * len(self.positions))

    def get(self, arrays: Sequence[Any], *, numbers: bool = False) -> Any:
        """The arguments, with these arrays in them.

        JAX remembers of a Python number that it was one, and gives it back. If `numbers`, it is
        left one; else it is an array here.
        """
        if not numbers:
            arrays = [array if is_array(array) else jnp.asarray(array) for array in arrays]
        return self.treedef.unflatten(filled(self.leaves, self.positions, arrays))

    def names(self) -> Any:
        """A tree with the structure of the arguments, for their paths."""
        return self.treedef.unflatten(self.leaves)

    def spread(self, values: Sequence[Any], default: Any) -> list[Any]:
        """One value for each leaf: these for the arrays, the default for the others."""
        return filled([default] * len(self.leaves), self.positions, values)


def hold(*trees: Any) -> tuple[Held, list[Any]]:
    """Splits arguments into their arrays and the rest."""
    leaves, treedef = tree_flatten(trees)
    held = Held(leaves, treedef)
    return held, [leaves[i] for i in held.positions]
