"""What of an instance is copied and pickled.

Python copies functions by reference: by module and name. The objects that JAX makes of functions
(`jax.nn.relu` is a `jax.custom_jvp`, `jax.numpy.tanh` a jitted function) are copied by value, which
gives another function that is equal to nothing, or fails. Where such an object is what its own
module and name lead to, it is a function like any other, and is stored as that.
"""

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

# Where functions of JAX have their public names; the modules that they are defined in move.
_PUBLIC = ("jax.nn", "jax.numpy", "jax.lax", "jax.numpy.linalg", "jax.scipy.special", "jax.random")

# Python's own ways with these are right.
_COPIED_BY_NAME = (types.FunctionType, types.BuiltinFunctionType, type)


class Reference:
    """Stands for an object that is found under a name in a module."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def resolve(self) -> Any:
        """The object."""
        return _look_up(importlib.import_module(self.module), self.name)


def _look_up(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def reference(leaf: Any) -> Any:
    """A reference to `leaf` if it is a named function of some kind; else itself."""
    if not callable(leaf) or isinstance(leaf, _COPIED_BY_NAME):
        return leaf
    name = getattr(leaf, "__qualname__", None) or getattr(leaf, "__name__", None)
    own = getattr(leaf, "__module__", None)
    if not isinstance(name, str) or not isinstance(own, str):
        return leaf
    for module in (*_PUBLIC, own):
        if _look_up(sys.modules.get(module), name) is leaf:
            return Reference(module, name)
    return leaf


def get_state(self: Any) -> Any:
    """The state of an instance, for `copy` and `pickle`."""
    return _change(object.__getstate__(self), reference)


def set_state(self: Any, state: Any) -> None:
    """Gives an instance the state that `get_state` told."""
    in_dict, in_slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(in_dict or {}), **(in_slots or {})}.items():
        object.__setattr__(self, name, _change(value, resolve))


def resolve(leaf: Any) -> Any:
    """What a reference stands for; anything else is itself."""
    return leaf.resolve() if isinstance(leaf, Reference) else leaf


def _change(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with its leaves changed; itself if none is.

    Python's own containers are entered. A node that has a state of its own, such as a Module, sees
    to it itself.
    """
    cls = type(value)
    if cls is dict:
        changed: Any = {key: _change(item, change) for key, item in value.items()}
        same = all(changed[key] is value[key] for key in value)
    elif cls is list or cls is tuple:
        changed = cls(_change(item, change) for item in value)
        same = all(one is other for one, other in zip(changed, value, strict=True))
    else:
        return change(value)
    return value if same else changed
