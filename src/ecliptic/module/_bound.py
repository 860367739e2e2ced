"""Bound methods as Modules."""

import inspect
import types
from typing import Any

from ecliptic.module._field import field
from ecliptic.module._initialise import SUSPECT
from ecliptic.module._methods import Method
from ecliptic.module._module import Module
from ecliptic.module._wrapper import looks_like_wrapped

_new = object.__new__
_set = object.__setattr__


class BoundMethod(Module):
    """A method of a Module instance, as a PyTree: the instance is its child, the function static.

    Two bound methods are equal if their functions are the same and their instances are equal.
    Name, docstring and signature are those of the function.
    """

    __func__: Any = field(static=True)
    __self__: Any

    def __getattr__(self, name: str) -> Any:
        # `__name__`, `__qualname__` and whatever else somebody put on the function, as an
        # ordinary bound method does. Only names that are not found otherwise come here.
        if name in ("__func__", "__self__"):
            raise AttributeError(name)
        return getattr(self.__func__, name)

    @property
    def __wrapped__(self) -> Any:
        return types.MethodType(self.__func__, self.__self__)

    @property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(self.__func__)
        return signature.replace(parameters=list(signature.parameters.values())[1:])

    def __reduce__(self) -> Any:
        return bind, (self.__func__, self.__self__)


def _call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    return self.__func__(self.__self__, *args, **kwargs)


def bind(function: Any, instance: Any) -> BoundMethod:
    """The bound method of `function` and `instance`."""
    bound = _new(BoundMethod)
    _set(bound, "__dict__", {"__func__": function, "__self__": instance})
    return bound


# Set past the metaclass: this one call must not be a bound method in its turn.
type.__setattr__(BoundMethod, "__call__", _call)
Method.bound_type = BoundMethod
SUSPECT.add(BoundMethod)
looks_like_wrapped(BoundMethod)
