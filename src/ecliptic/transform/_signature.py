"""What a call looks like to `jax.jit`: structure, static leaves, and the types of arrays."""

import dataclasses
import types
import weakref
from typing import Any

import jax
from jax.tree_util import tree_flatten

from ecliptic.transform._static import same_static
from ecliptic.tree import is_array


@dataclasses.dataclass(frozen=True, slots=True)
class ArrayType:
    """Everything about an array that a program is compiled for, as far as a trace sees it.

    Args:
        shape: the shape.
        dtype: the dtype.
        weak_type: whether the dtype gives way to that of others, as that of a Python number.
        placement: where the parts of the array are, if that is a part of its type; or None.
    """

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    placement: Any

    @classmethod
    def of(cls, array: Any) -> "ArrayType":
        """The type of an array or tracer."""
        aval = jax.typeof(array)
        sharding = getattr(aval, "sharding", None)
        mesh = getattr(sharding, "mesh", None)
        explicit = mesh is not None and not getattr(mesh, "empty", True)
        placement = (getattr(sharding, "spec", None), mesh) if explicit else None
        return cls(aval.shape, aval.dtype, bool(getattr(aval, "weak_type", False)), placement)


@dataclasses.dataclass(frozen=True, slots=True)
class FunctionMark:
    """A function among the arguments of a call, which is not kept alive.

    Args:
        reference: to the function. Marks of one function are equal, also when it is gone.
        qualname: what it is called.
        code: its code.
    """

    reference: weakref.ref[types.FunctionType]
    qualname: str = dataclasses.field(compare=False)
    code: types.CodeType = dataclasses.field(compare=False)

    @classmethod
    def of(cls, function: types.FunctionType) -> "FunctionMark":
        """The mark of a function."""
        return cls(weakref.ref(function), function.__qualname__, function.__code__)

    def __repr__(self) -> str:
        return f"<function {self.qualname}>"


class Signature:
    """The arguments of a call: `ArrayType`s in place of arrays, and marks in place of functions.

    Args:
        leaves: the leaves, those that are neither arrays nor functions as they are.
        treedef: the structure of the pair of positional and keyword arguments.
    """

    __slots__ = ("leaves", "treedef")

    def __init__(self, leaves: list[Any], treedef: Any) -> None:
        self.leaves = leaves
        self.treedef = treedef

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "Signature":
        """The signature of a call with these arguments."""
        return cls.of_leaves(*tree_flatten((args, kwargs)))

    @classmethod
    def of_leaves(cls, leaves: list[Any], treedef: Any) -> "Signature":
        """The signature of a call with arguments of these leaves and this structure."""
        return cls([describe(leaf) for leaf in leaves], treedef)

    def has_structure_of(self, other: "Signature") -> bool:
        """Whether the two have the same tree, static fields included."""
        try:
            return bool(self.treedef == other.treedef)
        except Exception:
            # A static field that cannot be compared is another each time, to `jax.jit` too.
            return False

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and keyword arguments."""
        return self.treedef.unflatten(self.leaves)


def describe(leaf: Any) -> Any:
    """What stands in a signature for a leaf."""
    if is_array(leaf):
        return ArrayType.of(leaf)
    return FunctionMark.of(leaf) if type(leaf) is types.FunctionType else leaf


def same_leaf(one: Any, other: Any) -> bool:
    """Whether two leaves of signatures are the same to a compiled program."""
    return type(one) is type(other) and same_static(one, other)
