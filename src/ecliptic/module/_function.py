"""`StaticFunction`: a function that is all structure and no leaf, for plain JAX."""

import functools
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

import jax
from jax.tree_util import tree_flatten_with_path
from jaxtyping import PyTree

from ecliptic.errors import ArgumentTypeError
from ecliptic.module._copying import reference, resolve
from ecliptic.module._field import field
from ecliptic.module._module import Module
from ecliptic.module._wrapper import looks_like_wrapped
from ecliptic.tree import equality, format_path, is_array, register_formatter, tree_pformat

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Held:
    """A function inside a treedef.

    Compared as the function is, except that two of `functools.partial` are equal if they consist of
    the same: copies of them are equal then.
    """

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def __repr__(self) -> str:
        return repr(self.function)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Held):
            return NotImplemented
        return _same(self.function, other.function)

    def __hash__(self) -> int:
        function = self.function
        while isinstance(function, functools.partial):
            function = function.func
        try:
            return hash(function)
        except TypeError:
            return hash(type(function))

    def __reduce__(self) -> Any:
        return _put_together, (_take_apart(self.function),)


class _Parts(NamedTuple):
    """What a `functools.partial` consists of."""

    function: Any
    args: list[Any]
    keywords: dict[str, Any]


def _take_apart(function: Any) -> Any:
    """A function as it is copied and pickled: by name, if it can be."""
    if type(function) is not functools.partial:
        return reference(function)
    args = [reference(x) for x in function.args]
    keywords = {name: reference(x) for name, x in function.keywords.items()}
    return _Parts(_take_apart(function.func), args, keywords)


def _put_together(parts: Any) -> _Held:
    return _Held(_function_of(parts))


def _function_of(parts: Any) -> Any:
    if not isinstance(parts, _Parts):
        return resolve(parts)
    args = [resolve(x) for x in parts.args]
    keywords = {name: resolve(x) for name, x in parts.keywords.items()}
    return functools.partial(_function_of(parts.function), *args, **keywords)


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, functools.partial) and type(one) is type(other):
        filled = (one.args, one.keywords), (other.args, other.keywords)
        return _same(one.func, other.func) and bool(equality(tuple(filled), typematch=True)[0])
    return bool(one == other)


class StaticFunction(Module, Generic[_P, _T]):
    """A function as a PyTree without leaves, which is called as the function is.

    A bare function in a tree is a leaf, and `jax.jit`, `jax.vmap`, `jax.grad` and `jax.lax.scan`
    want arrays for leaves. Filtered transformations see to that. Where a tree has to go through
    plain JAX, the function can be made part of its structure: this is what [`wrap_functions`][]
    does for all functions of a model.

    Two of them are equal if the functions are, and have one hash then. It prints as the function
    does, and has its name, docstring and signature; other attributes are the function's.

    Args:
        function: a function, or anything else that can be called and is no PyTree.

    Raises:
        ArgumentTypeError: if it cannot be called, or is a PyTree: what is an array in it would
            become a constant.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> square = ec.StaticFunction(jnp.square)
        >>> jax.tree.leaves(square)
        []
        >>> jax.jit(lambda f, x: f(x))(square, 3.0)
        Array(9., dtype=float32, weak_type=True)
    """

    _held: Any = field(static=True)

    def __init__(self, function: Callable[_P, _T]) -> None:
        if not callable(function):
            raise ArgumentTypeError(
                f"`StaticFunction` wraps a function; got {function!r} of type "
                f"`{type(function).__qualname__}`, which cannot be called."
            )
        if not jax.tree_util.all_leaves([function]):
            raise ArgumentTypeError(
                f"`StaticFunction` wraps a function that is a leaf; got a "
                f"`{type(function).__qualname__}`, which is a PyTree already: use it as it is. If "
                f"it holds functions, `ecliptic.wrap_functions` wraps these."
            )
        self._held = _Held(function)

    @property
    def function(self) -> Callable[_P, _T]:
        """The function itself."""
        return self._held.function

    @property
    def __wrapped__(self) -> Callable[_P, _T]:
        return self._held.function

    def __getattr__(self, name: str) -> Any:
        # Names with underscores are protocols, which others look for in an object: those of the
        # function are not this object's.
        if name.startswith("_"):
            raise AttributeError(f"`StaticFunction` has no attribute `{name}`")
        return getattr(self._held.function, name)

    def __repr__(self) -> str:
        return tree_pformat(self)


def _call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    return self._held.function(*args, **kwargs)


# Past the metaclass: a call shall not first make a bound method.
type.__setattr__(StaticFunction, "__call__", _call)
looks_like_wrapped(StaticFunction)
register_formatter(StaticFunction, lambda value, document: document(value.function))


def _is_function(leaf: Any) -> bool:
    # Types can be called too, and are used for other things: a dtype is one.
    return callable(leaf) and not isinstance(leaf, type) and not is_array(leaf)


def wrap_functions(tree: PyTree) -> PyTree:
    """Makes the functions in a tree part of its structure, so that it can go through plain JAX.

    Args:
        tree: any PyTree.

    Returns:
        The same tree, with each leaf that is a function (or another object that can be called, save
        types) in a [`StaticFunction`][]. If all others are arrays, `jax.jit`, `jax.vmap`,
        `jax.grad` and `jax.lax.scan` take it; [`plain_jax_problems`][] says what is in the way.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> mlp = ec.wrap_functions(ec.nn.MLP(2, 2, 8, 1, key=jax.random.key(0)))
        >>> def step(carry, _):
        ...     mlp, x = carry
        ...     return (mlp, mlp(x)), None
        >>> (_, x), _ = jax.lax.scan(step, (mlp, jnp.ones(2)), length=5)
        >>> x.shape
        (2,)
    """
    return jax.tree.map(lambda x: StaticFunction(x) if _is_function(x) else x, tree)


def unwrap_functions(tree: PyTree) -> PyTree:
    """Undoes [`wrap_functions`][].

    Args:
        tree: any PyTree.

    Returns:
        The same tree, with the function itself in place of each [`StaticFunction`][].

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> ec.unwrap_functions([ec.StaticFunction(jnp.square), 1])[0] is jnp.square
        True
    """
    return jax.tree.map(
        lambda x: x.function if isinstance(x, StaticFunction) else x,
        tree,
        is_leaf=lambda x: isinstance(x, StaticFunction),
    )


def plain_jax_problems(tree: PyTree) -> dict[str, str]:
    """Says what in a tree keeps it from going through plain JAX as it is.

    Args:
        tree: any PyTree, such as a model.

    Returns:
        For the path of each such leaf, what it is and what can be done. Empty if all leaves are
        arrays, of which the JAX transformations make others of the same kind.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> for path, problem in ec.plain_jax_problems({"f": jnp.square, "on": True}).items():
        ...     print(path, "is", problem)
        ['f'] is <wrapped function square>, a function: use `ecliptic.wrap_functions`
        ['on'] is True, a Python `bool`: JAX traces it as an array, ...
    """
    problems = {}
    for path, leaf in tree_flatten_with_path(tree)[0]:
        problem = _problem(leaf)
        if problem:
            problems[format_path(path) or "."] = problem
    return problems


def _problem(leaf: Any) -> str | None:
    if is_array(leaf):
        try:
            jax.typeof(leaf)
        except TypeError:
            return f"an array of dtype {leaf.dtype}, which JAX does not have"
        return None
    cls = type(leaf).__qualname__
    shown = tree_pformat(leaf)
    if _is_function(leaf):
        return f"{shown}, a function: use `ecliptic.wrap_functions`"
    if isinstance(leaf, bool | int | float | complex):
        return (
            f"{shown}, a Python `{cls}`: JAX traces it as an array, with which Python cannot "
            f"decide anything, and which has no axis to map. Make it a static field, or an array"
        )
    return f"{shown}, of type `{cls}`: make it a static field, or wrap it in `ecliptic.Static`"
