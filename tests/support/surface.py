"""The public surface as data: what is offered, and how it is called.

`python -m tests.support.surface` (or `make surface`) writes it down anew; the difference is then
read in review. Annotations are left out, because their text differs between versions of Python
and JAX; a default is kept where its text is the same everywhere.
"""

import importlib
import inspect
import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ecliptic
from conformance.surface import Shown, bare_signature

SNAPSHOT = Path(__file__).parents[1] / "meta" / "surface.json"

# Classes that a metaclass of `typing` or `enum` builds have constructors of its own making.
_PLAIN_DEFAULTS = (type(None), bool, int, float, str)


def namespaces() -> dict[str, types.ModuleType]:
    """Every module whose names are promised: the root, its public modules, and the errors."""
    found = {"ecliptic": ecliptic, "ecliptic.errors": importlib.import_module("ecliptic.errors")}
    for name in ecliptic.__all__:
        value = getattr(ecliptic, name)
        # (Names of the drop-in are names of Ecliptic's, mapped.)
        if isinstance(value, types.ModuleType) and not value.__name__.startswith("ecliptic.compat"):
            found[value.__name__] = value
    return found


def public_names(module: types.ModuleType) -> list[str]:
    """The names that a module promises: its `__all__`, or the classes that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return sorted(
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    )


def public_values() -> Iterator[tuple[str, Any]]:
    """Each promised name with its value, modules left out, and under the first of its names."""
    seen: set[int] = set()
    for prefix, module in namespaces().items():
        for name in public_names(module):
            value = getattr(module, name)
            if not isinstance(value, types.ModuleType) and id(value) not in seen:
                seen.add(id(value))
                yield f"{prefix}.{name}", value


def describe() -> dict[str, Any]:
    """The whole surface, in an order that depends on names alone."""
    return {name: _describe(value) for name, value in sorted(public_values())}


def _describe(value: Any) -> Any:
    if inspect.isclass(value):
        if issubclass(value, BaseException):
            return {"kind": "exception", "bases": [base.__name__ for base in value.__bases__]}
        return {"kind": "class", "signature": _signature(value), "methods": _methods(value)}
    if callable(value):
        return {"kind": "function", "signature": _signature(value)}
    return {"kind": type(value).__name__}


def _methods(cls: type) -> dict[str, Any]:
    found = {}
    for name in sorted(dir(cls)):
        if name.startswith("_") and name not in ("__call__", "__getitem__", "__len__", "__iter__"):
            continue
        value = getattr(cls, name)
        if isinstance(value, property):
            found[name] = "property"
        elif callable(value):
            found[name] = _signature(value)
    return found


def _signature(value: Any) -> str:
    signature = bare_signature(value, _default)
    return "?" if signature is None else str(signature)


def _default(value: Any) -> Any:
    if value is inspect.Parameter.empty or type(value) in _PLAIN_DEFAULTS or value == ():
        return value
    return Shown()


def main() -> None:
    """Write the surface down."""
    SNAPSHOT.write_text(json.dumps(describe(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
