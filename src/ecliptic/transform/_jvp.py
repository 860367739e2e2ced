"""`filter_jvp`: Jacobian-vector products over any PyTree."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten, tree_map
from jaxtyping import PyTree

from ecliptic._jax._trace import trace_tag
from ecliptic.errors import ArgumentError, ArgumentTypeError
from ecliptic.transform._returned import Returned, filled
from ecliptic.transform._tangents import Naming, check, describe
from ecliptic.transform._wrapper import check_callable, name_of
from ecliptic.tree import is_array, is_inexact_array
from ecliptic.tree._passage import Passage

_T = TypeVar("_T")

_NAMING = Naming("tangent", "tangents", "primals")


def filter_jvp(
    fn: Callable[..., _T], primals: Sequence[Any], tangents: Sequence[Any], **kwargs: Any
) -> tuple[_T, PyTree]:
    """Calls a function, and pushes tangents of its arguments forward through it.

    As `jax.jvp`, for any PyTrees. A tangent that is None says that the leaf (or all leaves below
    that node) does not change; all that is no floating-point or complex array must have None.

    Args:
        fn: the function.
        primals: a tuple or list of its positional arguments.
        tangents: their tangents: a tuple or list of the same structure, with None for what does
            not change. A Python number may have a tangent too; it is made an array.
        **kwargs: keyword arguments of `fn`, which are not differentiated. `has_aux=True` has the
            meaning that it has for `jax.jvp`, unless `fn` has a parameter of that name.

    Returns:
        The output, and its tangent: a tree of the same structure that has None for what does not
        depend on what changes, and for what is no floating-point or complex array. With
        `has_aux`: the output, its tangent and the auxiliary output.

    Raises:
        ArgumentTypeError: if `primals` or `tangents` is no tuple or list, if there is a tangent
            where none can be, or one of another dtype.
        ArgumentError: if a tangent has another shape, or there are too few or too many.
        StructureError: if the tangents have another structure than the primals.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> def apply(model, x):
        ...     return model["activation"](model["weight"] * x), "done"
        >>> model = {"activation": jnp.square, "weight": jnp.array(3.0)}
        >>> out, tangent = ec.filter_jvp(apply, (model, jnp.array(2.0)), (None, jnp.array(1.0)))
        >>> float(out[0]), float(tangent[0]), tangent[1]
        (36.0, 36.0, None)
    """
    check_callable(fn, "filter_jvp")
    if "has_aux" in kwargs and not _takes(fn, "has_aux"):
        if not kwargs.pop("has_aux"):
            return _jvp(fn, primals, tangents, kwargs)
        out, tangent = _jvp(fn, primals, tangents, kwargs)
        value, aux = split_aux(out, fn)
        return value, tangent[0], aux  # pyright: ignore[reportReturnType]
    return _jvp(fn, primals, tangents, kwargs)


def _jvp(
    fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    primals, tangents = _as_arguments("primals", primals), _as_arguments("tangents", tangents)
    if len(primals) != len(tangents):
        raise ArgumentError(
            f"`filter_jvp` needs one tangent for each primal, which may be None; got "
            f"{len(primals)} primals and {len(tangents)} tangents."
        )
    leaves, treedef = tree_flatten(primals)
    slopes = check(primals, leaves, tangents, _NAMING)
    moving = [i for i, slope in enumerate(slopes) if slope is not None]
    if not moving:
        out = fn(*primals, **kwargs)
        return out, tree_map(lambda _: None, out)
    returned, passage = Returned(), Passage()

    def on_flat_list(arrays: list[Any]) -> Any:
        out = fn(*passage.unflatten(treedef, filled(leaves, moving, arrays)), **kwargs)
        return returned.put(out, changes_with(arrays))

    at = [leaves[i] if is_array(leaves[i]) else jnp.asarray(leaves[i]) for i in moving]
    outs, out_slopes, carried = jax.jvp(
        on_flat_list, (at,), ([slopes[i] for i in moving],), has_aux=True
    )
    passage.finish()
    return returned.get(outs, carried), returned.derivative(out_slopes)


def changes_with(arrays: list[Any]) -> Callable[[Any], bool]:
    """Whether a value of a function that is differentiated by `arrays` depends on them.

    Args:
        arrays: the tracers that the function was given.
    """
    tag = trace_tag(arrays[0])

    def changes(leaf: Any) -> bool:
        # (Without a tag, zeros are not told from other tangents, and are as right.)
        return is_inexact_array(leaf) and (tag is None or trace_tag(leaf) is tag)

    return changes


def _as_arguments(name: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, tuple | list):
        return tuple(given)
    raise ArgumentTypeError(
        f"`{name}` of `filter_jvp` must be a tuple or list with one entry for each positional "
        f"argument of the function; got {describe(given)}. For a function of one argument: "
        f"`filter_jvp(fn, (x,), (tangent_of_x,))`."
    )


def _takes(fn: Any, name: str) -> bool:
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return False
    catches_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return name in parameters or catches_all


def split_aux(out: Any, fun: Any) -> Any:
    """The two parts of what a function with `has_aux=True` returned."""
    if isinstance(out, tuple | list) and len(out) == 2:
        return out
    raise ArgumentTypeError(
        f"With `has_aux=True` the function must return a pair: the value to differentiate, and "
        f"anything else. `{name_of(fun)}` returned {describe(out)}."
    )
