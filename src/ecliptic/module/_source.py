"""Functions compiled from generated source.

The code that runs for each Module at each flatten, unflatten and construction is written out for
the class at hand: a loop over field names costs several times the straight line. The source is
registered with `linecache`, so tracebacks show it and a debugger steps through it.
"""

import itertools
import linecache
import types
from collections.abc import Callable, Mapping
from typing import Any

_serial = itertools.count()

# What the file names of generated functions begin with.
GENERATED = "<ecliptic "


def compile_function(
    name: str, source: str, variables: Mapping[str, Any], *, label: str
) -> Callable[..., Any]:
    """Compiles `source`, which defines the function `name`.

    Args:
        name: the function that `source` defines.
        source: the text of one `def`.
        variables: the globals of the function.
        label: who it is for, shown as its file name in tracebacks.

    Returns:
        The function.
    """
    filename = f"{GENERATED}{label}.{name} #{next(_serial)}>"
    scope = dict(variables)
    exec(compile(source, filename, "exec"), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return scope[name]


def compile_lazily(
    name: str, write: Callable[[], str], variables: Mapping[str, Any], *, label: str
) -> Callable[..., Any]:
    """A function that is compiled when it is first called.

    Most classes of a program that is just being imported are not used in it, and compiling is
    what making a class costs most. The function object stays the same and is given its code
    then, so whoever holds it (JAX's registry) calls the compiled code without a detour.

    Args:
        name: the function.
        write: writes its source. It takes positional arguments only.
        variables: the globals of the function.
        label: who it is for, shown as its file name in tracebacks.

    Returns:
        The function.
    """

    def become() -> Callable[..., Any]:
        function.__code__ = compile_function(name, write(), variables, label=label).__code__
        return function

    scope = {**variables, "become": become}
    function: Any = types.FunctionType(_NOT_YET, scope, name)
    return function


# Of a lambda: functions with a name are wrapped under jaxtyping's import hook.
_NOT_YET = (lambda *args: become()(*args)).__code__  # pyright: ignore[reportUndefinedVariable]


def tuple_display(items: list[str]) -> str:
    """The source of a tuple of the given expressions; `()` if there are none."""
    return f"({', '.join(items)},)" if items else "()"
