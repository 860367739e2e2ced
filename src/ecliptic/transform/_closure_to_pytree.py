"""`closure_to_pytree`: functions as PyTrees, with what they capture as their children.

Python keeps what a function captures out of sight: the values of outer variables in cells, and the
defaults of arguments in attributes. Here they become fields of a Module, and the rest of the
function, which is its code and the module that it was written in, becomes structure. Two functions
that the same `def` made are then the same structure with other leaves.

A call makes the function again, of the code and of what the fields hold by then.
"""

import types
from typing import Any

import jax

from ecliptic.module import Module, field


class _Code:
    """All of a function that is no value: equal for all functions that one `def` makes."""

    __slots__ = ("code", "globals", "name", "qualname")

    def __init__(self, function: types.FunctionType) -> None:
        self.code = function.__code__
        self.globals = function.__globals__
        self.name = function.__name__
        self.qualname = function.__qualname__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Code):
            return NotImplemented
        # The same code means something else where the global names do.
        same_names = self.name == other.name and self.globals is other.globals
        return same_names and self.code == other.code

    def __hash__(self) -> int:
        return hash(self.code)

    def __repr__(self) -> str:
        return self.qualname


@jax.tree_util.register_static
class _Enclosing:
    """Stands for a function inside of itself: for the one that is this many functions further out.

    A recursive function captures itself. As a tree that has no end.
    """

    __slots__ = ("levels",)

    def __init__(self, levels: int) -> None:
        self.levels = levels

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Enclosing) and self.levels == other.levels

    def __hash__(self) -> int:
        return hash(self.levels)

    def __repr__(self) -> str:
        return f"<function {self.levels} further out>"


@jax.tree_util.register_static
class _Unset:
    """Stands for what a variable holds that is not assigned to yet."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unset)

    def __hash__(self) -> int:
        return hash(_Unset)

    def __repr__(self) -> str:
        return "<unset>"


class _Closure(Module):
    """A function whose captured values are children."""

    captured: tuple[Any, ...]
    defaults: tuple[Any, ...] | None
    keyword_defaults: dict[str, Any] | None
    _code: _Code = field(static=True)

    @property
    def __name__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._code.name

    @property
    def __wrapped__(self) -> types.FunctionType:
        """The function, with the values that are in the fields."""
        return _function(self, ())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _function(self, ())(*args, **kwargs)


def _closure(function: types.FunctionType, around: tuple[types.FunctionType, ...]) -> _Closure:
    around = (function, *around)
    return _Closure(
        tuple(_converted(_content(cell), around) for cell in function.__closure__ or ()),
        _converted(function.__defaults__, around),
        _converted(function.__kwdefaults__, around),
        _Code(function),
    )


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _Unset()


def _converted(tree: Any, around: tuple[types.FunctionType, ...]) -> Any:
    """A tree with each function in it converted, inside of the functions around it."""

    def convert(leaf: Any) -> Any:
        if type(leaf) is not types.FunctionType:
            return leaf
        for levels, function in enumerate(around):
            if function is leaf:
                return _Enclosing(levels)
        return _closure(leaf, around)

    return jax.tree.map(convert, tree)


def _function(closure: _Closure, around: tuple[types.FunctionType, ...]) -> types.FunctionType:
    code = closure._code
    cells = tuple(types.CellType() for _ in closure.captured)
    function = types.FunctionType(code.code, code.globals, code.name, closure=cells)
    around = (function, *around)
    for cell, content in zip(cells, closure.captured, strict=True):
        if not isinstance(content, _Unset):
            cell.cell_contents = _restored(content, around)
    function.__defaults__ = _restored(closure.defaults, around)
    function.__kwdefaults__ = _restored(closure.keyword_defaults, around)
    function.__qualname__ = code.qualname
    return function


def _restored(tree: Any, around: tuple[types.FunctionType, ...]) -> Any:
    def restore(node: Any) -> Any:
        if isinstance(node, _Closure):
            return _function(node, around)
        return around[node.levels] if isinstance(node, _Enclosing) else node

    return jax.tree.map(restore, tree, is_leaf=lambda x: isinstance(x, (_Closure, _Enclosing)))


def closure_to_pytree(tree: Any) -> Any:
    """Makes PyTrees of Python functions: what they capture become leaves.

    `jax.jit` and its like do not see arrays that a function captures: to them these are constants,
    and another function made by the same `def` is another function altogether. The result is the
    same structure for all functions of that `def`, and the captured arrays are leaves to be
    traced, differentiated and mapped.

    What a function captures are the variables of the functions around it, the defaults of its
    arguments, and what the functions among these capture in turn. Global names are no part of it.
    The function works on a copy: assignments to `nonlocal` variables do not last, and nor do
    changes to captured lists and dictionaries. See [`filter_closure_convert`][], which traces a
    function for given arguments, for one that captures arrays in other ways.

    Args:
        tree: a function, or any PyTree, each function in which is converted. Other callables
            (`functools.partial`, compiled functions, methods of ordinary objects) are left.

    Returns:
        The tree, with a Module that can be called in place of each function.

    !!! Example

        >>> import jax
        >>> from ecliptic.transform import closure_to_pytree
        >>> def line(slope):
        ...     return lambda x: slope * x
        >>> closed = closure_to_pytree(line(3.0))
        >>> jax.tree.leaves(closed), closed(2.0)
        ([3.0], 6.0)
        >>> jax.tree.structure(closed) == jax.tree.structure(closure_to_pytree(line(4.0)))
        True
        >>> print(jax.grad(lambda fn: fn(2.0))(closed).captured)
        (Array(2., dtype=float32, weak_type=True),)
    """
    return _converted(tree, ())
