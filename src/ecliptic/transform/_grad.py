"""`filter_grad` and `filter_value_and_grad`: gradients with respect to parts of any PyTree.

The trees that are differentiated are flattened once. Their floating-point arrays go to
`jax.value_and_grad` as one flat list; all other leaves stay in the closure, and have None in the
gradient. So do the leaves that `wrt=` leaves out.
"""

import inspect
import sys
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten, tree_leaves

from ecliptic.errors import ArgumentError, ArgumentTypeError, EclipticWarning
from ecliptic.module import Static, looks_like_wrapped
from ecliptic.transform._targets import Call, Key, Place, as_places, picked, with_is_leaf
from ecliptic.transform._wrapper import AbstractWrapper, check_callable, name_of
from ecliptic.tree import is_array, is_array_like, is_inexact_array, leaves_with_paths
from ecliptic.tree._passage import Passage

_P = ParamSpec("_P")
_T = TypeVar("_T")

_unset: Any = object()

_jax_options = frozenset(inspect.signature(jax.value_and_grad).parameters) - {"fun"}

# Functions and arguments whose empty gradient was reported: it is done once.
_reported: set[Hashable] = set()


class _Options(NamedTuple):
    """What to differentiate, and how."""

    has_aux: bool
    places: tuple[Place, ...]
    single: bool
    wrt: Any
    jaxkwargs: dict[str, Any]


class _Aux:
    """The auxiliary output of one call: its arrays go through JAX, the rest waits here."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.treedef: Any = None

    def put(self, aux: Any) -> list[Any]:
        """Keeps what is no array, and returns what is."""
        leaves, self.treedef = tree_flatten(aux)
        arrays = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
        # Nothing of the trace may stay behind.
        self.leaves = [_traced if isinstance(leaf, jax.Array) else leaf for leaf in leaves]
        return arrays

    def get(self, arrays: Sequence[Any]) -> Any:
        """The auxiliary output, with these arrays in it."""
        rest = iter(arrays)
        return self.treedef.unflatten([next(rest) if x is _traced else x for x in self.leaves])


_traced: Any = object()


class AbstractGradient(AbstractWrapper):
    """A function together with its gradient."""

    _options: Static[_Options]

    def _differentiate(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value, the auxiliary output and the gradient."""
        options, fun = self._options.value, self._fun
        call = Call(fun, args, kwargs)
        keys = call.find_all(options.places)
        parts = [call.get(key) for key in keys]
        leaves, treedef = tree_flatten(parts)
        positions = [i for i, leaf in enumerate(leaves) if is_inexact_array(leaf)]
        if options.wrt is not None:
            wanted = picked(options.wrt, parts[0] if options.single else tuple(parts))
            positions = [i for i in positions if wanted[i]]
        _check_differentiable(call, keys, parts, positions, options)
        aux = _Aux()
        passage = Passage()

        def on_flat_list(arrays: list[Any]) -> Any:
            filled = leaves.copy()
            for i, array in zip(positions, arrays, strict=True):
                filled[i] = array
            changed = passage.unflatten(treedef, filled)
            out = call.run(dict(zip(keys, changed, strict=True)))
            if not options.has_aux:
                return _as_loss(out, fun, has_aux=False), []
            loss, rest = _split_aux(out, fun)
            return _as_loss(loss, fun, has_aux=True), aux.put(rest)

        differentiated = jax.value_and_grad(on_flat_list, has_aux=True, **options.jaxkwargs)
        (value, traced), slopes = differentiated([leaves[i] for i in positions])
        passage.finish()
        filled: list[Any] = [None] * len(leaves)
        for i, slope in zip(positions, slopes, strict=True):
            filled[i] = slope
        gradients = treedef.unflatten(filled)
        gradient = gradients[0] if options.single else tuple(gradients)
        return value, aux.get(traced) if options.has_aux else None, gradient


class _ValueAndGrad(AbstractGradient):
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        value, aux, gradient = self._differentiate(args, kwargs)
        return ((value, aux) if self._options.value.has_aux else value), gradient


class _Grad(AbstractGradient):
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        _, aux, gradient = self._differentiate(args, kwargs)
        return (gradient, aux) if self._options.value.has_aux else gradient


looks_like_wrapped(_ValueAndGrad)
looks_like_wrapped(_Grad)


def _split_aux(out: Any, fun: Any) -> Any:
    if isinstance(out, tuple | list) and len(out) == 2:
        return out
    raise ArgumentTypeError(
        f"With `has_aux=True` the function must return a pair: the value to differentiate, and "
        f"anything else. `{name_of(fun)}` returned {_describe(out)}."
    )


def _as_loss(out: Any, fun: Any, *, has_aux: bool) -> Any:
    """`out` if it can be differentiated."""
    if is_array_like(out) and not is_array(out) and hasattr(out, "__jax_array__"):
        out = out.__jax_array__()
    if is_array_like(out):
        if jnp.shape(out) == ():
            return out
        hint = (
            "Reduce it, for instance with `.mean()` or `.sum()`"
            if jnp.size(out) != 1
            else "Take the one element, for instance with `.squeeze()`"
        ) + "; for the derivative of each element, use a Jacobian."
    elif isinstance(out, tuple | list) and len(out) == 2 and not has_aux:
        hint = "Pass `has_aux=True` to return something besides the value."
    else:
        hint = "Return the value to differentiate."
    raise ArgumentTypeError(
        f"Gradient only defined for scalar-output functions, but `{name_of(fun)}` returned "
        f"{_describe(out)}. {hint}"
    )


def _describe(value: Any) -> str:
    if is_array(value):
        return f"an array of shape {tuple(value.shape)} and dtype {value.dtype}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of length {len(value)}"
    return "None" if value is None else f"an object of type `{type(value).__qualname__}`"


def _check_differentiable(
    call: Call, keys: list[Key], parts: list[Any], positions: list[int], options: _Options
) -> None:
    """Reports an empty gradient, and refuses real leaves in a holomorphic one."""
    if not positions:
        report_empty(call, keys, parts, options.wrt)
    elif len(keys) > 1 and options.wrt is None:
        for key, part in zip(keys, parts, strict=True):
            if not any(map(is_inexact_array, tree_leaves(part))):
                report_empty(call, [key], [part], None)
    if options.jaxkwargs.get("holomorphic"):
        named = _leaves(call, keys, parts)
        for path, leaf in (named[i] for i in positions):
            if not jnp.issubdtype(leaf.dtype, jnp.complexfloating):
                raise ArgumentTypeError(
                    f"`holomorphic=True` differentiates complex arrays, but `{path}` has dtype "
                    f"{leaf.dtype}. Cast it to a complex dtype, or leave it out with `wrt=`."
                )


def _leaves(call: Call, keys: list[Key], parts: list[Any]) -> list[tuple[str, Any]]:
    return [
        pair
        for key, part in zip(keys, parts, strict=True)
        for pair in leaves_with_paths(part, root=call.name(key))
    ]


def report_empty(call: Call, keys: list[Key], parts: list[Any], wrt: Any) -> None:
    """Warns, once for each function, that there is nothing to differentiate, and says why."""
    name = name_of(call.fun)
    which = " and ".join(f"`{call.name(key)}`" for key in keys)
    why = _why_empty(_leaves(call, keys, parts), wrt)
    mark = (getattr(call.fun, "__module__", None), name, which, why)
    if mark in _reported:
        return
    _reported.add(mark)
    warnings.warn(
        f"The gradient of `{name}` with respect to {which} is empty: {why}",
        EclipticWarning,
        stacklevel=_level_of_caller(),
    )


def _level_of_caller() -> int:
    """The `stacklevel` of the nearest frame outside the library, for `warnings.warn` above it."""
    level, frame = 1, sys._getframe(1)
    inside = ("ecliptic.", "jax.")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(inside):
        level, frame = level + 1, frame.f_back
    return level


_SHOWN = 3


def _why_empty(named: list[tuple[str, Any]], wrt: Any) -> str:
    trainable = [path for path, leaf in named if is_inexact_array(leaf)]
    if trainable and wrt is not None:
        return f"`wrt` picks none of its floating-point arrays, which are {_listed(trainable)}."
    numbers = [path for path, leaf in named if isinstance(leaf, float | complex)]
    if numbers:
        return (
            f"a Python number is no array and never trains, as at {_listed(numbers)}. Make it an "
            f"array, for instance with `jnp.asarray`."
        )
    if not named:
        return "it has no leaves at all."
    kinds = [
        f"{path} ({leaf.dtype} array)" if is_array(leaf) else f"{path} ({type(leaf).__qualname__})"
        for path, leaf in named
    ]
    return (
        f"only arrays of floating-point or complex dtype are differentiated, and its leaves are "
        f"{_listed(kinds)}. Cast integers to floats, make a class a Module for its arrays to be "
        f"seen, or choose another argument with `argnums=`."
    )


def _listed(items: list[str]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(f"`{item}`" for item in items[:_SHOWN]) + more


def _check_options(transform: str, jaxkwargs: dict[str, Any]) -> dict[str, Any]:
    for name in jaxkwargs:
        if name not in _jax_options:
            raise ArgumentTypeError(
                f"`{transform}` got the option `{name}`, which neither it nor `jax.value_and_grad` "
                f"has. Arguments of the function go to the result: `{transform}(fun)(...)`."
            )
    return jaxkwargs


def _build(cls: Any, transform: str, fun: Any, has_aux: bool, gradkwargs: dict[str, Any]) -> Any:
    wrt = with_is_leaf(gradkwargs.pop("wrt", None), gradkwargs.pop("is_leaf", None), transform)
    places, single = as_places(gradkwargs.pop("argnums", None), gradkwargs.pop("argnames", None))
    if not isinstance(has_aux, bool):
        raise ArgumentError(f"`has_aux` must be True or False; got {has_aux!r}.")
    options = _Options(has_aux, places, single, wrt, _check_options(transform, gradkwargs))

    def wrap(fun: Any) -> Any:
        check_callable(fun, transform)
        return cls(fun, Static(options))

    return wrap if fun is _unset else wrap(fun)


@overload
def filter_value_and_grad(
    *, has_aux: bool = False, **gradkwargs: Any
) -> Callable[[Callable[_P, Any]], Callable[_P, tuple[Any, Any]]]: ...


@overload
def filter_value_and_grad(
    fun: Callable[_P, _T], *, has_aux: bool = False, **gradkwargs: Any
) -> Callable[_P, tuple[_T, Any]]: ...


def filter_value_and_grad(fun: Any = _unset, *, has_aux: bool = False, **gradkwargs: Any) -> Any:
    """Makes a function return its value and its gradient.

    As `jax.value_and_grad`, for any PyTree: the gradient is with respect to all floating-point
    (and complex) arrays of the first argument, and has None in place of its other leaves.

    Args:
        fun: the function. It must return a scalar. Without it, the result is a decorator.
        has_aux: whether `fun` returns a pair, of the scalar and anything else. Default: false.
        **gradkwargs: further options, none of which has to be given:

            - `argnums`, `argnames`: the argument to differentiate, by position or by name, or a
              sequence of them, for which the gradient is a tuple. Default: the first argument.
            - `wrt`: which part of the argument. Either a function that picks a node of it or a
              sequence of nodes, as `where` of `tree_at`; or a filter specification, as for
              `partition`. With a sequence of arguments, it is about their tuple.
            - `is_leaf`: with a specification as `wrt`, which nodes it is asked about as a whole.
            - `holomorphic`, and whatever else `jax.value_and_grad` takes.

    Returns:
        A function, which is a Module, of the same arguments. It returns `(value, gradient)`, or
        `((value, aux), gradient)` with `has_aux`.

    Raises:
        ArgumentTypeError: if `fun` returns no scalar, if the argument is missing, or if an
            option has a wrong type.
        ArgumentError: if an option has a wrong value.

    Warns:
        EclipticWarning: once for a function and argument, if the gradient is empty, because the
            argument holds Python numbers or integers only, for instance.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> @ec.filter_value_and_grad
        ... def loss(model, x):
        ...     return jnp.sum(model["activation"](model["weight"] * x))
        >>> value, gradient = loss({"activation": jnp.square, "weight": jnp.array([1.0, 2.0])}, 1.0)
        >>> float(value), gradient
        (5.0, {'activation': None, 'weight': Array([2., 4.], dtype=float32)})
    """
    return _build(_ValueAndGrad, "filter_value_and_grad", fun, has_aux, gradkwargs)


@overload
def filter_grad(
    *, has_aux: bool = False, **gradkwargs: Any
) -> Callable[[Callable[_P, Any]], Callable[_P, Any]]: ...


@overload
def filter_grad(
    fun: Callable[_P, Any], *, has_aux: bool = False, **gradkwargs: Any
) -> Callable[_P, Any]: ...


def filter_grad(fun: Any = _unset, *, has_aux: bool = False, **gradkwargs: Any) -> Any:
    """Makes a function return its gradient.

    As `jax.grad`, for any PyTree: the gradient is with respect to all floating-point (and
    complex) arrays of the first argument, and has None in place of its other leaves.

    Args:
        fun: the function. It must return a scalar. Without it, the result is a decorator.
        has_aux: whether `fun` returns a pair, of the scalar and anything else. Default: false.
        **gradkwargs: `argnums`, `argnames`, `wrt`, `holomorphic`, …: see
            [`filter_value_and_grad`][].

    Returns:
        A function, which is a Module, of the same arguments. It returns the gradient, or
        `(gradient, aux)` with `has_aux`.

    Raises:
        ArgumentTypeError: if `fun` returns no scalar, if the argument is missing, or if an
            option has a wrong type.
        ArgumentError: if an option has a wrong value.

    Warns:
        EclipticWarning: once for a function and argument, if the gradient is empty.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> model = {"weight": jnp.array(3.0), "bias": jnp.array(1.0), "name": "line"}
        >>> def loss(model, x):
        ...     return (model["weight"] * x + model["bias"]) ** 2
        >>> ec.filter_grad(loss, wrt=lambda model: model["weight"])(model, 2.0)
        {'bias': None, 'name': None, 'weight': Array(28., dtype=float32, weak_type=True)}
    """
    return _build(_Grad, "filter_grad", fun, has_aux, gradkwargs)
