"""Programs of JAX, evaluated operation by operation, and the programs inside of operations."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from ecliptic import _jax


@functools.cache
def _kinds() -> tuple[type, type]:
    """The types of programs with constants and without. From JAX 0.12 on they are one."""
    program = jax.make_jaxpr(lambda: ())()
    return type(program), type(program.jaxpr)


def evaluate(
    jaxpr: Any,
    consts: Sequence[Any],
    args: Sequence[Any],
    apply: Callable[[Any, list[Any]], Sequence[Any]],
) -> list[Any]:
    """Evaluates a program.

    Args:
        jaxpr: the program.
        consts: its constants.
        args: its arguments.
        apply: what to do for an operation, given that and its arguments: returns its results.
    """
    known: dict[Any, Any] = {}

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, _jax.Literal) else known[atom]

    def write(variables: Sequence[Any], values: Sequence[Any]) -> None:
        known.update(zip(variables, values, strict=True))

    write(jaxpr.constvars, consts)
    write(jaxpr.invars, args)
    for eqn in jaxpr.eqns:
        stack = _jax.current_name_stack() + eqn.source_info.name_stack
        origin = _jax.user_context(eqn.source_info.traceback, name_stack=stack)
        with origin, eqn.ctx.manager:
            write(eqn.outvars, apply(eqn, [read(atom) for atom in eqn.invars]))
    return [read(atom) for atom in jaxpr.outvars]


def bind(eqn: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Does what an operation does, with other arguments and parameters."""
    made = eqn.primitive.get_bind_params(params)
    # Before JAX 0.10, functions among the parameters came apart from them.
    functions, rest = ((), made) if isinstance(made, dict) else made
    out = eqn.primitive.bind(*functions, *args, **rest)
    return list(out) if eqn.primitive.multiple_results else [out]


def closed(jaxpr: Any, consts: Sequence[Any] = ()) -> Any:
    """A program with its constants."""
    return _kinds()[0](jaxpr, list(consts))


def with_constants_first(jaxpr: Any, count: int, like: Any) -> Any:
    """A program without its constants that takes so many of its arguments as constants.

    Args:
        jaxpr: the program.
        count: how many of its first arguments are constants.
        like: the program that it replaces: what JAX says of arguments in messages is said there.
    """
    variables = jaxpr.invars
    return jaxpr.replace(
        constvars=variables[:count], invars=variables[count:], debug_info=like.debug_info
    )


def trace(function: Callable[..., Any], avals: Sequence[Any]) -> Any:
    """The program of a function of arrays of these types."""
    return jax.make_jaxpr(function)(*avals)


def programs(params: dict[str, Any]) -> list[Any]:
    """The programs among an operation's parameters."""
    found: list[Any] = []
    for value in params.values():
        _each(value, lambda program: found.append(program) or program)
    return found


def with_programs(params: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The parameters of an operation with other programs in them.

    Args:
        params: the parameters.
        change: takes a program, with constants or without, and returns one like it.
    """
    return {name: _each(value, change) for name, value in params.items()}


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, _kinds()):
        return change(value)
    if isinstance(value, tuple | list):
        items = [_each(item, change) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        named = getattr(value, "_make", None)
        return type(value)(items) if named is None else named(items)
    return value


def is_closed(program: Any) -> bool:
    """Whether a program comes with its constants."""
    return isinstance(program, _kinds()[0])
