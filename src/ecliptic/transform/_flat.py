"""Calls with any PyTrees, as JAX takes them: functions of one flat list of arrays."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax.tree_util import tree_flatten

from ecliptic.transform._program import Output, pack_output
from ecliptic.transform._wrapper import name_of
from ecliptic.tree import is_array
from ecliptic.tree._passage import Passage


class Flat(NamedTuple):
    """A call whose arrays are the arguments, and whose other leaves are held.

    Args:
        function: takes the arrays as one list, and returns the output: as it is if it consists of
            arrays, and otherwise as an `Output`. `unpack` is for what comes out of JAX.
        arrays: the arrays that the call was given.
        passage: the way of the arguments into the function; to be finished where it is called.
    """

    function: Callable[[list[Any]], Any]
    arrays: list[Any]
    passage: Passage


def flatten_call(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    is_traced: Callable[[Any], bool] = is_array,
) -> Flat:
    """Makes a function of one list out of a call. What `fun` holds is left in it."""
    leaves, treedef = tree_flatten((args, kwargs))
    positions = [i for i, leaf in enumerate(leaves) if is_traced(leaf)]
    arrays = [leaves[i] for i in positions]
    for i in positions:
        # The function may be remembered for longer than the arrays shall be kept.
        leaves[i] = None
    passage = Passage()

    def function(arrays: list[Any]) -> Any:
        filled = leaves.copy()
        for i, array in zip(positions, arrays, strict=True):
            filled[i] = array
        args, kwargs = passage.unflatten(treedef, filled)
        return pack_output(fun(*args, **kwargs))

    function.__name__ = function.__qualname__ = name_of(fun)
    return Flat(function, arrays, passage)


def flatten_call_with_function(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    is_traced: Callable[[Any], bool] = is_array,
) -> Flat:
    """As `flatten_call`, but the arrays of `fun`, if it is a PyTree, come first in the list."""
    flat = flatten_call(_call, (fun, *args), kwargs, is_traced)
    flat.function.__name__ = flat.function.__qualname__ = name_of(fun)
    return flat


def _call(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return fun(*args, **kwargs)


def unpack(out: Any) -> Any:
    """The user's output."""
    return out.rebuild() if type(out) is Output else out
