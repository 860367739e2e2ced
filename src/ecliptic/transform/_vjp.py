"""`filter_vjp`: vector-Jacobian products over any PyTree."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

import jax
from jax.tree_util import tree_flatten
from jaxtyping import PyTree

from ecliptic.errors import ArgumentError
from ecliptic.module import Module, field
from ecliptic.transform._jvp import split_aux
from ecliptic.transform._returned import Given, Returned, filled
from ecliptic.transform._tangents import Naming, check
from ecliptic.transform._wrapper import check_callable
from ecliptic.tree import is_inexact_array
from ecliptic.tree._passage import Passage

_T = TypeVar("_T")

_NAMING = Naming("cotangent", "cotangent", "out")


class _Pullback(Module):
    """Takes the cotangent of an output back to the arguments. A PyTree of what that needs."""

    _vjp: Any
    _arguments: Given = field(static=True, repr=False)
    _output: Returned = field(static=True, repr=False)

    def __call__(self, cotangent: PyTree, /) -> tuple[Any, ...]:
        """The cotangents of the arguments, with None for what is not differentiated."""
        slots = self._output.slots()
        likeness = self._output.treedef.unflatten(slots)
        given = check(likeness, slots, cotangent, _NAMING)
        (slopes,) = self._vjp(
            [
                slot.zeros() if value is None else value
                for slot, value in zip(slots, given, strict=True)
                if slot.picked
            ]
        )
        return self._arguments.derivative(slopes)


def check_has_aux(has_aux: Any) -> None:
    """Refuses what is no boolean: an argument of the function, most often."""
    if not isinstance(has_aux, bool):
        raise ArgumentError(f"`has_aux` must be True or False; got {has_aux!r}.")


@overload
def filter_vjp(
    fun: Callable[..., _T], *primals: Any, has_aux: Literal[False] = False, **kwargs: Any
) -> tuple[_T, Callable[..., Any]]: ...


@overload
def filter_vjp(
    fun: Callable[..., tuple[_T, Any]], *primals: Any, has_aux: Literal[True], **kwargs: Any
) -> tuple[_T, Callable[..., Any], Any]: ...


def filter_vjp(fun: Any, *primals: Any, has_aux: bool = False, **kwargs: Any) -> Any:
    """Calls a function, and returns with its output what pulls cotangents back through it.

    As `jax.vjp`, for any PyTrees: all floating-point and complex arrays of all positional
    arguments are differentiated.

    Args:
        fun: the function.
        *primals: its positional arguments.
        has_aux: whether `fun` returns a pair, of what is differentiated and anything else.
            Default: false.
        **kwargs: keyword arguments of `fun`, which are not differentiated.

    Returns:
        The output, and a function. It takes the cotangent of the output: a tree of its structure,
        with None for zero and for all that is no floating-point or complex array. It returns a
        tuple with the cotangent of each argument, where None stands for what is not
        differentiated. It is a PyTree, so it can go in and out of other transformations. With
        `has_aux`, the auxiliary output comes third.

    Raises:
        ArgumentTypeError: if `fun` cannot be called, or returns no pair with `has_aux`; from the
            function that is returned, if there is a cotangent where none can be, or one of
            another dtype.
        ArgumentError: from the function that is returned, if a cotangent has another shape.
        StructureError: from the function that is returned, if the cotangent has another
            structure than the output.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> def apply(model, x):
        ...     return model["activation"](model["weight"] * x), "done"
        >>> model = {"activation": jnp.square, "weight": jnp.array(3.0)}
        >>> out, pull = ec.filter_vjp(apply, model, jnp.array(2.0))
        >>> of_model, of_x = pull((jnp.array(1.0), None))
        >>> float(of_model["weight"]), of_model["activation"], float(of_x)
        (24.0, None, 36.0)
    """
    check_callable(fun, "filter_vjp")
    check_has_aux(has_aux)
    leaves, treedef = tree_flatten(primals)
    positions = [i for i, leaf in enumerate(leaves) if is_inexact_array(leaf)]
    returned, auxiliary, passage = Returned(), Returned(), Passage()

    def on_flat_list(arrays: list[Any]) -> Any:
        out = fun(*passage.unflatten(treedef, filled(leaves, positions, arrays)), **kwargs)
        out, aux = split_aux(out, fun) if has_aux else (out, None)
        outs, carried = returned.put(out, is_inexact_array)
        _, of_aux = auxiliary.put(aux, lambda _: False)
        return outs, (carried, of_aux)

    outs, vjp, (carried, of_aux) = jax.vjp(
        on_flat_list, [leaves[i] for i in positions], has_aux=True
    )
    passage.finish()
    pull = _Pullback(vjp, Given(treedef, leaves, is_inexact_array), returned)
    out = returned.get(outs, carried)
    return (out, pull, auxiliary.get((), of_aux)) if has_aux else (out, pull)
