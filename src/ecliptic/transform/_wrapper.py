"""What the Modules that transformations return have in common."""

import abc
import dataclasses
from typing import Any

from ecliptic.errors import ArgumentTypeError
from ecliptic.module import Module, Partial, adopt_module_name


class AbstractWrapper(Module):
    """A Module around one callable, which it calls in its own way.

    The callable is a child of the tree. In a class body, a wrapper is a method: read from an
    instance, it is a `Partial` with that instance as its first argument, a PyTree like the rest.
    """

    _fun: Any

    def __post_init__(self) -> None:
        adopt_module_name(self, self._fun)

    @abc.abstractmethod
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the callable, in the way of the transformation."""

    @property
    def __wrapped__(self) -> Any:
        return self._fun

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if isinstance(self._fun, classmethod | staticmethod):
            # The transformation was applied to what the decorator below it had made.
            return dataclasses.replace(self, _fun=self._fun.__get__(instance, owner))
        return self if instance is None else Partial(self, instance)


def check_callable(fun: Any, transform: str) -> None:
    """Refuses what cannot be called at the decoration, and not at the first call."""
    if callable(fun) or isinstance(fun, classmethod):
        return
    raise ArgumentTypeError(
        f"`{transform}` needs a callable as its first argument; got {fun!r} of type "
        f"`{type(fun).__qualname__}`. Options are given by keyword: `@{transform}(...)`."
    )


def name_of(fun: Any) -> str:
    """How messages call a callable."""
    return getattr(fun, "__qualname__", None) or type(fun).__qualname__
