"""`filter_jit`: `jax.jit` over any PyTree.

Array leaves are traced; everything else is part of what is compiled. A call goes like this:

1. Arguments are flattened, and the leaves' exact types listed.
2. The last few programs of this function are asked whether tree, types and static leaves are
   theirs. Static leaves are compared by identity first; that is all there is to do in a loop.
3. The arrays go to a `jax.jit` made for these static parts. It returns the user's output:
   the output's structure and static leaves are the metadata of the PyTree node that the traced
   function returned, so JAX keeps them with each compiled program.

Nothing waits for the device. Where step 2 finds nothing, a table is asked by hash, and failing
that, a new program is made.
"""

import dataclasses
import functools
import operator
import threading
import types
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, overload

import jax
from jax.tree_util import tree_flatten

from ecliptic.errors import ArgumentError, ArgumentTypeError
from ecliptic.module import Module, bind, field, looks_like_wrapped
from ecliptic.transform._collect import write_collector
from ecliptic.transform._static import explain, same_static, static_key
from ecliptic.tree import array_type, is_array

_MISSING: Any = object()

_P = ParamSpec("_P")
_T = TypeVar("_T")

Donate = Literal["all", "all-except-first", "warn", "warn-except-first", "none"]

_DONATE_MODES = ("all", "all-except-first", "warn", "warn-except-first", "none")

# Options of `jax.jit` that filtering replaces, with what to do instead.
_REPLACED = {
    "static_argnums": "every leaf that is no array is static already",
    "static_argnames": "every leaf that is no array is static already",
    "donate_argnums": "use `donate=`",
    "donate_argnames": "use `donate=`",
}

# How many programs one function keeps. A function that is given a new static value at each call
# (a fresh lambda) compiles each time; it shall not also hold on to all of them.
_MAX_PROGRAMS = 2048

# A program that is called this often is called in a loop, and a collector pays.
_CALLS_BEFORE_COLLECTOR = 4

# How many recently used programs are compared without hashing.
_MAX_RECENT = 4


class _Output:
    """An output with leaves that are no arrays, as the traced function returns it to `jax.jit`.

    A node of its own around the arrays. What it takes to rebuild the user's output is its
    metadata, so JAX keeps it with the program. Metadata is compared by identity.
    """

    __slots__ = ("arrays", "positions", "template", "treedef")

    def __init__(self, arrays: Any, treedef: Any, template: list[Any], positions: list[int]):
        self.arrays = arrays
        self.treedef = treedef
        self.template = template
        self.positions = positions

    def rebuild(self) -> Any:
        """The user's output."""
        leaves = self.template.copy()
        for position, array in zip(self.positions, self.arrays, strict=True):
            leaves[position] = array
        return self.treedef.unflatten(leaves)


def _pack_output(out: Any) -> Any:
    leaves, treedef = tree_flatten(out)
    positions = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
    if len(positions) == len(leaves):
        return out
    arrays = [leaves[i] for i in positions]
    template = [None if is_array(leaf) else leaf for leaf in leaves]
    return _Output(arrays, treedef, template, positions)


class _ByIdentity:
    """Metadata of an `_Output`."""

    __slots__ = ("parts",)

    def __init__(self, *parts: Any) -> None:
        self.parts = parts


jax.tree_util.register_pytree_node(
    _Output,
    lambda output: (output.arrays, _ByIdentity(output.treedef, output.template, output.positions)),
    lambda structure, arrays: _Output(arrays, *structure.parts),
)


def _picker(positions: list[int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """A function that picks these positions of a list, as a tuple, at the speed of C."""
    if not positions:
        return lambda leaves: ()
    if len(positions) == 1:
        only = positions[0]
        return lambda leaves: (leaves[only],)
    return operator.itemgetter(*positions)


class _Silence:
    """Keeps JAX from warning of donated arrays that it had no use for.

    It warns while it lowers, which comes right after a trace. So the traced function begins the
    silence and the end of the call ends it; a call that traces nothing pays for one check.
    """

    __slots__ = ("begun",)

    def __init__(self) -> None:
        self.begun: list[Any] = []

    def begin(self) -> None:
        filters = warnings.catch_warnings()
        filters.__enter__()
        warnings.filterwarnings("ignore", message="Some donated buffers were not usable")
        self.begun.append(filters)

    def around(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        def run(given: Any, kept: Any) -> Any:
            try:
                return compiled(given, kept)
            finally:
                while self.begun:
                    self.begun.pop().__exit__(None, None, None)

        return run


class _Program:
    """One compiled function: for one tree, one choice of traced leaves, one set of static leaves.

    `jax.jit` below it tells shapes and dtypes apart.
    """

    __slots__ = (
        "calls", "collect", "donated", "lock", "name", "pick_donated", "pick_kept", "pick_static",
        "run", "static", "traced", "treedef", "types",
    )  # fmt: skip

    def __init__(
        self, function: Callable[[], Any], leaves: list[Any], treedef: Any, options: "_Options"
    ) -> None:
        is_traced = [array_type(type(leaf)) for leaf in leaves]
        traced = [i for i, yes in enumerate(is_traced) if yes]
        held = [i for i, yes in enumerate(is_traced) if not yes]
        donated = set(options.donated(traced, treedef))
        given = [i for i in traced if i in donated]
        kept = [i for i in traced if i not in donated]
        order = given + kept + held
        self.name = options.name
        self.treedef = treedef
        self.types = list(map(type, leaves))
        self.traced = traced
        self.donated = donated
        self.pick_donated = _picker(given)
        self.pick_kept = _picker(kept)
        self.pick_static = _picker(held)
        self.static = self.pick_static(leaves)
        self.lock: threading.Lock | None = threading.Lock()
        self.calls = 0
        self.collect: Callable[..., Any] | None = None
        static = self.static
        silence = _Silence() if options.silent else None

        def program(given_arrays: Any, kept_arrays: Any) -> Any:
            if silence is not None:
                silence.begin()
            merged = [None] * len(order)
            ordered = (*given_arrays, *kept_arrays, *static)
            for position, leaf in zip(order, ordered, strict=True):
                merged[position] = leaf
            args, kwargs = treedef.unflatten(merged)
            fun = function()
            if fun is None:
                fun, *args = args
            return _pack_output(fun(*args, **kwargs))

        # (The name is what profiles and compiler dumps show.)
        program.__name__ = program.__qualname__ = options.name
        donate = {} if options.donate == "none" else {"donate_argnums": 0}
        compiled = jax.jit(program, **donate, **dict(options.jitkwargs))
        self.run: Callable[..., Any] = compiled if silence is None else silence.around(compiled)

    def matches(self, leaves: list[Any], leaf_types: list[type], treedef: Any) -> bool:
        """Whether these arguments are for this program, as far as can be told without hashing."""
        if self.types != leaf_types:
            return False
        try:
            if self.treedef != treedef:
                return False
        except Exception:
            # A static field holds something that cannot be compared, such as an array. Hashing
            # comes next, and says which.
            return False
        static = self.pick_static(leaves)
        return all(map(operator.is_, static, self.static)) or all(
            map(same_static, static, self.static)
        )

    def call(self, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the program the general way, with flattened arguments."""
        given, kept = self.pick_donated(leaves), self.pick_kept(leaves)
        self.calls += 1
        if self.calls == _CALLS_BEFORE_COLLECTOR:
            positions = [i in self.donated for i in self.traced]
            self.collect = write_collector(
                args, kwargs, len(positions), positions.__getitem__, self.name
            )
        lock = self.lock
        if lock is None or getattr(_tracing, "now", False):
            return self.run(given, kept)
        # Threads that call at the same time wait for the first to trace. A thread that is tracing
        # already does not wait for a second lock, so no two wait for each other.
        with lock:
            _tracing.now = True
            try:
                return self.run(given, kept)
            finally:
                _tracing.now = False
                self.lock = None


_tracing = threading.local()


@dataclasses.dataclass(frozen=True, slots=True)
class _Options:
    """How a function is compiled."""

    name: str
    donate: Donate
    jitkwargs: tuple[tuple[str, Any], ...]

    @property
    def silent(self) -> bool:
        """Whether donations that JAX cannot use go without a warning."""
        return self.donate.startswith("all")

    def donated(self, traced: list[int], treedef: Any) -> list[int]:
        """Which of the traced leaves are donated."""
        if self.donate == "none":
            return []
        if not self.donate.endswith("except-first"):
            return traced
        arguments = treedef.children()[0].children()
        first = arguments[0].num_leaves if arguments else 0
        return [i for i in traced if i >= first]


class _Table:
    """The programs of one function."""

    __slots__ = ("function", "lock", "options", "programs")

    def __init__(self, function: Callable[[], Any], options: _Options) -> None:
        self.function = function
        self.options = options
        self.programs: OrderedDict[Any, _Program] = OrderedDict()
        self.lock = threading.Lock()

    def find(self, leaves: list[Any], treedef: Any) -> _Program:
        """The program for these arguments; a new one if there is none."""
        traced = [array_type(type(leaf)) for leaf in leaves]
        static = tuple(static_key(x) for x, yes in zip(leaves, traced, strict=True) if not yes)
        key = (treedef, tuple(traced), static)
        with self.lock:
            try:
                program = self.programs.get(key)
            except Exception as error:
                raise explain(treedef, leaves, error) from error
            if program is None:
                program = _Program(self.function, leaves, treedef, self.options)
                self.programs[key] = program
                if len(self.programs) > _MAX_PROGRAMS:
                    self.programs.popitem(last=False)
            else:
                self.programs.move_to_end(key)
                program.types = list(map(type, leaves))
        return program


_tables: weakref.WeakKeyDictionary[Any, dict[_Options, _Table]] = weakref.WeakKeyDictionary()
_tables_lock = threading.Lock()


def _table_of(function: Any, options: _Options) -> _Table:
    """The table of a function. `filter_jit(f)` written twice is one function compiled once.

    `function` is None for a callable PyTree, which is an argument like any other.
    """
    try:
        hash(options)
        shared = type(function) is types.FunctionType
    except TypeError:
        shared = False
    if not shared:
        return _Table(lambda: function, options)
    with _tables_lock:
        of_function = _tables.setdefault(function, {})
        if options not in of_function:
            # The table must not keep the function alive: it lives as long as the function does.
            of_function[options] = _Table(weakref.ref(function), options)
        return of_function[options]


class _Dispatch:
    """What a wrapper remembers between calls. All are equal: it is no part of the tree."""

    __slots__ = ("recent", "table")

    def __init__(self, table: _Table) -> None:
        self.table = table
        self.recent: tuple[_Program, ...] = ()

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the general way: flatten, compare or look up."""
        leaves, treedef = tree_flatten((args, kwargs))
        leaf_types = list(map(type, leaves))
        for program in self.recent:
            if program.matches(leaves, leaf_types, treedef):
                return program.call(leaves, args, kwargs)
        program = self.table.find(leaves, treedef)
        others = [p for p in self.recent if p is not program]
        self.recent = (program, *others[: _MAX_RECENT - 1])
        return program.call(leaves, args, kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Dispatch)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "..."


class _JitWrapper(Module):
    """What `filter_jit` returns."""

    # One of the two is None. A function is structure; a callable PyTree has leaves of its own.
    _function: Any = field(static=True, repr=False)
    _tree: Any = field(repr=False)
    _dispatch: _Dispatch = field(static=True, repr=False)

    def __init__(self, fun: Any, donate: Donate, jitkwargs: dict[str, Any]) -> None:
        leaf = jax.tree_util.all_leaves([fun])
        self._function = fun if leaf else None
        self._tree = None if leaf else fun
        name = getattr(fun, "__name__", type(fun).__name__)
        options = _Options(name, donate, tuple(sorted(jitkwargs.items())))
        self._dispatch = _Dispatch(_table_of(self._function, options))

    @property
    def __wrapped__(self) -> Any:
        return self._function if self._tree is None else self._tree

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else bind(self, instance)

    def __repr__(self) -> str:
        return f"filter_jit({self.__wrapped__!r})"


def _call(self: _JitWrapper, /, *args: Any, **kwargs: Any) -> Any:
    dispatch = self._dispatch
    if self._tree is not None:
        args = (self._tree, *args)
    for program in dispatch.recent:
        if program.collect is not None:
            arrays = program.collect(args, kwargs)
            if arrays is not None:
                out = program.run(*arrays)
                break
    else:
        out = dispatch.call(args, kwargs)
    return out.rebuild() if type(out) is _Output else out


# Past the metaclass: a call of a compiled function shall not first make a bound method.
type.__setattr__(_JitWrapper, "__call__", _call)
looks_like_wrapped(_JitWrapper)


@overload
def filter_jit(*, donate: Donate = "none", **jitkwargs: Any) -> Callable[
    [Callable[_P, _T]], Callable[_P, _T]
]: ...  # fmt: skip
@overload
def filter_jit(
    fun: Callable[_P, _T], *, donate: Donate = "none", **jitkwargs: Any
) -> Callable[_P, _T]: ...
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
            same, with JAX's warning where a buffer is of no use; `"none"`, the default: none. A
            donated array can't be used again.
        **jitkwargs: further options of `jax.jit`, such as `inline`, `keep_unused` and
            `compiler_options`.

    Returns:
        A Module that is called as `fun` is. It has the name, docstring and signature of `fun`.

    Raises:
        ArgumentTypeError: if `fun` cannot be called.
        ArgumentError: if `donate` is no mode, or an option of `jax.jit` is given that
            filtering replaces.
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
    if not callable(fun):
        raise ArgumentTypeError(
            f"`filter_jit` compiles a callable; got {fun!r} of type `{type(fun).__qualname__}`."
        )
    if donate not in _DONATE_MODES:
        raise ArgumentError(
            f"`filter_jit(donate=...)` is one of {', '.join(map(repr, _DONATE_MODES))}; "
            f"got {donate!r}."
        )
    for option, instead in _REPLACED.items():
        if option in jitkwargs:
            raise ArgumentError(f"`filter_jit` does not take `{option}`: {instead}.")
    return _JitWrapper(fun, donate, jitkwargs)
