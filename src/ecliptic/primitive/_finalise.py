"""Programs for those who know the operations of JAX alone, such as exporters.

Operations that Ecliptic, or any library that builds on it, adds to JAX are replaced by what they
consist of. That comes last: what an operation says of its derivatives and of `jax.vmap` is lost.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from ecliptic._jax._evaluate import (
    bind,
    closed,
    evaluate,
    is_closed,
    programs,
    trace,
    with_constants_first,
    with_programs,
)
from ecliptic.errors import RuleError
from ecliptic.primitive._operands import Output, fill, is_traced, split
from ecliptic.primitive._registry import primitive_finalisations
from ecliptic.tree import is_array_like


def finalise_jaxpr(jaxpr: Any) -> Any:
    """The program with operations of JAX alone.

    Args:
        jaxpr: a program with its constants, as `jax.make_jaxpr` returns it.

    Returns:
        One that computes the same. The very same if there is nothing to replace. Programs inside of
        operations (`scan`, `while`, `cond`, `jit`, `checkpoint`, `shard_map`, functions with rules
        of their own for derivatives, operands of filtered primitives) are finalised too.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> program = jax.make_jaxpr(exp.unvmap_any)(jnp.array([True]))
        >>> [eqn.primitive.name for eqn in exp.finalise_jaxpr(program).eqns]
        ['reduce_or']
    """
    if not _has_work(jaxpr.jaxpr):
        return jaxpr
    return trace(finalise_jaxpr_as_fn(jaxpr), jaxpr.in_avals)


def finalise_jaxpr_as_fn(jaxpr: Any) -> Callable[..., list[Any]]:
    """The function of arrays that a program is, with operations of JAX alone.

    Args:
        jaxpr: a program with its constants, as `jax.make_jaxpr` returns it.

    Returns:
        A function of its arguments that returns a list.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> program = jax.make_jaxpr(exp.unvmap_any)(jnp.array([True]))
        >>> exp.finalise_jaxpr_as_fn(program)(jnp.array([False]))
        [Array(False, dtype=bool)]
    """
    return functools.partial(finalise_eval_jaxpr, jaxpr.jaxpr, jaxpr.consts)


def finalise_eval_jaxpr(jaxpr: Any, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Evaluates a program with operations of JAX alone.

    Args:
        jaxpr: a program without its constants.
        consts: its constants.
        *args: its arguments.

    Returns:
        Its results.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> x = jnp.array([False, True])
        >>> program = jax.make_jaxpr(exp.unvmap_any)(x)
        >>> exp.finalise_eval_jaxpr(program.jaxpr, program.consts, x)
        [Array(True, dtype=bool)]
    """
    return evaluate(jaxpr, consts, args, _apply)


def finalise_fn(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function with operations of JAX alone.

    Args:
        fn: any function of PyTrees that JAX can trace. What is no array among its arguments, nor
            a number, is handed to it as it is; so is what is no array in its output.

    Returns:
        A function that computes the same.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> f = exp.finalise_fn(lambda x: exp.unvmap_any(x > 2))
        >>> [eqn.primitive.name for eqn in jax.make_jaxpr(f)(jnp.ones(2)).eqns]
        ['gt', 'reduce_or']
    """

    @functools.wraps(fn)
    def finalised(*args: Any, **kwargs: Any) -> Any:
        given = split((args, kwargs), lambda leaf: is_traced(leaf) or is_array_like(leaf))
        output = Output()

        def flat(*arrays: Any) -> list[Any]:
            args, kwargs = fill(given.static, given.treedef, arrays)
            return output.put(fn(*args, **kwargs))

        program = jax.make_jaxpr(flat)(*given.arrays)
        return output.tree(finalise_jaxpr_as_fn(program)(*given.arrays), fn)

    return finalised


def finalise_make_jaxpr(
    fn: Callable[..., Any], *, return_shape: bool = False
) -> Callable[..., Any]:
    """As `jax.make_jaxpr`, with operations of JAX alone.

    Args:
        fn: the function.
        return_shape: whether to return the shape of the output as well.

    Returns:
        A function of the arguments of `fn` that returns the program, or the program and the output
        with a `jax.ShapeDtypeStruct` in place of each array.

    !!! Example

        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> program = exp.finalise_make_jaxpr(exp.unvmap_any)(jnp.array([True]))
        >>> [eqn.primitive.name for eqn in program.eqns]
        ['reduce_or']
    """

    @functools.wraps(fn)
    def make(*args: Any, **kwargs: Any) -> Any:
        program, shape = jax.make_jaxpr(fn, return_shape=True)(*args, **kwargs)
        program = finalise_jaxpr(program)
        return (program, shape) if return_shape else program

    return make


def _has_work(jaxpr: Any) -> bool:
    """Whether there is anything to replace in a program, or in one inside of it."""
    return any(
        eqn.primitive in primitive_finalisations
        or any(_has_work(p.jaxpr if is_closed(p) else p) for p in programs(eqn.params))
        for eqn in jaxpr.eqns
    )


def _apply(eqn: Any, args: list[Any], within: Any = None) -> list[Any]:
    """The results of an operation. A rule may consist of the very operation that it is `within`."""
    rule = primitive_finalisations.get(eqn.primitive)
    if rule is not None and eqn.primitive is not within:
        return _replaced(rule, eqn, args)
    if not any(_has_work(p.jaxpr if is_closed(p) else p) for p in programs(eqn.params)):
        return bind(eqn, args, eqn.params)
    special = _SPECIAL.get(eqn.primitive.name)
    if special is not None:
        return special(eqn, args)
    return bind(eqn, args, with_programs(eqn.params, lambda p: _program(p, eqn)))


def _replaced(rule: Callable[..., Any], eqn: Any, args: list[Any]) -> list[Any]:
    def flat(*args: Any) -> list[Any]:
        out = rule(*args, **eqn.params)
        return list(out) if eqn.primitive.multiple_results else [out]

    program = jax.make_jaxpr(flat)(*args)
    within = functools.partial(_apply, within=eqn.primitive)
    return evaluate(program.jaxpr, program.consts, args, within)


def _program(program: Any, eqn: Any) -> Any:
    if is_closed(program):
        return finalise_jaxpr(program)
    if not _has_work(program):
        return program
    count = len(program.constvars)
    made = trace(
        lambda *args: finalise_eval_jaxpr(program, args[:count], *args[count:]),
        [v.aval for v in (*program.constvars, *program.invars)],
    )
    if made.consts:
        raise RuleError(
            f"The program inside of the operation `{eqn.primitive}` cannot be finalised, since an "
            f"operation in it becomes one with constants, {made.consts}, and `{eqn.primitive}` has "
            "no place for these. Make them inside of the rule, by `jax.numpy`."
        )
    return with_constants_first(made.jaxpr, count, program) if count else made.jaxpr


def _shard_map(eqn: Any, args: list[Any]) -> list[Any]:
    """Traced anew where the axes of its mesh are known."""
    params = eqn.params
    names = params.get("newly_manual_axes", params.get("manual_axes"))
    mapped = jax.shard_map(
        lambda *args: tuple(finalise_eval_jaxpr(params["jaxpr"], (), *args)),
        mesh=params["mesh"],
        in_specs=tuple(params["in_specs"]),
        out_specs=tuple(params["out_specs"]),
        check_vma=params["check_vma"],
        axis_names=names,
    )
    return list(mapped(*args))


def _checkpoint(eqn: Any, args: list[Any]) -> list[Any]:
    """Its program has no constants: those that came about are arguments of it."""
    made = finalise_jaxpr(closed(eqn.params["jaxpr"]))
    call = jax.checkpoint(
        lambda *args: tuple(finalise_eval_jaxpr(made.jaxpr, made.consts, *args)),
        prevent_cse=eqn.params["prevent_cse"],
        policy=eqn.params["policy"],
    )
    return list(call(*args))


_SPECIAL: dict[str, Callable[[Any, list[Any]], list[Any]]] = {
    "shard_map": _shard_map,
    "checkpoint": _checkpoint,
    "remat2": _checkpoint,
}
