"""`ω`: arithmetic on whole PyTrees."""

import operator
import types
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp

from ecliptic.errors import LeafError, StructureError
from ecliptic.tree._difference import first_difference
from ecliptic.tree._predicates import is_array_like

_S = TypeVar("_S")
_T = TypeVar("_T")


def _unary(operation: Callable[[Any], Any]) -> "Callable[[ω[_S]], ω[_S]]":
    def method(self: "ω[_S]") -> "ω[_S]":
        return self.call(operation)

    return method


def _binary(operation: Callable[[Any, Any], Any]) -> "Callable[[ω[_S], Any], ω[_S]]":
    def method(self: "ω[_S]", other: Any) -> "ω[_S]":
        return _combined(operation, self, other)

    return method


def _reflected(operation: Callable[[Any, Any], Any]) -> "Callable[[ω[_S], Any], ω[_S]]":
    def method(self: "ω[_S]", other: Any) -> "ω[_S]":
        return _combined(lambda leaf, value: operation(value, leaf), self, other)

    return method


def _combined(operation: Callable[[Any, Any], Any], one: "ω[Any]", other: Any) -> "ω[Any]":
    """Applies an operation to each leaf and its counterpart."""
    if isinstance(other, ω):
        if one.is_leaf is not other.is_leaf and not _alike(one.is_leaf, other.is_leaf):
            raise StructureError(
                f"The two operands of an operation on ω have different `is_leaf`: {one.is_leaf!r} "
                f"and {other.is_leaf!r}. Give the same function to both."
            )
        leaves, structure = jax.tree.flatten(one.ω, is_leaf=one.is_leaf)
        others, other_structure = jax.tree.flatten(other.ω, is_leaf=other.is_leaf)
        if structure != other_structure:
            raise StructureError(
                f"The two operands of an operation on ω differ in structure: "
                f"{first_difference(one.ω, other.ω, one.is_leaf)}. Only an array or a number is "
                "combined with every leaf; write it without `**ω`."
            )
        results = map(operation, leaves, others)
        return ω(structure.unflatten(results), one.is_leaf)
    if is_array_like(other):
        return one.call(lambda leaf: operation(leaf, other))
    raise LeafError(
        f"An ω was combined with {other!r} of type `{type(other).__qualname__}`. The other "
        "operand has to be an ω (for a tree, write `tree**ω`), an array or a number."
    )


def _alike(one: Any, other: Any) -> bool:
    """Whether two `is_leaf` are the same, or do the same: a `lambda` is often written twice."""
    functions = isinstance(one, types.FunctionType) and isinstance(other, types.FunctionType)
    return _deed(one) == _deed(other) if functions else bool(one == other)


def _deed(function: types.FunctionType) -> Any:
    """What a function does: its code without its place, and what it uses, by identity."""
    code = function.__code__
    used = [*(function.__closure__ or ()), *(function.__defaults__ or ())]
    values = [x.cell_contents if isinstance(x, types.CellType) else x for x in used]
    return code.co_code, code.co_consts, code.co_names, *map(id, (function.__globals__, *values))


class _Metaω(type):
    """Lets `tree**ω` be read as "`tree`, as an ω"."""

    # NumPy would otherwise raise each element of an array to the power of the class.
    __array_ufunc__ = None

    def __rpow__(cls, value: _T) -> "ω[_T]":
        return ω(value)


class ω(Generic[_T], metaclass=_Metaω):
    """Arithmetic on PyTrees, leaf by leaf: `(a**ω + 2 * b**ω).ω` for trees `a` and `b`.

    `tree**ω` (or `ω(tree)`) wraps a tree; operators act on the leaves; `.ω` takes the tree out.
    `**` binds more tightly than what it is used with here, so that few parentheses are needed.

    - The other operand is another ω, whose tree has the same structure, or an array or a number,
      which meets every leaf.
    - Operators are those of Python: `+ - * / // % @ ** & | ^ << >> < <= > >= == !=` and the signs
      `- + ~ abs()`. All of them, comparisons too, give an ω.
    - `x[item]` indexes each leaf; `x.at[item].set(y)` updates each, and so do the other methods of
      `jax.numpy.ndarray.at`.
    - `x.call(fn)` applies a function to each leaf.

    An ω itself is no PyTree: a forgotten `.ω` is an error, and not a tree within a tree.

    Args:
        value: the tree.
        is_leaf: as in `jax.tree.map`: for each node, whether it is a leaf. What comes of an
            operation has that of the left operand.

    Raises:
        StructureError: if the trees of two operands differ in structure, or in `is_leaf`.
        LeafError: if an operand is neither an ω nor an array nor a number.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic.tree import ω
        >>> params = {"w": jnp.array([1.0, 2.0]), "b": jnp.array(3.0)}
        >>> grads = {"w": jnp.array([1.0, 1.0]), "b": jnp.array(2.0)}
        >>> new = (params**ω - 0.5 * grads**ω).ω
        >>> print(new["w"], new["b"])
        [0.5 1.5] 2.0
    """

    __slots__ = ("is_leaf", "ω")

    __array_ufunc__ = None
    __hash__ = None  # pyright: ignore[reportAssignmentType]
    __iter__ = None

    def __init__(self, value: _T, is_leaf: Callable[[Any], bool] | None = None) -> None:
        self.ω = value
        self.is_leaf = is_leaf

    def __repr__(self) -> str:
        return f"ω({self.ω!r})"

    def __bool__(self) -> bool:
        raise LeafError(
            "An ω has no truth value: operators on it, comparisons too, are carried out leaf by "
            "leaf. Reduce the result, for instance with `jax.tree.all(jax.tree.map(jnp.all, x.ω))`."
        )

    def __getitem__(self, item: Any) -> "ω[_T]":
        """Each leaf, at an index."""
        return self.call(lambda leaf: leaf[item])

    @property
    def at(self) -> "_At[_T]":
        """`x.at[item].set(y)` and the like: each leaf, updated at an index."""
        return _At(self)

    def call(self, fn: Callable[[Any], Any]) -> "ω[Any]":
        """Each leaf, with a function applied to it.

        Args:
            fn: takes a leaf, and returns a tree in its place.
        """
        return ω(jax.tree.map(fn, self.ω, is_leaf=self.is_leaf), self.is_leaf)

    __neg__ = _unary(operator.neg)
    __pos__ = _unary(operator.pos)
    __abs__ = _unary(operator.abs)
    __invert__ = _unary(operator.invert)

    __add__ = _binary(operator.add)
    __sub__ = _binary(operator.sub)
    __mul__ = _binary(operator.mul)
    __truediv__ = _binary(operator.truediv)
    __floordiv__ = _binary(operator.floordiv)
    __mod__ = _binary(operator.mod)
    __matmul__ = _binary(operator.matmul)
    __pow__ = _binary(operator.pow)
    __and__ = _binary(operator.and_)
    __or__ = _binary(operator.or_)
    __xor__ = _binary(operator.xor)
    __lshift__ = _binary(operator.lshift)
    __rshift__ = _binary(operator.rshift)

    __radd__ = _reflected(operator.add)
    __rsub__ = _reflected(operator.sub)
    __rmul__ = _reflected(operator.mul)
    __rtruediv__ = _reflected(operator.truediv)
    __rfloordiv__ = _reflected(operator.floordiv)
    __rmod__ = _reflected(operator.mod)
    __rmatmul__ = _reflected(operator.matmul)
    __rpow__ = _reflected(operator.pow)
    __rand__ = _reflected(operator.and_)
    __ror__ = _reflected(operator.or_)
    __rxor__ = _reflected(operator.xor)
    __rlshift__ = _reflected(operator.lshift)
    __rrshift__ = _reflected(operator.rshift)

    def __lt__(self, other: Any) -> "ω[Any]":
        return _combined(operator.lt, self, other)

    def __le__(self, other: Any) -> "ω[Any]":
        return _combined(operator.le, self, other)

    def __gt__(self, other: Any) -> "ω[Any]":
        return _combined(operator.gt, self, other)

    def __ge__(self, other: Any) -> "ω[Any]":
        return _combined(operator.ge, self, other)

    def __eq__(self, other: Any) -> "ω[Any]":  # pyright: ignore[reportIncompatibleMethodOverride]
        return _combined(operator.eq, self, other)

    def __ne__(self, other: Any) -> "ω[Any]":  # pyright: ignore[reportIncompatibleMethodOverride]
        return _combined(operator.ne, self, other)


class _At(Generic[_T]):
    """`x.at`, for an ω `x`."""

    __slots__ = ("_whole",)

    def __init__(self, whole: ω[_T]) -> None:
        self._whole = whole

    def __getitem__(self, item: Any) -> "_Place[_T]":
        return _Place(self._whole, item)


class _Place(Generic[_T]):
    """`x.at[item]`, for an ω `x`: the methods are those of `jax.numpy.ndarray.at`."""

    __slots__ = ("_item", "_whole")

    def __init__(self, whole: ω[_T], item: Any) -> None:
        self._whole = whole
        self._item = item

    def get(self, **options: Any) -> ω[_T]:
        """Each leaf at the index."""
        return self._whole.call(lambda leaf: _place(leaf, self._item).get(**options))

    def apply(self, func: Callable[[Any], Any], **options: Any) -> ω[_T]:
        """Each leaf, with a function applied to what is at the index."""
        return self._whole.call(lambda leaf: _place(leaf, self._item).apply(func, **options))

    def _update(self, method: str, values: Any, options: dict[str, Any]) -> ω[_T]:
        def update(leaf: Any, value: Any) -> Any:
            return getattr(_place(leaf, self._item), method)(value, **options)

        return _combined(update, self._whole, values)

    def set(self, values: Any, **options: Any) -> ω[_T]:
        """Each leaf, with what is at the index replaced."""
        return self._update("set", values, options)

    def add(self, values: Any, **options: Any) -> ω[_T]:
        """Each leaf, with values added at the index."""
        return self._update("add", values, options)

    def subtract(self, values: Any, **options: Any) -> ω[_T]:
        """Each leaf, with values subtracted at the index."""
        return self._update("subtract", values, options)

    def multiply(self, values: Any, **options: Any) -> ω[_T]:
        """Each leaf, with what is at the index multiplied."""
        return self._update("multiply", values, options)

    def divide(self, values: Any, **options: Any) -> ω[_T]:
        """Each leaf, with what is at the index divided."""
        return self._update("divide", values, options)

    def power(self, values: Any, **options: Any) -> ω[_T]:
        """Each leaf, with what is at the index raised to powers."""
        return self._update("power", values, options)

    def min(self, values: Any, **options: Any) -> ω[_T]:
        """Each leaf, with the lesser of both at the index."""
        return self._update("min", values, options)

    def max(self, values: Any, **options: Any) -> ω[_T]:
        """Each leaf, with the greater of both at the index."""
        return self._update("max", values, options)


def _place(leaf: Any, item: Any) -> Any:
    return jnp.asarray(leaf).at[item]
