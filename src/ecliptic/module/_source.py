"""Functions compiled from generated source.

The code that runs for each Module at each flatten, unflatten and construction is written out for
the class at hand: a loop over field names costs several times the straight line. The source is
registered with `linecache`, so tracebacks show it and a debugger steps through it.
"""

import itertools
import linecache
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


def tuple_display(items: list[str]) -> str:
    """The source of a tuple of the given expressions; `()` if there are none."""
    return f"({', '.join(items)},)" if items else "()"
