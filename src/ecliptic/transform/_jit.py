"""`filter_jit`: `jax.jit` over any PyTree.

Array leaves are traced; everything else is part of what is compiled. What happens at a call is in
`_program.py`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import jax

from ecliptic.errors import ArgumentError
from ecliptic.module import Module, Partial, adopt_module_name, bind, field, looks_like_wrapped
from ecliptic.transform._donation import DonateMode, as_donation
from ecliptic.transform._failure import UnwatchedTraceError
from ecliptic.transform._program import Dispatch, Options, Output, Program
from ecliptic.transform._stages import (
    Exported,
    Lowered,
    Traced,
    export_program,
    with_stand_ins,
)
from ecliptic.transform._table import table_of
from ecliptic.transform._wrapper import check_callable
from ecliptic.tree._passage import use_up_at

_MISSING: Any = object()

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_T = TypeVar("_T")

Donate = DonateMode | str | Sequence[str]

# Options of `jax.jit` that filtering replaces, with what to do instead.
_REPLACED = {
    "static_argnums": "every leaf that is no array is static already",
    "static_argnames": "every leaf that is no array is static already",
    "donate_argnums": "use `donate=`",
    "donate_argnames": "use `donate=`",
}


class JitFunction(Module, Generic[_P, _T]):
    """What `filter_jit` returns: a function that is compiled when it is called.

    A PyTree: its leaves are those of the function, if that is a PyTree itself.
    """

    # One of the two is None. A function is structure; a callable PyTree has leaves of its own.
    _function: Any = field(static=True, repr=False)
    _tree: Any = field(repr=False)
    _dispatch: Dispatch = field(static=True, repr=False)

    def __init__(self, fun: Any, donate: Donate, jitkwargs: dict[str, Any]) -> None:
        adopt_module_name(self, fun)
        leaf = jax.tree_util.all_leaves([fun])
        self._function = fun if leaf else None
        self._tree = None if leaf else fun
        name = getattr(fun, "__name__", type(fun).__name__)
        options = Options(
            name,
            as_donation(donate, fun, bound=0 if leaf else 1),
            jitkwargs.pop("in_shardings", None),
            jitkwargs.pop("out_shardings", None),
            tuple(sorted(jitkwargs.items())),
        )
        self._dispatch = Dispatch(table_of(fun, options, leaf=leaf))

    @property
    def __wrapped__(self) -> Any:
        return self._function if self._tree is None else self._tree

    @property
    def _bound(self) -> tuple[Any, ...]:
        """What comes before the arguments of a call."""
        return () if self._tree is None else (self._tree,)

    if TYPE_CHECKING:

        def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T: ...
        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Self: ...
        @overload
        def __get__(
            self: "JitFunction[Concatenate[Any, _Q], _T]", instance: object, owner: Any = None
        ) -> Callable[_Q, _T]: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        # A bound method holds its function as structure, which a PyTree with arrays is not.
        return bind(self, instance) if self._tree is None else Partial(self, instance)

    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        """Traces the function, without lowering or running it.

        Arrays among the arguments may be given as `jax.ShapeDtypeStruct`, here and in `lower` and
        `export`.
        """
        program, leaves, example = self._find(args, kwargs)
        trace = program.jitted.trace
        if program.silence is not None:
            trace = program.silence.around(trace)
        with program.watching(compiles=False):
            traced = trace(program.pick_donated(leaves), program.pick_kept(leaves))
        return Traced(traced, program, example, self._bound)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Traces and lowers the function; `.compile()` of the result compiles it."""
        return self.trace(*args, **kwargs).lower()

    def export(
        self, /, *args: Any, export_options: dict[str, Any] | None = None, **kwargs: Any
    ) -> Exported:
        """Exports the function as a portable program, for these shapes, dtypes and static parts.

        Args:
            *args: as for a call.
            export_options: options of `jax.export.export`, such as `platforms`.
            **kwargs: as for a call.
        """
        program, leaves, example = self._find(args, kwargs)
        return export_program(program, leaves, example, self._bound, export_options or {})

    def _find(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Program, list[Any], tuple[tuple[Any, ...], dict[str, Any]]]:
        args = (*self._bound, *args)
        leaves, treedef = jax.tree_util.tree_flatten((args, kwargs))
        program = self._dispatch.table.find(with_stand_ins(leaves), treedef)
        return program, leaves, (args, kwargs)

    def __repr__(self) -> str:
        return f"filter_jit({self.__wrapped__!r})"


def _call(self: JitFunction, /, *args: Any, **kwargs: Any) -> Any:
    out: Any
    dispatch = self._dispatch
    if self._tree is not None:
        args = (self._tree, *args)
    for program in dispatch.recent:
        if program.collect is not None:
            arrays = program.collect(args, kwargs)
            if arrays is not None:
                try:
                    out = program.run(*arrays)
                except UnwatchedTraceError:
                    out = UnwatchedTraceError
                if out is UnwatchedTraceError:
                    # (Outside of `except`: an error of the user's function has nothing to do with
                    # this one.)
                    out = program.watched(*arrays)
                if program.used:
                    use_up_at((args, kwargs), program.used)
                break
    else:
        out = dispatch.call(args, kwargs)
    return out.rebuild() if type(out) is Output else out


# Past the metaclass: a call of a compiled function shall not first make a bound method.
type.__setattr__(JitFunction, "__call__", _call)
looks_like_wrapped(JitFunction)


@overload
def filter_jit(
    *, donate: Donate = "none", **jitkwargs: Any
) -> Callable[[Callable[_P, _T]], JitFunction[_P, _T]]: ...
@overload
def filter_jit(
    fun: Callable[_P, _T], *, donate: Donate = "none", **jitkwargs: Any
) -> JitFunction[_P, _T]: ...
def filter_jit(fun: Any = _MISSING, *, donate: Donate = "none", **jitkwargs: Any) -> Any:
    """Compiles a function of any PyTrees: arrays are traced, everything else is static.

    `jax.jit`, without having to say which arguments are static. The function is compiled once for
    each tree structure, each set of static leaves (functions, strings, Python numbers, ...), and
    each set of shapes and dtypes. Arrays of NumPy and of JAX are traced. The output may be any
    PyTree as well; what is no array in it is returned as it was when the function was traced. The
    call returns before the device is done, as a call of `jax.jit` does.

    If `fun` is itself a PyTree (a Module, a bound method of one, another filtered transformation),
    its arrays are traced too, so they are arguments of the program and not constants in it.

    Args:
        fun: the function. Without it, a decorator is returned.
        donate: whose buffers may be reused for the output. `"all"`: those of all arrays in the
            arguments, and in `fun`; `"all-except-first"`: all but those of the first argument (of
            `fun`, if that is a PyTree, as for a method); `"warn"` and `"warn-except-first"`: the
            same, with JAX's warning where a buffer is of no use; `"none"`, the default: none. Or
            names of parameters, such as `"state"` or `("model", "state")`: those of the arrays in
            these arguments, with JAX's warning. A donated array can't be used again.
        **jitkwargs: further options of `jax.jit`, such as `inline`, `keep_unused` and
            `compiler_options`. `in_shardings` is a tree prefix of the tuple of positional
            arguments, `out_shardings` of the output, as for [`filter_shard`][]; None leaves it
            open.

    Returns:
        A Module that is called as `fun` is. It has the name, docstring and signature of `fun`, and
        methods that do one step at a time: `trace`, `lower` (then `compile`), and `export`.

    Raises:
        ArgumentTypeError: if `fun` cannot be called.
        ArgumentError: if `donate` is no mode and names no parameter, or an option of `jax.jit` is
            given that filtering replaces.
        StaticError: at a call, if a static leaf has no hash, or a static field holds an array.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> @ec.filter_jit
        ... def apply(function, x, times):
        ...     for _ in range(times):
        ...         x = function(x)
        ...     return x
        >>> print(apply(jnp.square, jnp.array([1.0, 2.0]), times=2))
        [ 1. 16.]
    """
    if fun is _MISSING:
        return functools.partial(filter_jit, donate=donate, **jitkwargs)
    if isinstance(fun, classmethod | staticmethod):
        return type(fun)(filter_jit(fun.__func__, donate=donate, **jitkwargs))
    check_callable(fun, "filter_jit")
    for option, instead in _REPLACED.items():
        if option in jitkwargs:
            raise ArgumentError(f"`filter_jit` does not take `{option}`: {instead}.")
    return JitFunction(fun, donate, jitkwargs)
