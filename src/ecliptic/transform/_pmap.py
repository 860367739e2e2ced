"""`filter_pmap`: `jax.pmap` over any PyTree.

A thin layer. JAX itself recommends `jax.jit` with shardings, and `jax.shard_map`, for new programs;
their filtered forms are `filter_jit`, `filter_shard` and `filter_shard_map`.
"""

import inspect
from collections.abc import Callable, Hashable
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import all_leaves, tree_flatten
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic.errors import ArgumentError, ArgumentTypeError
from ecliptic.module import Static, looks_like_wrapped
from ecliptic.transform._axes import (
    Axis,
    IsLeaf,
    KeyPath,
    Laid,
    Side,
    check_spec,
    explicit_axes,
    if_array,
    lay,
)
from ecliptic.transform._failure import Watch
from ecliptic.transform._in_axes import arrange
from ecliptic.transform._memo import Memo, shared_memo
from ecliptic.transform._pmap_stages import LoweredPmap, Mapped, Prepared, lower
from ecliptic.transform._program import Output
from ecliptic.transform._sizes import check_sizes, not_an_array
from ecliptic.transform._static import static_key
from ecliptic.transform._targets import Call
from ecliptic.transform._wrapper import AbstractWrapper, check_callable, name_of
from ecliptic.tree import format_path, is_array, is_array_like

_P = ParamSpec("_P")
_T = TypeVar("_T")

_unset: Any = object()

_DONATE_MODES = ("all", "warn", "none")

# Options of `jax.pmap` that filtering replaces, with what to do instead.
_REPLACED = {
    "static_broadcasted_argnums": "every leaf that is no array is static already",
    "donate_argnums": "use `donate=`",
}

_jax_options = frozenset(inspect.signature(jax.pmap).parameters) - {"fun"}


class _Options(NamedTuple):
    """How a function is mapped."""

    in_axes: Any
    out_axes: Any
    groups: list[Axis]
    axis_size: int | None
    donate: str
    is_leaf: IsLeaf
    jaxkwargs: dict[str, Any]
    # The compiled programs, for each function and static part of the arguments.
    programs: Memo


class _Pmap(AbstractWrapper):
    _options: Static[_Options]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        mapped = self._mapped
        call = mapped.prepare(args, kwargs)
        with mapped.quiet():
            return mapped.finish(call.run())

    def lower(self, /, *args: Any, **kwargs: Any) -> LoweredPmap:
        """Traces and lowers the function; `.compile()` of the result compiles it.

        Arrays among the arguments may be given as `jax.ShapeDtypeStruct`.
        """
        return lower(self._mapped, args, kwargs)

    @property
    def _mapped(self) -> Mapped:
        options = self._options.value
        return Mapped(
            name_of(self._fun),
            self._prepare,
            lambda out: _finish(options, *out),
            options.donate == "all",
        )

    def _prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Prepared:
        """The program for these arguments, and the arrays in them."""
        options = self._options.value
        call, spec = arrange(options.in_axes, Call(self._fun, args, kwargs))
        inputs = Side("in_axes", (call.args, call.kwargs), call.path)
        laid = lay(inputs, spec, options.is_leaf)
        name = name_of(self._fun)
        _check(inputs, laid, options, name)
        of_function = lay(Side("in_axes", self._fun, lambda path: ""), None, None)
        # The first entry is there in case that nothing else is mapped: `jax.pmap` needs something.
        counter = [] if any(type(axis) is int for axis in laid.axes) else [0]
        laid = Laid(
            [np.zeros(options.axis_size or 0, np.bool_)] * len(counter)
            + [*of_function.leaves, *laid.leaves],
            [*counter, *of_function.axes, *laid.axes],
            (of_function.treedef, laid.treedef),
        )
        is_traced = [is_array(leaf) or _jax.is_vmappable(leaf) for leaf in laid.leaves]
        key = (
            laid.treedef,
            tuple(laid.axes),
            tuple(
                _avals(leaf) if traced else static_key(leaf)
                for leaf, traced in zip(laid.leaves, is_traced, strict=True)
            ),
        )
        program, watch = options.programs.get(
            key, lambda: (_compile(laid, is_traced, options, name), Watch())
        )
        arrays = [x for x, traced in zip(laid.leaves, is_traced, strict=True) if traced]
        return Prepared(key, program, watch, arrays)


looks_like_wrapped(_Pmap)


def _check(inputs: Side, laid: Laid, options: _Options, name: str) -> None:
    """Checks axes and sizes of the arguments, which JAX does without names or not at all."""
    mapped = [i for i, axis in enumerate(laid.axes) if axis is not None]
    size = options.axis_size
    if mapped:
        check_sizes(inputs, laid, mapped, size)
        sizes = [
            laid.leaves[i].shape[laid.axes[i]]
            for i in mapped
            if type(laid.axes[i]) is int and is_array(laid.leaves[i])
        ]
        size = sizes[0] if size is None and sizes else size
    elif size is None:
        raise ArgumentError(
            f"No argument of `{name}` is mapped, so nothing says on how many devices it shall run. "
            f"Pass `axis_size=`, or map an argument with `in_axes=`."
        )
    devices = options.jaxkwargs.get("devices")
    if devices is None:
        devices = jax.local_devices(backend=options.jaxkwargs.get("backend"))
    if isinstance(size, int) and size > len(devices):
        raise ArgumentError(
            f"`filter_pmap` has a device for each element, and `{name}` was called with {size} "
            f"elements on {len(devices)} devices. Use `filter_vmap` for some of them."
        )


def _avals(leaf: Any) -> Any:
    """What a program is made for: `jax.pmap` of JAX 0.9 keeps the first output tree for all."""
    arrays, treedef = tree_flatten(leaf)
    avals = map(jax.typeof, arrays)
    return treedef, *((aval.shape, aval.dtype, aval.weak_type) for aval in avals)


def _compile(laid: Laid, is_traced: list[bool], options: _Options, name: str) -> Any:
    positions = [i for i, traced in enumerate(is_traced) if traced]
    held = [None if traced else leaf for leaf, traced in zip(laid.leaves, is_traced, strict=True)]
    of_function, of_arguments = laid.treedef
    start = len(laid.leaves) - of_arguments.num_leaves

    def program(arrays: list[Any]) -> Any:
        leaves = held.copy()
        for i, array in zip(positions, arrays, strict=True):
            leaves[i] = array
        fun = of_function.unflatten(leaves[start - of_function.num_leaves : start])
        args, kwargs = of_arguments.unflatten(leaves[start:])
        return _pack(fun(*args, **kwargs), options)

    # (The name is what profiles and messages show.)
    program.__name__ = program.__qualname__ = name
    return jax.pmap(
        program,
        in_axes=([laid.axes[i] for i in positions],),
        out_axes=(options.groups, None, None),
        axis_size=options.axis_size,
        donate_argnums=() if options.donate == "none" else 0,
        **options.jaxkwargs,
    )


_SHARED = -1


def _pack(out: PyTree, options: _Options) -> Any:
    """The output as `jax.pmap` can take it.

    Returns:
        A list of leaves for each axis; the unmapped ones; and a node without leaves that says
        where all of these belong. JAX keeps it with the program.
    """
    side = Side("out_axes", out, _path)
    laid = lay(side, options.out_axes, options.is_leaf)
    groups: list[list[Any]] = [[] for _ in options.groups]
    shared: list[Any] = []
    template: list[Any] = []
    for number, (leaf, axis) in enumerate(zip(laid.leaves, laid.axes, strict=True)):
        if axis is None and not (is_array(leaf) or _jax.is_vmappable(leaf)):
            template.append(leaf)
        elif axis is None:
            template.append(_Place(_SHARED, len(shared), None))
            shared.append(leaf)
        else:
            if not (is_array_like(leaf) or _jax.is_vmappable(leaf)):
                raise not_an_array(side, number, leaf, axis)
            known = axis in options.groups
            group = options.groups.index(axis) if known else 0
            template.append(_Place(group, len(groups[group]), None if known else axis))
            groups[group].append(leaf)
    return groups, shared, Output([], laid.treedef, template, [])


def _path(path: KeyPath) -> str:
    return format_path(path, root="out")


class _Place(NamedTuple):
    """Where a leaf of the output is: in which list, where there, and to which axis it goes."""

    group: int
    number: int
    move: Axis


def _finish(options: _Options, groups: list[list[Any]], shared: list[Any], out: Output) -> Any:
    leaves = []
    for entry in out.template:
        if type(entry) is not _Place:
            leaves.append(entry)
            continue
        leaf = (shared if entry.group == _SHARED else groups[entry.group])[entry.number]
        if entry.move is not None:
            leaf = jnp.moveaxis(leaf, options.groups[entry.group], entry.move)
        leaves.append(leaf)
    return out.treedef.unflatten(leaves)


def _programs(fun: Any, options: Any) -> Memo:
    """Where the programs of a function are kept.

    Those of a callable PyTree, which is an argument of its programs like any other, are shared by
    all trees of its class: `filter_pmap(module)` written twice compiles once. A plain function has
    its own, which go when it goes.
    """
    leaves, treedef = tree_flatten(options)
    key = (treedef, tuple(map(static_key, leaves)))
    owner = None if all_leaves([fun]) else type(fun)
    return Memo(512) if owner is None else shared_memo(owner, key, 512)


def _check_options(pmapkwargs: dict[str, Any], donate: str) -> None:
    for option, instead in _REPLACED.items():
        if option in pmapkwargs:
            raise ArgumentError(f"`filter_pmap` does not take `{option}`: {instead}.")
    for name in pmapkwargs:
        if name not in _jax_options:
            raise ArgumentTypeError(
                f"`filter_pmap` got the option `{name}`, which neither it nor `jax.pmap` has. "
                f"Arguments of the function go to the result: `filter_pmap(fun)(...)`."
            )
    if donate not in _DONATE_MODES:
        raise ArgumentError(
            f"`filter_pmap(donate=...)` is one of {', '.join(map(repr, _DONATE_MODES))}; got "
            f"{donate!r}."
        )


@overload
def filter_pmap(
    *,
    in_axes: PyTree = ...,
    out_axes: PyTree = ...,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    donate: Literal["all", "warn", "none"] = "none",
    is_leaf: Callable[[Any], bool] | None = None,
    **pmapkwargs: Any,
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]: ...


@overload
def filter_pmap(
    fun: Callable[_P, _T],
    *,
    in_axes: PyTree = ...,
    out_axes: PyTree = ...,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    donate: Literal["all", "warn", "none"] = "none",
    is_leaf: Callable[[Any], bool] | None = None,
    **pmapkwargs: Any,
) -> Callable[_P, _T]: ...


def filter_pmap(
    fun: Any = _unset,
    *,
    in_axes: PyTree = if_array(axis=0),
    out_axes: PyTree = if_array(axis=0),
    axis_name: Hashable = None,
    axis_size: int | None = None,
    donate: Literal["all", "warn", "none"] = "none",
    is_leaf: Callable[[Any], bool] | None = None,
    **pmapkwargs: Any,
) -> Any:
    """Makes a function work on many elements at once, each on a device of its own.

    As `jax.pmap`, for any PyTree, with axes as for [`filter_vmap`][]. For new programs, use
    `filter_jit` with `filter_shard`, or `filter_shard_map`.

    Args:
        fun: the function. Without it, the result is a decorator. If it is a PyTree, its arrays are
            the same on each device.
        in_axes: which axis of each argument is mapped, as for `filter_vmap`. Default: the first
            one of each array.
        out_axes: at which axis of the output the elements are put together, as for `filter_vmap`.
        axis_name: a name for the axis, for `jax.lax.psum` and the like. Default: none.
        axis_size: the number of elements. Default: that of the mapped arguments.
        donate: whether the buffers of arrays in the arguments (and in `fun`) may be reused for the
            output: `"all"`; `"warn"`, the same with JAX's warning where a buffer is of no use;
            or `"none"`, the default.
        is_leaf: further nodes on which functions in `in_axes` and `out_axes` are called as a
            whole, as for `filter_vmap`.
        **pmapkwargs: further options of `jax.pmap`, such as `devices`.

    Returns:
        A function, which is a Module, of the same arguments. It compiles once for each static part
        of its arguments, and for their shapes and dtypes; `lower` (then `compile`) does that ahead
        of time.

    Raises:
        StructureError: if `in_axes` or `out_axes` is no prefix of the tree.
        ArgumentError: if an axis does not exist, sizes differ, or an option has a wrong value.
        ArgumentTypeError: if an option has a wrong type.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> @filter_pmap
        ... def apply(function, x):
        ...     return function(x)
        >>> print(apply(jnp.square, jnp.arange(4.0)))
        [0. 1. 4. 9.]
    """
    _check_options(pmapkwargs, donate)
    if type(in_axes) is dict:
        for name, spec in in_axes.items():
            check_spec(f"in_axes[{name!r}]", spec)
    else:
        check_spec("in_axes", in_axes)
    check_spec("out_axes", out_axes)

    jaxkwargs = {"axis_name": axis_name, **pmapkwargs}

    def wrap(fun: Any) -> Any:
        check_callable(fun, "filter_pmap")
        options = _Options(
            in_axes=in_axes,
            out_axes=out_axes,
            groups=explicit_axes(out_axes),
            axis_size=axis_size,
            donate=donate,
            is_leaf=is_leaf,
            jaxkwargs=jaxkwargs,
            programs=_programs(fun, (in_axes, out_axes, axis_size, donate, is_leaf, jaxkwargs)),
        )
        return _Pmap(fun, Static(options))

    return wrap if fun is _unset else wrap(fun)
