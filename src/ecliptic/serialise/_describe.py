"""What is written about a tree besides its leaves: versions, and what its modules are."""

import dataclasses
import functools
import importlib.metadata
import platform
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.tree_util as jtu
import numpy as np
from jaxtyping import PyTree

from ecliptic.module import Module, ModuleMeta
from ecliptic.tree import format_path


def versions() -> dict[str, str]:
    """The versions of what takes part in writing a file."""
    try:
        own = importlib.metadata.version("ecliptic")
    except importlib.metadata.PackageNotFoundError:
        own = "unknown"
    return {
        "ecliptic": own,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def describe_function(x: Any) -> str:
    """Name what cannot be written, the same in each process: no addresses."""
    if isinstance(x, functools.partial):
        return f"functools.partial of {describe_function(x.func)}"
    name = getattr(x, "__qualname__", None)
    if callable(x) and isinstance(name, str):
        return f"{getattr(x, '__module__', '?')}.{name}"
    return f"an object of type {type(x).__module__}.{type(x).__qualname__}"


def configuration(tree: PyTree) -> dict[str, dict[str, Any]]:
    """The static fields of every Module in a tree, by its path, as JSON.

    What JSON has no form for, such as a function, is described in words.
    """
    return {
        format_path(path): {"class": f"{type(m).__module__}.{type(m).__qualname__}"} | _fields(m)
        for path, m in _modules(tree, ())
    }


def _modules(tree: PyTree, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Module]]:
    if _is_module(tree):
        yield path, tree
        for name, value in _values(tree):
            # Most of what a module holds is an array.
            if not isinstance(value, jax.Array):
                yield from _modules(value, (*path, jtu.GetAttrKey(name)))
    elif any(map(_is_module, jtu.tree_leaves(tree, is_leaf=_is_module))):
        for below, node in jtu.tree_flatten_with_path(tree, is_leaf=_is_module)[0]:
            if _is_module(node):
                yield from _modules(node, (*path, *below))


def _values(module: Module) -> Iterator[tuple[str, Any]]:
    declared: Any = dataclasses.fields(module)
    for f in declared:
        if not f.metadata.get("static", False) and hasattr(module, f.name):
            yield f.name, getattr(module, f.name)


def _is_module(node: Any) -> bool:
    # (To ask for an instance of `Module` takes ten times as long.)
    return isinstance(type(node), ModuleMeta)


def _fields(module: Module) -> dict[str, Any]:
    declared: Any = dataclasses.fields(module)
    static = {
        f.name: as_json(getattr(module, f.name))
        for f in declared
        if f.metadata.get("static", False) and hasattr(module, f.name)
    }
    return {"static": static} if static else {}


def as_json(value: Any) -> Any:
    """A static value as JSON."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float) and type(value) in (int, float):
        return value
    if isinstance(value, list | tuple):
        return [as_json(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): as_json(v) for k, v in value.items()}
    if isinstance(value, np.dtype):
        return value.name
    return describe_function(value)
