"""`filter_vmap`: `jax.vmap` over any PyTree.

Everything happens on flat lists, whose entries are the leaves of `jax.vmap`: arrays, objects of
types registered with JAX as vmappable, and the rest. Each has one axis. The leaves with an axis go
to `jax.vmap` as one list, and all others stay in the closure. Outputs come back in one list for
each axis that `out_axes` names, so that a vmappable type puts the elements together at the right
axis itself. No tree is ever rebuilt with holes in it, which such a type could not map.
"""

import inspect
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

import jax
import numpy as np
from jax.tree_util import tree_leaves
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic._jax._trace import is_mapped_by, trace_tag
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
from ecliptic.transform._in_axes import arrange
from ecliptic.transform._targets import Call
from ecliptic.transform._wrapper import AbstractWrapper, check_callable
from ecliptic.tree import format_path, is_array, leaves_with_paths

_P = ParamSpec("_P")
_T = TypeVar("_T")

_unset: Any = object()

_jax_options = frozenset(inspect.signature(jax.vmap).parameters) - {"fun"}


class _Options(NamedTuple):
    """How a function is mapped."""

    in_axes: Any
    out_axes: Any
    groups: list[Axis]
    axis_size: int | None
    is_leaf: IsLeaf
    jaxkwargs: dict[str, Any]


class _Vmap(AbstractWrapper):
    _options: Static[_Options]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        options = self._options.value
        call, spec = arrange(options.in_axes, Call(self._fun, args, kwargs))
        inputs = Side("in_axes", (call.args, call.kwargs), call.path)
        laid = lay(inputs, spec, options.is_leaf)
        mapped = [i for i, axis in enumerate(laid.axes) if axis is not None]
        if not mapped and options.axis_size is None:
            return _call_once(call, options)
        check_sizes(inputs, laid, mapped, options.axis_size)
        return _Mapping(self._fun, inputs, laid, mapped, options).run()


looks_like_wrapped(_Vmap)


def _output(value: PyTree) -> Side:
    return Side("out_axes", value, lambda path: format_path(path, root="out"))


def _call_once(call: Call, options: _Options) -> Any:
    """Calls a function none of whose arguments is mapped, over an axis of unknown size."""
    out = call.run({})
    side = _output(out)
    laid = lay(side, options.out_axes, options.is_leaf)
    wanted = [i for i, axis in enumerate(laid.axes) if axis is not None]
    if wanted:
        raise ArgumentError(
            f"No argument is mapped, so nothing says how many elements the mapped output "
            f"`{side.path_of_leaf(wanted[0])}` shall have. Pass `axis_size=`, map an argument with "
            f"`in_axes=`, or give None for it in `out_axes`."
        )
    return out


# Where an output goes. Numbers from 0 on are groups of outputs with the same axis.
_SHARED = -1
_STATIC = -2


class _Planned(NamedTuple):
    """How to find one leaf of the output again.

    Args:
        group: the list in which it is.
        index: its place there.
        move: the axis to move it to, where no list has that axis.
        path: its path, for vmappable objects.
    """

    group: int
    index: int
    move: Axis = None
    path: str | None = None


class _Mapping:
    """One call of a mapped function."""

    def __init__(
        self, fun: Callable[..., Any], inputs: Side, laid: Laid, mapped: list[int], options: _Options
    ) -> None:
        self.fun = fun
        self.inputs = inputs
        self.laid = laid
        self.mapped = mapped
        self.options = options
        self.tag: Any = None
        self.plan: list[_Planned] = []
        self.static: list[Any] = []
        self.out_treedef: Any = None
        self.holes: list[str] = []

    def run(self) -> Any:
        """Maps the function, and returns its output."""
        options, laid = self.options, self.laid
        given = [laid.leaves[i] for i in self.mapped]
        axes = [laid.axes[i] for i in self.mapped]
        if not given:
            # So that there is a value of which it is known that this `jax.vmap` maps it.
            given, axes = [np.zeros(options.axis_size or 0, np.bool_)], [0]
        vmapped = jax.vmap(
            self._on_flat_list,
            in_axes=(axes,),
            out_axes=(options.groups, None),
            axis_size=options.axis_size,
            **options.jaxkwargs,
        )
        try:
            groups, shared = vmapped(given)
        except Exception as error:
            self._explain(error, given)
            raise
        return self._finish(groups, shared)

    def _on_flat_list(self, values: list[Any]) -> Any:
        laid = self.laid
        self.tag = _new_tag(values, [laid.leaves[i] for i in self.mapped])
        leaves = laid.leaves.copy()
        for i, value in zip(self.mapped, values, strict=False):
            leaves[i] = value
        args, kwargs = laid.treedef.unflatten(leaves)
        side = _output(self.fun(*args, **kwargs))
        out = lay(side, self.options.out_axes, self.options.is_leaf)
        self.out_treedef = out.treedef
        groups: list[list[Any]] = [[] for _ in self.options.groups]
        shared: list[Any] = []
        for number, (leaf, axis) in enumerate(zip(out.leaves, out.axes, strict=True)):
            self.plan.append(self._sort(side, number, leaf, axis, groups, shared))
        return groups, shared

    def _sort(
        self,
        side: Side,
        number: int,
        leaf: Any,
        axis: Axis,
        groups: list[list[Any]],
        shared: list[Any],
    ) -> _Planned:
        """Puts one leaf of the output where it belongs."""
        path = None
        if _jax.is_vmappable(leaf):
            path = side.path_of_leaf(number)
            self.holes += _holes(leaf, path)
        if axis is not None:
            check_output(side, number, leaf, axis)
            known = axis in self.options.groups
            group = self.options.groups.index(axis) if known else 0
            groups[group].append(leaf)
            return _Planned(group, len(groups[group]) - 1, None if known else axis, path)
        if path is None and not isinstance(leaf, jax.Array):
            self.static.append(leaf)
            return _Planned(_STATIC, len(self.static) - 1)
        if any(is_mapped_by(part, self.tag) for part in tree_leaves(leaf)):
            raise ArgumentError(
                f"`out_axes` is None for `{side.path_of_leaf(number)}`, but that output depends on "
                f"a mapped argument. Give it an axis."
            )
        shared.append(leaf)
        return _Planned(_SHARED, len(shared) - 1, None, path)

    def _finish(self, groups: list[list[Any]], shared: list[Any]) -> Any:
        sources = [*groups, self.static, shared]
        leaves = []
        for group, index, move, path in self.plan:
            leaf = sources[group][index]
            if move is not None:
                # For vmappable objects too.
                leaf = jax.vmap(lambda x: x, in_axes=0, out_axes=move)(leaf)
            if path is not None:
                _check_for_leaks(leaf, path, self.tag)
            leaves.append(leaf)
        return self.out_treedef.unflatten(leaves)

    def _explain(self, error: Exception, given: list[Any]) -> None:
        """Adds a note to an error that a vmappable type may have raised over a None in it."""
        holes = self.holes.copy()
        for i, leaf in zip(self.mapped, given, strict=False):
            if _jax.is_vmappable(leaf):
                holes += _holes(leaf, self.inputs.path_of_leaf(i))
        if holes:
            error.add_note(
                f"filter_vmap: `{'`, `'.join(holes[:4])}` is None. An object of a registered "
                f"vmappable type is mapped by the functions that were registered with it, and they "
                f"may not expect this. (Partitioning, filtering and gradients put None in place of "
                f"arrays.) Take the arrays out of the object before passing or returning it."
            )


def _new_tag(values: list[Any], given: list[Any]) -> Any:
    """The tag of the trace that made the mapped values out of the given ones."""
    old = {id(leaf) for leaf in tree_leaves(given)}
    for value in tree_leaves(values):
        tag = trace_tag(value)
        if tag is not None and id(value) not in old:
            return tag
    return None


def _holes(value: Any, path: str) -> list[str]:
    """The places of the Nones in a vmappable object."""
    pairs = leaves_with_paths(value, root=path, is_leaf=lambda x: x is None)
    return [path for path, leaf in pairs if leaf is None]


def _check_for_leaks(value: Any, path: str, tag: Any) -> None:
    """Refuses a vmappable object with values of a single element in fields that are not batched."""
    leaked = [at for at, part in leaves_with_paths(value, root="") if is_mapped_by(part, tag)]
    if not leaked:
        return
    kind = type(value).__name__
    raise ArgumentError(
        f"At `{path}`: the fields `{'`, `'.join(leaked[:4])}` of `{kind}` were set to values that "
        f"differ between the mapped elements, but `{kind}` is registered with JAX in such a way that "
        f"they are not batched. Keep what is mapped out of these fields. (For MJX: use `Data.where` "
        f"and not `jnp.where` on each array.)"
    )


_SCALARS = (bool, int, float, complex)


def check_output(side: Side, number: int, leaf: Any, axis: Axis) -> None:
    """Refuses an axis that an output can't have."""
    if type(axis) is not int or _jax.is_vmappable(leaf):
        return
    if is_array(leaf):
        ndim = leaf.ndim + 1
    elif isinstance(leaf, _SCALARS):
        ndim = 1
    elif hasattr(type(leaf), "__jax_array__"):
        return
    else:
        raise not_an_array(side, number, leaf, axis)
    if not -ndim <= axis < ndim:
        raise ArgumentError(
            f"`out_axes` gives axis {axis} to `{side.path_of_leaf(number)}`, but the mapped output "
            f"has only {ndim} dimension{'' if ndim == 1 else 's'}."
        )


def not_an_array(side: Side, number: int, leaf: Any, axis: Axis) -> ArgumentError:
    """The error for an axis of something without axes."""
    return ArgumentError(
        f"`{side.option}` gives axis {axis} to `{side.path_of_leaf(number)}`, which is not an array "
        f"but has type `{type(leaf).__name__}`. Use None for it, or `if_array({axis})` for the tree "
        f"around it."
    )


def check_sizes(side: Side, laid: Laid, mapped: list[int], axis_size: int | None) -> None:
    """Checks axes and sizes of the mapped arguments.

    JAX does so too, but by numbers of leaves, which name the wrong argument where a vmappable object
    is among them.
    """
    size = axis_size
    known = size is not None
    for i in mapped:
        leaf, axis = laid.leaves[i], laid.axes[i]
        if type(axis) is not int:
            continue
        shape = getattr(leaf, "shape", None)
        if not isinstance(shape, tuple):
            _check_shapeless(side, i, leaf, axis)
            continue
        try:
            found = shape[axis]
        except IndexError:
            _check_range(side, i, leaf, axis)
            continue
        if size is None:
            size = found
        elif found is not size:
            _compare(side, laid, mapped, axis_size, found, size)
        known = True
    if not known:
        named = ", ".join(
            f"`{side.path_of_leaf(i)}` (`{type(laid.leaves[i]).__name__}`)" for i in mapped[:4]
        )
        raise ArgumentError(
            f"Cannot tell the size of the mapped axis from {named}: no `.shape` says it. Pass "
            f"`axis_size=`."
        )


def _check_shapeless(side: Side, number: int, leaf: Any, axis: Axis) -> None:
    if not (_jax.is_vmappable(leaf) or hasattr(type(leaf), "__jax_array__")):
        raise not_an_array(side, number, leaf, axis)


def _check_range(side: Side, number: int, leaf: Any, axis: int) -> None:
    if _jax.is_vmappable(leaf):
        # Its type says best what is wrong.
        return
    name = side.path_of_leaf(number)
    ndim = len(leaf.shape)
    hint = (
        f" For an argument that is the same for every element, write `in_axes={{{name!r}: None}}`."
        if name.isidentifier()
        else ""
    )
    raise ArgumentError(
        f"`in_axes` gives axis {axis} to `{name}`, but it has only {ndim} "
        f"dimension{'' if ndim == 1 else 's'}.{hint}"
    )


def _compare(
    side: Side, laid: Laid, mapped: list[int], axis_size: int | None, found: Any, size: Any
) -> None:
    try:
        equal = bool(found == size)
    except Exception:
        # Symbolic sizes, of which JAX knows more.
        return
    if equal:
        return
    lines: dict[str, str] = {}
    if axis_size is not None:
        lines[str(axis_size)] = f"  * {axis_size}: `axis_size`"
    for i in mapped:
        leaf, axis = laid.leaves[i], laid.axes[i]
        shape = getattr(leaf, "shape", None)
        if type(axis) is int and isinstance(shape, tuple) and -len(shape) <= axis < len(shape):
            kind = "" if is_array(leaf) else f"{type(leaf).__name__}, "
            here = f"`{side.path_of_leaf(i)}` ({kind}shape {shape}, axis {axis})"
            lines.setdefault(str(shape[axis]), f"  * {shape[axis]}: {here}")
    listing = "\n".join(lines.values())
    raise ArgumentError(f"Inconsistent sizes of the mapped axis:\n{listing}")


@overload
def filter_vmap(
    *,
    in_axes: PyTree[int | None | Callable[[Any], int | None]] = ...,
    out_axes: PyTree[int | None | Callable[[Any], int | None]] = ...,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    is_leaf: Callable[[Any], bool] | None = None,
    **vmapkwargs: Any,
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]: ...


@overload
def filter_vmap(
    fun: Callable[_P, _T],
    *,
    in_axes: PyTree[int | None | Callable[[Any], int | None]] = ...,
    out_axes: PyTree[int | None | Callable[[Any], int | None]] = ...,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    is_leaf: Callable[[Any], bool] | None = None,
    **vmapkwargs: Any,
) -> Callable[_P, _T]: ...


def filter_vmap(
    fun: Any = _unset,
    *,
    in_axes: PyTree[int | None | Callable[[Any], int | None]] = if_array(axis=0),
    out_axes: PyTree[int | None | Callable[[Any], int | None]] = if_array(axis=0),
    axis_name: Hashable = None,
    axis_size: int | None = None,
    is_leaf: Callable[[Any], bool] | None = None,
    **vmapkwargs: Any,
) -> Any:
    """Makes a function work on many elements at once, given along an axis of its arguments.

    As `jax.vmap`, for any PyTree. By default every array of the arguments is mapped over its
    first axis, and everything else is the same for each element; every array of the output gets
    a new first axis, and everything else is returned as it is. Objects of a type that is registered
    with JAX as vmappable (sparse arrays, for instance) are mapped whole, as their type wants it.

    Args:
        fun: the function. Without it, the result is a decorator.
        in_axes: says which axis of each argument is mapped. An int (negative ones count from the
            end), None for "not mapped", a function from a leaf to one of these such as
            [`if_array`][], or a tuple of PyTrees of these, each a prefix of its argument; keyword
            arguments are then mapped by default. Or a dict from the names of some arguments to
            such PyTrees; the other arguments are mapped by default. An argument that is not given
            has its default value, which is not mapped unless `in_axes` speaks of it.
        out_axes: says at which axis of the output the elements are put together: a PyTree as
            above, a prefix of the output. None is for outputs that depend on no mapped argument,
            and for what is no array. Functions are called on the output for one element.
        axis_name: a name for the axis, for `jax.lax.psum` and the like. Default: none.
        axis_size: the number of elements. By default it is that of the mapped arguments; it has
            to be given if there are none.
        is_leaf: further nodes on which functions in `in_axes` and `out_axes` are called as a
            whole; what they return holds for all that is inside. Default: only leaves.
        **vmapkwargs: further options of `jax.vmap`, such as `spmd_axis_name`.

    Returns:
        A function, which is a Module, of the same arguments.

    Raises:
        StructureError: if `in_axes` or `out_axes` is no prefix of the tree.
        ArgumentError: if an axis does not exist, sizes differ, an output with `out_axes` None
            depends on a mapped argument, or nothing says how many elements there are.
        ArgumentTypeError: if an option has a wrong type.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> def apply(model, x):
        ...     return model["activation"](model["weight"] * x)
        >>> models = {"activation": jnp.square, "weight": jnp.array([1.0, 2.0, 3.0])}
        >>> ec.filter_vmap(apply, in_axes=(ec.if_array(0), None))(models, 2.0)
        Array([ 4., 16., 36.], dtype=float32)
        >>> ec.filter_vmap(apply, in_axes={"x": None})(models, x=2.0)
        Array([ 4., 16., 36.], dtype=float32)
    """
    for name in vmapkwargs:
        if name not in _jax_options:
            raise ArgumentTypeError(
                f"`filter_vmap` got the option `{name}`, which neither it nor `jax.vmap` has. "
                f"Arguments of the function go to the result: `filter_vmap(fun)(...)`."
            )
    if type(in_axes) is dict:
        for name, spec in in_axes.items():
            check_spec(f"in_axes[{name!r}]", spec)
    else:
        check_spec("in_axes", in_axes)
    check_spec("out_axes", out_axes)
    options = _Options(
        in_axes=in_axes,
        out_axes=out_axes,
        groups=explicit_axes(out_axes),
        axis_size=axis_size,
        is_leaf=is_leaf,
        jaxkwargs={"axis_name": axis_name, **vmapkwargs},
    )

    def wrap(fun: Any) -> Any:
        check_callable(fun, "filter_vmap")
        return _Vmap(fun, Static(options))

    return wrap if fun is _unset else wrap(fun)
