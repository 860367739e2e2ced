"""`filter_cond` and `filter_switch`: those of `jax.lax`, over any PyTree."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import ArrayLike, Bool, Int

from ecliptic.control._carry import Split, branch_wording, with_promotion
from ecliptic.control._eager import run
from ecliptic.errors import ArgumentError
from ecliptic.runtime._active import only_where

_Out = TypeVar("_Out")

_unset: Any = object()


def filter_cond(
    pred: Bool[ArrayLike, ""],
    true_fun: Callable[..., _Out],
    false_fun: Callable[..., _Out],
    *operands: Any,
    operand: Any = _unset,
) -> _Out:
    """Applies one of two functions: `jax.lax.cond`.

    Operands and outputs may be any PyTrees. Arrays are traced, everything else is held. What is
    no array in the outputs has to be the same in both; Python numbers that differ become arrays.

    Args:
        pred: which one: a boolean scalar. Both are traced, even if it is known.
        true_fun: called with the operands if `pred` is true.
        false_fun: called with the operands if `pred` is false.
        *operands: any PyTrees.
        operand: a single operand by keyword, in place of `operands`.

    Returns:
        What the chosen function returns.

    Raises:
        CarryError: if the two outputs differ in structure, a shape, a dtype, or anything that is no
            array. Lists every such leaf by path.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> def apply(f, x):
        ...     return f, f(x)
        >>> def skip(f, x):
        ...     return f, x
        >>> f, y = ec.filter_cond(jnp.array(True), apply, skip, jnp.square, jnp.array(3.0))
        >>> f is jnp.square, float(y)
        (True, 9.0)
    """
    operands = _operands(operands, operand, "filter_cond")
    return run(_cond, (true_fun, false_fun), (jnp.asarray(pred), operands), None)


def _cond(
    functions: tuple[Any, ...],
    trees: tuple[Any, ...],
    options: Any,
    learn: Callable[[frozenset[int]], None],
) -> Any:
    (true_fun, false_fun), (pred, operands) = functions, trees

    def select(functions: list[Callable[..., Any]], arrays: list[Any]) -> Any:
        if_true = only_where(functions[0], lambda _: pred.astype(bool))
        if_false = only_where(functions[1], lambda _: jnp.logical_not(pred))
        return jax.lax.cond(pred, if_true, if_false, arrays)

    return _branch(
        "filter_cond", {"`true_fun`": true_fun, "`false_fun`": false_fun}, operands, select
    )


def filter_switch(
    index: Int[ArrayLike, ""],
    branches: Sequence[Callable[..., _Out]],
    *operands: Any,
    operand: Any = _unset,
) -> _Out:
    """Applies one of several functions: `jax.lax.switch`.

    Operands and outputs may be any PyTrees, as for [`filter_cond`][].

    Args:
        index: which one, an integer scalar; clamped to the range of `branches`.
        branches: the functions.
        *operands: any PyTrees.
        operand: a single operand by keyword, in place of `operands`.

    Returns:
        What the chosen function returns.

    Raises:
        ArgumentError: if there are no branches.
        CarryError: if two outputs differ in structure, a shape, a dtype, or anything that is no
            array. Lists every such leaf by path.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> float(ec.filter_switch(1, [jnp.sin, jnp.square, jnp.cos], jnp.array(3.0)))
        9.0
    """
    operands = _operands(operands, operand, "filter_switch")
    branches = list(branches)
    if not branches:
        raise ArgumentError("`filter_switch` needs at least one function in `branches`; got none.")
    return run(_switch, tuple(branches), (jnp.asarray(index), operands), None)


def _switch(
    functions: tuple[Any, ...],
    trees: tuple[Any, ...],
    options: Any,
    learn: Callable[[frozenset[int]], None],
) -> Any:
    index, operands = trees

    def select(traced: list[Callable[..., Any]], arrays: list[Any]) -> Any:
        def chosen(number: int) -> Callable[..., Any]:
            return lambda _: jnp.clip(index, 0, len(traced) - 1) == number

        branches = [only_where(branch, chosen(i)) for i, branch in enumerate(traced)]
        return jax.lax.switch(index, branches, arrays)

    named = {f"branch {i}": function for i, function in enumerate(functions)}
    return _branch("filter_switch", named, operands, select)


def _operands(operands: tuple[Any, ...], operand: Any, construct: str) -> tuple[Any, ...]:
    if operand is _unset:
        return operands
    if operands:
        raise ArgumentError(
            f"`{construct}` takes operands by position or `operand=`; got {len(operands)} by "
            f"position, and `operand=` too."
        )
    return (operand,)


def _branch(
    construct: str,
    functions: dict[str, Callable[..., Any]],
    operands: tuple[Any, ...],
    select: Callable[[list[Callable[..., Any]], list[Any]], Any],
) -> Any:
    """Traces every function; the first fixes what the others have to return."""
    given = Split(operands)

    def attempt(promoted: frozenset[int]) -> Any:
        first: list[tuple[str, Split]] = []

        def traced(name: str, function: Callable[..., Any]) -> Callable[[list[Any]], list[Any]]:
            def branch(arrays: list[Any]) -> list[Any]:
                out = function(*given.enter(arrays))
                if first and first[0][0] != name:
                    return first[0][1].accept(out, branch_wording(construct, first[0][0], name))
                split = Split(out, promoted)
                arrays_out = split.arrays
                first[:] = [(name, split.described())]
                return arrays_out

            return branch

        arrays = select([traced(n, f) for n, f in functions.items()], given.arrays)
        given.finish()
        return first[0][1].merge(arrays)

    return with_promotion(attempt, lambda _: None)
