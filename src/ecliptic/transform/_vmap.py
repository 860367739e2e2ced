"""`filter_vmap`: `jax.vmap` over any PyTree.

Everything happens on flat lists, whose entries are the leaves of `jax.vmap`: arrays, objects of
types registered with JAX as vmappable, and the rest. Each has one axis.
"""

import inspect
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar, overload

import jax
from jaxtyping import PyTree

from ecliptic.errors import ArgumentError, ArgumentTypeError
from ecliptic.module import Static, looks_like_wrapped
from ecliptic.transform._axes import Side, check_spec, explicit_axes, if_array, lay
from ecliptic.transform._in_axes import arrange
from ecliptic.transform._mapping import Mapping, Options, output_side
from ecliptic.transform._sizes import check_sizes
from ecliptic.transform._targets import Call
from ecliptic.transform._wrapper import AbstractWrapper, check_callable

_P = ParamSpec("_P")
_T = TypeVar("_T")

_unset: Any = object()

_jax_options = frozenset(inspect.signature(jax.vmap).parameters) - {"fun"}


class _Vmap(AbstractWrapper):
    _options: Static[Options]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        options = self._options.value
        call, spec = arrange(options.in_axes, Call(self._fun, args, kwargs))
        inputs = Side("in_axes", (call.args, call.kwargs), call.path)
        laid = lay(inputs, spec, options.is_leaf)
        mapped = [i for i, axis in enumerate(laid.axes) if axis is not None]
        if not mapped and options.axis_size is None:
            return _call_once(call, options)
        check_sizes(inputs, laid, mapped, options.axis_size)
        return Mapping(self._fun, inputs, laid, mapped, options).run()


looks_like_wrapped(_Vmap)


def _call_once(call: Call, options: Options) -> Any:
    """Calls a function none of whose arguments is mapped, over an axis of unknown size."""
    out = call.run({})
    side = output_side(out)
    laid = lay(side, options.out_axes, options.is_leaf)
    wanted = [i for i, axis in enumerate(laid.axes) if axis is not None]
    if wanted:
        raise ArgumentError(
            f"No argument is mapped, so nothing says how many elements the mapped output "
            f"`{side.path_of_leaf(wanted[0])}` shall have. Pass `axis_size=`, map an argument with "
            f"`in_axes=`, or give None for it in `out_axes`."
        )
    return out


@overload
def filter_vmap(
    *,
    in_axes: PyTree = ...,
    out_axes: PyTree = ...,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    is_leaf: Callable[[Any], bool] | None = None,
    **vmapkwargs: Any,
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]: ...


@overload
def filter_vmap(
    fun: Callable[_P, _T],
    *,
    in_axes: PyTree = ...,
    out_axes: PyTree = ...,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    is_leaf: Callable[[Any], bool] | None = None,
    **vmapkwargs: Any,
) -> Callable[_P, _T]: ...


def filter_vmap(
    fun: Any = _unset,
    *,
    in_axes: PyTree = if_array(axis=0),
    out_axes: PyTree = if_array(axis=0),
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
    options = Options(
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
