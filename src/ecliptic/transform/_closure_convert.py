"""`filter_closure_convert`: a function as a program, with what it closes over as its leaves."""

import types
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten, tree_flatten_with_path, tree_leaves

from ecliptic import _jax
from ecliptic._jax._constants import without_constants
from ecliptic._jax._varying import vary_alike, varying_axes
from ecliptic.errors import ArgumentError
from ecliptic.module import Module, field, looks_like_wrapped
from ecliptic.transform._eval_shape import cached_filter_eval_shape
from ecliptic.transform._flat import flatten_call
from ecliptic.transform._program import Output
from ecliptic.transform._static import argument_path, same_static
from ecliptic.transform._wrapper import check_callable, name_of
from ecliptic.tree import first_difference, is_array
from ecliptic.tree._predicates import has_shape

_P = ParamSpec("_P")
_T = TypeVar("_T")

_NUMBERS = (bool, int, float, complex)

# How many differences between a call and the example a message lists.
_SHOWN = 4


class _Example:
    """The arguments that a function was converted for: shapes, dtypes, static leaves, structure.

    Weak types and shardings are left out: the program computes the same with others.
    """

    __slots__ = ("leaves", "treedef")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        leaves, self.treedef = tree_flatten((args, kwargs))
        self.leaves = [_describe(leaf) if has_shape(leaf) else leaf for leaf in leaves]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Example):
            return NotImplemented
        return self.treedef == other.treedef and all(map(_same, self.leaves, other.leaves))

    def __hash__(self) -> int:
        return hash(self.treedef)

    def __repr__(self) -> str:
        return repr(self.arguments())

    def arguments(self) -> Any:
        """The arguments and keyword arguments, with a description in place of each array."""
        return self.treedef.unflatten(self.leaves)

    def fit(self, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> list[Any]:
        """The leaves of the arguments of a call.

        Raises:
            ArgumentError: if the function was converted for others.
        """
        leaves, treedef = tree_flatten((args, kwargs))
        if not self._has_structure(treedef):
            raise ArgumentError(
                f"`{name}` was converted for arguments of another structure than it is called "
                f"with: {_differences(self.arguments(), (args, kwargs))}. {_WAY_OUT}"
            )
        fitting = list(map(_fit, self.leaves, leaves))
        wrong = [i for i, leaf in enumerate(fitting) if leaf is _unfit]
        if wrong:
            paths = [path for path, _ in tree_flatten_with_path((args, kwargs))[0]]
            lines = [
                f"`{argument_path(paths[i])}` is {_show(leaves[i])}, and was "
                f"{_show(self.leaves[i])}{_hint(self.leaves[i], leaves[i])}"
                for i in wrong[:_SHOWN]
            ]
            more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
            raise ArgumentError(
                f"`{name}` was converted for other arguments than it is called with: "
                f"{'; '.join(lines)}{more}. {_WAY_OUT}"
            )
        return fitting

    def _has_structure(self, treedef: Any) -> bool:
        try:
            return bool(self.treedef == treedef)
        except Exception:
            # Static fields that cannot be compared, such as arrays, are not the same.
            return False


_WAY_OUT = "Convert it again, with arguments like those of the call as the example."

_unfit: Any = object()


def _differences(example: Any, call: Any) -> str:
    """In which leaves the structures of arguments differ; or else, in which nodes."""
    known, given = (
        [argument_path(path) for path, _ in tree_flatten_with_path(tree)[0]]
        for tree in (example, call)
    )
    parts = [
        f"the call {verb} {', '.join(f'`{path}`' for path in paths[:_SHOWN])}"
        for verb, paths in (
            ("lacks", [path for path in known if path not in given]),
            ("adds", [path for path in given if path not in known]),
        )
        if paths
    ]
    if parts:
        return "; ".join(parts)
    difference = first_difference(example, call, None)
    return f"of the pair of positional and keyword arguments, {difference}"


def _describe(leaf: Any) -> jax.ShapeDtypeStruct:
    aval = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def _with_weak_type(struct: jax.ShapeDtypeStruct, weak: bool) -> jax.ShapeDtypeStruct:
    return struct if struct.weak_type == weak else struct.update(weak_type=weak)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and same_static(one, other)


def _fit(known: Any, leaf: Any) -> Any:
    """A leaf that is like the one in the example; `_unfit` if it isn't."""
    if not isinstance(known, jax.ShapeDtypeStruct):
        return leaf if _same(known, leaf) else _unfit
    if type(leaf) in _NUMBERS:
        # What JAX makes of it is a scalar like any other.
        leaf = jnp.asarray(leaf)
    elif not is_array(leaf):
        return _unfit
    aval = leaf if isinstance(leaf, jax.Array) else jax.typeof(leaf)
    return leaf if aval.shape == known.shape and aval.dtype == known.dtype else _unfit


def _show(leaf: Any) -> str:
    if has_shape(leaf):
        aval = _describe(leaf)
        return f"an array of shape {aval.shape} and dtype {aval.dtype}"
    return f"{leaf!r} of type `{type(leaf).__qualname__}`"


def _hint(known: Any, leaf: Any) -> str:
    if type(known) in _NUMBERS and is_array(leaf):
        return (
            f" (a Python number is a constant of the program; give the example "
            f"`jnp.asarray({known!r})` to pass arrays)"
        )
    return ""


class _TrivialClosureConvert(Module):
    """A function that closes over nothing: it is called as it is."""

    fn: Callable[..., Any]
    _example: _Example = field(static=True, repr=False)

    @property
    def __wrapped__(self) -> Any:
        return self.fn

    @property
    def in_struct(self) -> Any:
        """The arguments that it takes, as a pair of positional and keyword arguments."""
        return self._example.arguments()

    @property
    def out_struct(self) -> Any:
        """What it returns, with a description in place of each array."""
        args, kwargs = self.in_struct
        return cached_filter_eval_shape(self.fn, *args, **kwargs)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        leaves = self._example.fit(args, kwargs, name_of(self.fn))
        args, kwargs = self._example.treedef.unflatten(leaves)
        return self.fn(*args, **kwargs)


looks_like_wrapped(_TrivialClosureConvert)


class _Call:
    """How a program is called: what goes into it, and what its results are put into.

    Those of two programs are equal if the one program can take the place of the other.
    """

    __slots__ = ("axes", "example", "name", "out_leaves", "out_positions", "out_treedef")

    def __init__(self, name: str, example: _Example, arrays: list[Any], closed: Any, out: Any):
        self.name = name
        self.example = example
        self.axes = varying_axes([*closed.consts, *arrays])
        if type(out) is Output:
            self.out_treedef = out.treedef
            self.out_leaves = out.template.copy()
            self.out_positions = out.positions
            structs = out.arrays
        else:
            structs, self.out_treedef = tree_flatten(out)
            self.out_positions = list(range(len(structs)))
            self.out_leaves = [None] * len(structs)
        for position, struct in zip(self.out_positions, structs, strict=True):
            self.out_leaves[position] = struct

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Call):
            return NotImplemented
        return self is other or (
            self.example == other.example
            and self.axes == other.axes
            and self.out_treedef == other.out_treedef
            and self.out_positions == other.out_positions
            and all(map(_same, self.out_leaves, other.out_leaves))
        )

    def __hash__(self) -> int:
        return hash((self.example, self.out_treedef))

    def __repr__(self) -> str:
        return f"<call of {self.name}>"

    def run(
        self, jaxpr: Any, consts: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Evaluates a program."""
        fitting = self.example.fit(args, kwargs, self.name)
        known = self.example.leaves
        arrays = [
            leaf
            for struct, leaf in zip(known, fitting, strict=True)
            if isinstance(struct, jax.ShapeDtypeStruct)
        ]
        leaves = self.out_leaves.copy()
        # Inside `jax.shard_map`, the program may be called with parts of what it was traced for.
        # What varies then cannot be combined with what does not.
        alike = vary_alike([*consts, *arrays], self.axes)
        out = _jax.eval_jaxpr(jaxpr, alike[: len(consts)], *alike[len(consts) :])
        for position, array in zip(self.out_positions, out, strict=True):
            leaves[position] = array
        return self.out_treedef.unflatten(leaves)


class _ClosureConvert(Module):
    """A function as a program, with what it closes over as leaves.

    The program is a leaf, and no part of the structure. Then the results of two conversions can
    be the outputs of two branches, or the carry of a loop, once `partition` has set the programs
    aside; and what rewrites the programs in the parameters of operations finds it there.
    """

    jaxpr: Any = field(repr=False)
    consts: list[Any]
    _call: _Call = field(static=True)

    # Not `__wrapped__`: the function may close over tracers, which must not live on in here.
    @property
    def __name__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._call.name

    def __getattr__(self, name: str) -> Any:
        if name == "__qualname__":
            return self._call.name
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def in_struct(self) -> Any:
        """The arguments that it takes, as a pair of positional and keyword arguments."""
        return self._call.example.arguments()

    @property
    def out_struct(self) -> Any:
        """What it returns, with a description in place of each array."""
        return self._call.out_treedef.unflatten(self._call.out_leaves)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._call.run(self.jaxpr, self.consts, args, kwargs)


def _closes_over_nothing(fn: Any) -> bool:
    if type(fn) is not types.FunctionType or fn.__closure__ is not None:
        return False
    defaults = (fn.__defaults__, fn.__kwdefaults__)
    return not any(map(is_array, tree_leaves(defaults)))


def filter_closure_convert(fn: Callable[_P, _T], *args: Any, **kwargs: Any) -> Callable[_P, _T]:
    """Makes a PyTree of a function, with the arrays that it closes over as leaves.

    As `jax.closure_convert`, for any PyTree, and for all arrays and not only those that are being
    differentiated. An array in a closure is hidden from transformations; in a PyTree it is seen,
    so that the result can be an argument of a function with a derivative of its own, for instance.

    Args:
        fn: the function; may be a PyTree itself.
        *args: example arguments, for which `fn` is traced. An array can be given by a
            `jax.ShapeDtypeStruct`.
        **kwargs: example keyword arguments.

    Returns:
        A function, which is a Module. Calls must have arguments like those of the example: of the
        same structure, shapes and dtypes, and equal where they are no arrays. A Python number may
        stand for a scalar array of its dtype. Its attribute `consts` is the list of arrays that
        `fn` closes over, the very same objects, and `jaxpr` the program, which takes these and then
        the arrays of the arguments. All of these are leaves: where only arrays may be, set the
        program aside with `ecliptic.partition`, or use a filtered transformation. `out_struct` is
        the output, with a `jax.ShapeDtypeStruct` in place of each array. A plain function that
        closes over nothing is kept as it is, and has no `consts`.

    Raises:
        ArgumentTypeError: if `fn` cannot be called.
        ArgumentError: in a call, if the arguments are not like those of the example.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> def line(slope):
        ...     return lambda x: slope * x
        >>> converted = filter_closure_convert(line(jnp.array(3.0)), jnp.array(1.0))
        >>> print(converted(jnp.array(2.0)), converted.consts)
        6.0 [Array(3., dtype=float32, weak_type=True)]
    """
    check_callable(fn, "filter_closure_convert")
    example = _Example(args, kwargs)
    if _closes_over_nothing(fn):
        return _TrivialClosureConvert(fn, example)
    flat = flatten_call(fn, args, kwargs, has_shape)
    closed, out = jax.make_jaxpr(flat.function, return_shape=True)(flat.arrays)
    structs, treedef = tree_flatten(out)
    # JAX 0.9 leaves the weak types out of what it returns.
    weak = [aval.weak_type for aval in closed.out_avals]
    out = treedef.unflatten(map(_with_weak_type, structs, weak))
    given = [array for array in flat.arrays if is_array(array)]
    call = _Call(name_of(fn), example, given, closed, out)
    return _ClosureConvert(without_constants(closed), list(closed.consts), call)
