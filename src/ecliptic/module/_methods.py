"""How a function in a class body becomes a method whose bound form is a PyTree."""

import functools
import types
from collections.abc import Callable
from typing import Any

from ecliptic.tree._format import PjitFunction

_new = object.__new__
_set = object.__setattr__


class Method:
    """Descriptor that stands in a class for a function of its body.

    `module.method` is then a bound method that is itself a Module, so it can be stored in a
    field, passed through a transformation and trained; `Class.method` is the bare function.
    A look-up costs one call of `__get__` and one object with a dict of two items.
    """

    # Filled by `_bound.py`, which defines the class of bound methods on top of Modules.
    bound_type: Any = None

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)  # pyright: ignore[reportArgumentType]
        self.function = function

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self.function
        bound = _new(Method.bound_type)
        _set(bound, "__dict__", {"__func__": self.function, "__self__": instance})
        return bound

    @property
    def __isabstractmethod__(self) -> bool:
        return getattr(self.function, "__isabstractmethod__", False)

    def __reduce__(self) -> Any:
        return Method, (self.function,)


def as_method(name: str, value: Any) -> Any:
    """What to put into the class for `value`, found under `name` in its body.

    Functions, and functions under `jax.jit`, become methods. Special methods stay as they are:
    Python calls them past the instance. `__call__` is the one of them that people also pass on.
    """
    special = name.startswith("__") and name.endswith("__") and name != "__call__"
    if special or not isinstance(value, types.FunctionType | PjitFunction):
        return value
    return Method(value)
