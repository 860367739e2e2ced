"""The code behind a callable, and what the callable captures beside it."""

import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any

from ecliptic.module import Partial

# Under which names wrappers hold what they wrap.
_INNER = ("__wrapped__", "__func__")

# Wrappers around wrappers are followed this far, in case one contains itself.
_MAX_DEPTH = 64


def unwrapped(fun: Any) -> Iterator[Any]:
    """A callable, what it wraps, what that wraps, and so on."""
    for _ in range(_MAX_DEPTH):
        yield fun
        names = ("func",) if isinstance(fun, functools.partial | Partial) else _INNER
        inner = next(
            (x for x in (getattr(fun, name, None) for name in names) if x is not None), None
        )
        if inner is None or inner is fun:
            return
        fun = inner


def code_of(fun: Any) -> types.CodeType | None:
    """The code of a function, a method, a callable object, or of what one of these wraps.

    None if it is not written in Python.
    """
    innermost = fun
    for innermost in unwrapped(fun):
        code = getattr(innermost, "__code__", None)
        if isinstance(code, types.CodeType):
            return code
    # Not whether it can be called, but with which function.
    for layer in unwrapped(getattr(type(innermost), "__call__", None)):  # noqa: B004
        code = getattr(layer, "__code__", None)
        if isinstance(code, types.CodeType):
            return code
    return None


def place_of(code: types.CodeType | None) -> str:
    """Where code is written, as `file:line`; empty for none."""
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def parameters_of(fun: Any) -> list[str]:
    """The names of the parameters that can be given by position; empty if that is not known."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in positional]


def captured_by(fun: Any) -> dict[str, Any]:
    """What a function or `functools.partial` brings with it, by name; empty for anything else.

    That is what it closes over, the defaults of its parameters, and arguments that are filled in.
    """
    if isinstance(fun, functools.partial):
        names = parameters_of(fun.func)
        filled = {
            (names[i] if i < len(names) else f"args[{i}]"): value
            for i, value in enumerate(fun.args)
        }
        return {**filled, **fun.keywords}
    if not isinstance(fun, types.FunctionType):
        return {}
    found = {}
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            # Not yet assigned.
            continue
    positional = fun.__code__.co_varnames[: fun.__code__.co_argcount]
    defaults = fun.__defaults__ or ()
    found.update(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    found.update(fun.__kwdefaults__ or {})
    return found
