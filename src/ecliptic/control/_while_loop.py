"""`filter_while_loop` and `filter_fori_loop`: those of `jax.lax`, over any PyTree."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jaxtyping import ArrayLike, Bool, Int

from ecliptic.control._carry import Split, loop_wording, with_promotion
from ecliptic.control._eager import run

_Carry = TypeVar("_Carry")


def filter_while_loop(
    cond_fun: Callable[[_Carry], Bool[ArrayLike, ""]],
    body_fun: Callable[[_Carry], _Carry],
    init_val: _Carry,
) -> _Carry:
    """Repeats a function while a condition holds: `jax.lax.while_loop`.

    The carry may be any PyTree. Arrays in it are traced; everything else is held, and both
    functions see it whole. A Python number may change, and is an array then.

    Args:
        cond_fun: a function of the carry that says whether to go on.
        body_fun: a function from one carry to the next.
        init_val: the carry at the start.

    Returns:
        The first carry for which `cond_fun` is false.

    Raises:
        CarryError: if `body_fun` changes the carry's structure, a shape, a dtype, or anything
            that is no array. Lists every such leaf by path.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> def halve(carry):
        ...     return {"x": carry["x"] / 2, "steps": carry["steps"] + 1, "name": carry["name"]}
        >>> out = ec.filter_while_loop(
        ...     lambda carry: carry["x"] > 1, halve, {"x": jnp.array(20.0), "steps": 0, "name": "n"}
        ... )
        >>> float(out["x"]), int(out["steps"]), out["name"]
        (0.625, 5, 'n')
    """
    return run(_while_loop, (body_fun, cond_fun), (init_val,), None)


def _while_loop(
    functions: tuple[Any, ...],
    trees: tuple[Any, ...],
    options: Any,
    learn: Callable[[frozenset[int]], None],
) -> Any:
    (body_fun, cond_fun), (init_val,) = functions, trees
    say = loop_wording("filter_while_loop")

    def attempt(promoted: frozenset[int]) -> Any:
        carry = Split(init_val, promoted)
        last = jax.lax.while_loop(
            lambda arrays: cond_fun(carry.merge(arrays)),
            lambda arrays: carry.accept(body_fun(carry.merge(arrays)), say),
            carry.arrays,
        )
        return carry.merge(last)

    return with_promotion(attempt, learn)


def filter_fori_loop(
    lower: Int[ArrayLike, ""],
    upper: Int[ArrayLike, ""],
    body_fun: Callable[[Int[ArrayLike, ""], _Carry], _Carry],
    init_val: _Carry,
    *,
    unroll: int | bool | None = None,
) -> _Carry:
    """Repeats a function for each integer of a range: `jax.lax.fori_loop`.

    The carry may be any PyTree, as for [`filter_while_loop`][].

    Args:
        lower: the first integer.
        upper: the integer after the last.
        body_fun: a function of the integer and the carry, which returns the next carry.
        init_val: the carry at the start.
        unroll: how many steps are written out in one iteration of the compiled loop, if the range
            is known when tracing. Default: JAX's.

    Returns:
        The carry after the last step; `init_val` if the range is empty.

    Raises:
        CarryError: if `body_fun` changes the carry's structure, a shape, a dtype, or anything
            that is no array. Lists every such leaf by path.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> total, name = ec.filter_fori_loop(
        ...     0, 5, lambda i, carry: (carry[0] + i, carry[1]), (jnp.array(0), "sum")
        ... )
        >>> int(total), name
        (10, 'sum')
    """
    return run(_fori_loop, (body_fun,), (init_val, lower, upper), unroll)


def _fori_loop(
    functions: tuple[Any, ...],
    trees: tuple[Any, ...],
    unroll: Any,
    learn: Callable[[frozenset[int]], None],
) -> Any:
    (body_fun,), (init_val, lower, upper) = functions, trees
    say = loop_wording("filter_fori_loop")

    def attempt(promoted: frozenset[int]) -> Any:
        carry = Split(init_val, promoted)
        last = jax.lax.fori_loop(
            lower,
            upper,
            lambda i, arrays: carry.accept(body_fun(i, carry.merge(arrays)), say),
            carry.arrays,
            unroll=unroll,
        )
        return carry.merge(last)

    return with_promotion(attempt, learn)
