"""`filter_linearize`: the linear approximation of a function over any PyTree."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

import jax
from jax.tree_util import tree_flatten

from ecliptic.errors import ArgumentError
from ecliptic.module import Module, field
from ecliptic.transform._jvp import changes_with, split_aux
from ecliptic.transform._returned import Given, Returned, filled
from ecliptic.transform._tangents import Naming, check
from ecliptic.transform._vjp import check_has_aux
from ecliptic.transform._wrapper import check_callable
from ecliptic.tree import is_inexact_array
from ecliptic.tree._passage import Passage

_T = TypeVar("_T")

_NAMING = Naming("tangent", "tangents", "primals")


class _Pushforward(Module):
    """Takes tangents of the arguments forward to the output. A PyTree of what that needs."""

    # None if nothing is differentiated.
    _linear: Any
    _arguments: Given = field(static=True, repr=False)
    _output: Returned = field(static=True, repr=False)

    def __call__(self, /, *tangents: Any) -> Any:
        """The tangent of the output, with None for what does not depend on the arguments."""
        slots = self._arguments.slots()
        likeness = self._arguments.treedef.unflatten(slots)
        if len(tangents) != len(likeness):
            raise ArgumentError(
                f"The linear function takes one tangent for each argument that `filter_linearize` "
                f"was given, which may be None: {len(likeness)}; got {len(tangents)}."
            )
        slopes = check(likeness, slots, tangents, _NAMING)
        if self._linear is None:
            return self._output.derivative([])
        given = [
            slot.zeros() if slope is None else slope
            for slot, slope in zip(slots, slopes, strict=True)
            if slot.picked
        ]
        return self._output.derivative(self._linear(given))


@overload
def filter_linearize(
    fun: Callable[..., _T], *primals: Any, has_aux: Literal[False] = False, **kwargs: Any
) -> tuple[_T, Callable[..., Any]]: ...


@overload
def filter_linearize(
    fun: Callable[..., tuple[_T, Any]], *primals: Any, has_aux: Literal[True], **kwargs: Any
) -> tuple[_T, Callable[..., Any], Any]: ...


def filter_linearize(fun: Any, *primals: Any, has_aux: bool = False, **kwargs: Any) -> Any:
    """Calls a function, and returns with its output what pushes tangents forward through it.

    As `jax.linearize`, for any PyTrees: all floating-point and complex arrays of all positional
    arguments are differentiated. Unlike `filter_jvp`, `fun` runs once for any number of tangents.

    Args:
        fun: the function.
        *primals: its positional arguments.
        has_aux: whether `fun` returns a pair, of what is differentiated and anything else.
            Default: false.
        **kwargs: keyword arguments of `fun`, which are not differentiated.

    Returns:
        The output, and a linear function. It takes the tangent of each argument: a tree of its
        structure, with None for zero and for all that is no floating-point or complex array. It
        returns the tangent of the output, with None for what does not depend on the arguments.
        It is a PyTree, so it can go in and out of other transformations. With `has_aux`, the
        auxiliary output comes third.

    Raises:
        ArgumentTypeError: if `fun` cannot be called, or returns no pair with `has_aux`; from the
            linear function, if there is a tangent where none can be, or one of another dtype.
        ArgumentError: from the linear function, if there are too few or too many tangents, or
            one has another shape.
        StructureError: from the linear function, if a tangent has another structure than its
            argument.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> def apply(model, x):
        ...     return model["activation"](model["weight"] * x), "done"
        >>> model = {"activation": jnp.square, "weight": jnp.array(3.0)}
        >>> out, push = ec.filter_linearize(apply, model, jnp.array(2.0))
        >>> tangent = push(None, jnp.array(1.0))
        >>> float(tangent[0]), tangent[1]
        (36.0, None)
    """
    check_callable(fun, "filter_linearize")
    check_has_aux(has_aux)
    leaves, treedef = tree_flatten(primals)
    positions = [i for i, leaf in enumerate(leaves) if is_inexact_array(leaf)]
    arguments = Given(treedef, leaves, is_inexact_array)
    returned, auxiliary, passage = Returned(), Returned(), Passage()

    def on_flat_list(arrays: list[Any]) -> Any:
        out = fun(*passage.unflatten(treedef, filled(leaves, positions, arrays)), **kwargs)
        out, aux = split_aux(out, fun) if has_aux else (out, None)
        outs, carried = returned.put(out, changes_with(arrays) if arrays else lambda _: False)
        _, of_aux = auxiliary.put(aux, lambda _: False)
        return outs, (carried, of_aux)

    if positions:
        outs, linear, (carried, of_aux) = jax.linearize(
            on_flat_list, [leaves[i] for i in positions], has_aux=True
        )
    else:
        linear = None
        outs, (carried, of_aux) = on_flat_list([])
    passage.finish()
    push = _Pushforward(linear, arguments, returned)
    out = returned.get(outs, carried)
    return (out, push, auxiliary.get((), of_aux)) if has_aux else (out, push)
