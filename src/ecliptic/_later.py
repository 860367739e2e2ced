"""Names of a package that are imported when they are first asked for."""

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any


def later(
    package: str, places: Mapping[str, str], *, at_once: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """A `__getattr__` for a package.

    Args:
        package: the name of the package.
        places: where each name is to be found: a module that has it, or that it is.
        at_once: names that are imported now if an environment variable is set, with the variable.
    """
    for name, variable in (at_once or {}).items():
        if os.environ.get(variable):
            importlib.import_module(places[name])

    def __getattr__(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(places[name])
        value = module if module.__name__ == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
