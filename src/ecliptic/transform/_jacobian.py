"""`filter_jacfwd`, `filter_jacrev` and `filter_hessian`: whole derivatives over any PyTree."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, overload

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten, tree_map

from ecliptic.errors import ArgumentTypeError
from ecliptic.module import field, looks_like_wrapped
from ecliptic.transform._blocks import by_columns, by_rows, rows_of
from ecliptic.transform._grad import report_empty
from ecliptic.transform._jvp import split_aux
from ecliptic.transform._returned import Returned, filled
from ecliptic.transform._targets import Call, Place, as_places, picked, with_is_leaf
from ecliptic.transform._vjp import check_has_aux
from ecliptic.transform._wrapper import AbstractWrapper, check_callable, name_of
from ecliptic.tree import is_array_like, is_inexact_array, leaves_with_paths

_P = ParamSpec("_P")

_unset: Any = object()


class _Options(NamedTuple):
    """What to differentiate, and how."""

    transform: str
    forward: bool
    has_aux: bool
    holomorphic: bool
    places: tuple[Place, ...]
    single: bool


class _Jacobian(AbstractWrapper):
    """A function that returns its derivative."""

    _options: _Options = field(static=True)
    _wrt: Any

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        options = self._options
        call = Call(self._fun, args, kwargs)
        keys = [call.find(place) for place in options.places]
        parts = [call.get(key) for key in keys]
        leaves, treedef = tree_flatten(parts)
        wanted = [True] * len(leaves)
        if self._wrt is not None:
            wanted = picked(self._wrt, parts[0] if options.single else tuple(parts))
        positions = [i for i, leaf in enumerate(leaves) if wanted[i] and is_inexact_array(leaf)]
        if not positions:
            report_empty(call, keys, parts, self._wrt)
        self._check_arguments({call.name(k): p for k, p in zip(keys, parts, strict=True)}, wanted)
        out, auxiliary = Returned(), Returned()

        def on_flat_list(arrays: list[Any]) -> Any:
            changed = treedef.unflatten(filled(leaves, positions, arrays))
            value = call.run(dict(zip(keys, changed, strict=True)))
            value, aux = split_aux(value, self._fun) if options.has_aux else (value, None)
            value = tree_map(_as_array, value)
            self._check_output(value)
            return out.put(value, is_inexact_array)[0], auxiliary.put(aux, lambda _: False)[1]

        def assemble(row: list[Any]) -> Any:
            trees = treedef.unflatten(filled([None] * len(leaves), positions, row))
            return trees[0] if options.single else tuple(trees)

        inputs = [leaves[i] for i in positions]
        blocks, of_aux = (by_columns if options.forward else by_rows)(on_flat_list, inputs)
        rows = [None if row is None else assemble(row) for row in rows_of(out, blocks, inputs)]
        jacobian = out.treedef.unflatten(rows)
        return (jacobian, auxiliary.get((), of_aux)) if options.has_aux else jacobian

    def _check_arguments(self, parts: dict[str, Any], wanted: list[bool]) -> None:
        options = self._options
        if not options.forward and not options.holomorphic:
            return
        named = [
            pair for name, part in parts.items() for pair in leaves_with_paths(part, root=name)
        ]
        for (path, leaf), wants in zip(named, wanted, strict=True):
            if wants and is_inexact_array(leaf):
                self._check_complex(path, leaf, "its argument")

    def _check_output(self, out: Any) -> None:
        options = self._options
        if options.forward and not options.holomorphic:
            return
        for path, leaf in leaves_with_paths(out, root="out"):
            if is_inexact_array(leaf):
                self._check_complex(path, leaf, f"the output of `{name_of(self._fun)}`")

    def _check_complex(self, path: str, leaf: Any, what: str) -> None:
        options = self._options
        if jnp.issubdtype(leaf.dtype, jnp.complexfloating) == options.holomorphic:
            return
        rule, way = (
            ("`holomorphic=True` is for complex arrays", "Cast it, or leave out the option")
            if options.holomorphic
            else (
                f"`{options.transform}` needs real numbers there",
                "For a holomorphic function pass `holomorphic=True`; for any other, use "
                + ("`filter_jvp`" if options.forward else "`filter_vjp`"),
            )
        )
        raise ArgumentTypeError(f"{rule}, but {what} at `{path}` has dtype {leaf.dtype}. {way}.")


looks_like_wrapped(_Jacobian)


def _as_array(leaf: Any) -> Any:
    """Numbers of Python and NumPy have zeros for a derivative, as arrays do."""
    if isinstance(leaf, jax.Array) or not is_array_like(leaf):
        return leaf
    return jnp.asarray(leaf)


class _Choice(NamedTuple):
    """The options that all three have in common, as the user gave them."""

    argnums: Any
    argnames: Any
    wrt: Any
    is_leaf: Callable[[Any], bool] | None
    holomorphic: bool


def _build(transform: str, fun: Any, has_aux: Any, kinds: tuple[bool, ...], choice: _Choice) -> Any:
    """Wraps a function in one Jacobian for each of `kinds`, which say whether it is forward."""
    check_has_aux(has_aux)
    places, single = as_places(choice.argnums, choice.argnames)
    wrt = with_is_leaf(choice.wrt, choice.is_leaf, transform)

    def wrap(fun: Any) -> Any:
        check_callable(fun, transform)
        for forward in kinds:
            options = _Options(transform, forward, has_aux, choice.holomorphic, places, single)
            fun = _Jacobian(fun, options, wrt)
        return fun

    return wrap if fun is _unset else wrap(fun)


@overload
def filter_jacfwd(
    *,
    has_aux: bool = False,
    argnums: Any = None,
    argnames: Any = None,
    wrt: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
    holomorphic: bool = False,
) -> Callable[[Callable[_P, Any]], Callable[_P, Any]]: ...


@overload
def filter_jacfwd(
    fun: Callable[_P, Any],
    has_aux: bool = False,
    *,
    argnums: Any = None,
    argnames: Any = None,
    wrt: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
    holomorphic: bool = False,
) -> Callable[_P, Any]: ...


def filter_jacfwd(
    fun: Any = _unset,
    has_aux: bool = False,
    *,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    wrt: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
    holomorphic: bool = False,
) -> Any:
    """Makes a function return its Jacobian, computed in forward mode.

    As `jax.jacfwd`, for any PyTree: the derivative of all numbers in the output with respect to
    all floating-point arrays of the first argument. Forward mode is the better choice where the
    argument is not larger than the output.

    Args:
        fun: the function. Without it, the result is a decorator.
        has_aux: whether `fun` returns a pair, of what is differentiated and anything else.
            Default: false.
        argnums: the argument to differentiate, by position; or a sequence of them, for which
            there is a tuple in place of the argument. Default: the first argument.
        argnames: the same by name.
        wrt: which part of the argument. Either a function that picks a node of it or a sequence
            of nodes, as `where` of `tree_at`; or a filter specification, as for `partition`. With
            a sequence of arguments, it is about their tuple. Default: all of it.
        is_leaf: with a specification as `wrt`, which nodes it is asked about as a whole.
        holomorphic: whether `fun` is a holomorphic function, of complex arrays to complex
            arrays. Default: false, so the argument must be real.

    Returns:
        A function, which is a Module, of the same arguments. It returns a tree like the output.
        In the place of each number or array there is a tree like the argument; in the place of
        each array of that one is the derivative, of the shape of the output followed by that of
        the argument. There is None for what is not differentiated. With `has_aux`, it returns
        `(jacobian, aux)`.

    Raises:
        ArgumentTypeError: if an option has a wrong type; from the result, if the argument is
            missing, or complex without `holomorphic`.
        ArgumentError: if an option has a wrong value.

    Warns:
        EclipticWarning: once for a function and argument, if there is nothing to differentiate.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> def apply(model, x):
        ...     return {"out": model["activation"](model["weight"] * x), "name": "apply"}
        >>> model = {"activation": jnp.square, "weight": jnp.array(3.0)}
        >>> jacobian = ec.filter_jacfwd(apply)(model, jnp.array([1.0, 2.0]))
        >>> jacobian["out"]["weight"], jacobian["out"]["activation"], jacobian["name"]
        (Array([ 6., 24.], dtype=float32), None, None)
    """
    choice = _Choice(argnums, argnames, wrt, is_leaf, holomorphic)
    return _build("filter_jacfwd", fun, has_aux, (True,), choice)


@overload
def filter_jacrev(
    *,
    has_aux: bool = False,
    argnums: Any = None,
    argnames: Any = None,
    wrt: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
    holomorphic: bool = False,
) -> Callable[[Callable[_P, Any]], Callable[_P, Any]]: ...


@overload
def filter_jacrev(
    fun: Callable[_P, Any],
    has_aux: bool = False,
    *,
    argnums: Any = None,
    argnames: Any = None,
    wrt: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
    holomorphic: bool = False,
) -> Callable[_P, Any]: ...


def filter_jacrev(
    fun: Any = _unset,
    has_aux: bool = False,
    *,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    wrt: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
    holomorphic: bool = False,
) -> Any:
    """Makes a function return its Jacobian, computed in reverse mode.

    As `jax.jacrev`, for any PyTree: the derivative of all numbers in the output with respect to
    all floating-point arrays of the first argument. Reverse mode is the better choice where the
    output is smaller than the argument.

    Args:
        fun: the function. Without it, the result is a decorator.
        has_aux: whether `fun` returns a pair, of what is differentiated and anything else.
            Default: false.
        argnums: as for [`filter_jacfwd`][].
        argnames: as for [`filter_jacfwd`][].
        wrt: as for [`filter_jacfwd`][].
        is_leaf: with a specification as `wrt`, which nodes it is asked about as a whole.
        holomorphic: whether `fun` is a holomorphic function, of complex arrays to complex
            arrays. Default: false, so the output must be real.

    Returns:
        A function as [`filter_jacfwd`][] returns it.

    Raises:
        ArgumentTypeError: if an option has a wrong type; from the result, if the argument is
            missing, or the output complex without `holomorphic`.
        ArgumentError: if an option has a wrong value.

    Warns:
        EclipticWarning: once for a function and argument, if there is nothing to differentiate.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> def norm(model):
        ...     return jnp.sum(model["weight"] ** 2)
        >>> ec.filter_jacrev(norm)({"name": "line", "weight": jnp.array([1.0, 2.0])})
        {'name': None, 'weight': Array([2., 4.], dtype=float32)}
    """
    choice = _Choice(argnums, argnames, wrt, is_leaf, holomorphic)
    return _build("filter_jacrev", fun, has_aux, (False,), choice)


@overload
def filter_hessian(
    *,
    has_aux: bool = False,
    argnums: Any = None,
    argnames: Any = None,
    wrt: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
    holomorphic: bool = False,
) -> Callable[[Callable[_P, Any]], Callable[_P, Any]]: ...


@overload
def filter_hessian(
    fun: Callable[_P, Any],
    has_aux: bool = False,
    *,
    argnums: Any = None,
    argnames: Any = None,
    wrt: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
    holomorphic: bool = False,
) -> Callable[_P, Any]: ...


def filter_hessian(
    fun: Any = _unset,
    has_aux: bool = False,
    *,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    wrt: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
    holomorphic: bool = False,
) -> Any:
    """Makes a function return its Hessian: the Jacobian of its Jacobian.

    As `jax.hessian`, for any PyTree: the second derivatives of all numbers in the output with
    respect to all floating-point arrays of the first argument. It is forward over reverse mode:
    `filter_jacfwd(filter_jacrev(fun))`.

    Args:
        fun: the function. Without it, the result is a decorator.
        has_aux: whether `fun` returns a pair, of what is differentiated and anything else.
            Default: false.
        argnums: as for [`filter_jacfwd`][].
        argnames: as for [`filter_jacfwd`][].
        wrt: as for [`filter_jacfwd`][].
        is_leaf: with a specification as `wrt`, which nodes it is asked about as a whole.
        holomorphic: whether `fun` is a holomorphic function, of complex arrays to complex
            arrays. Default: false, so argument and output must be real.

    Returns:
        A function, which is a Module, of the same arguments. It returns a tree like the output;
        in the place of each number or array there is a tree like the argument, and in the place
        of each array of that one another tree like the argument. With `has_aux`, it returns
        `(hessian, aux)`.

    Raises:
        ArgumentTypeError: if an option has a wrong type; from the result, if the argument is
            missing, or something is complex without `holomorphic`.
        ArgumentError: if an option has a wrong value.

    Warns:
        EclipticWarning: once for a function and argument, if there is nothing to differentiate.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> def energy(model):
        ...     return model["stiffness"] * model["position"] ** 2
        >>> model = {"position": jnp.array(3.0), "stiffness": jnp.array(2.0)}
        >>> hessian = ec.filter_hessian(energy)(model)
        >>> float(hessian["position"]["position"]), float(hessian["position"]["stiffness"])
        (4.0, 6.0)
    """
    choice = _Choice(argnums, argnames, wrt, is_leaf, holomorphic)
    return _build("filter_hessian", fun, has_aux, (False, True), choice)
