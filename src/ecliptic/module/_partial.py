"""`Partial`: `functools.partial` as a Module."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ecliptic.errors import ArgumentTypeError
from ecliptic.module._initialise import CONTAINERS, SUSPECT
from ecliptic.module._module import Module

_Return = TypeVar("_Return")


class Partial(Module, Generic[_Return]):
    """A callable with some of its arguments filled in, as a PyTree.

    Like `functools.partial`, but function and arguments are children of the tree, so that arrays
    among them are traced, differentiated and saved.

    Args:
        func: the callable; any PyTree that can be called.
        *args: positional arguments that come before those of the call.
        **kwargs: keyword arguments; those of the call win.

    Raises:
        ArgumentTypeError: if `func` cannot be called.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> add_one = ec.Partial(jnp.add, 1.0)
        >>> float(add_one(2.0))
        3.0
    """

    func: Callable[..., _Return]
    args: tuple[Any, ...]
    keywords: dict[str, Any]

    def __init__(self, func: Callable[..., _Return], /, *args: Any, **kwargs: Any) -> None:
        if not callable(func):
            raise ArgumentTypeError(
                f"`Partial` needs a callable as its first argument; got {func!r} of type "
                f"`{type(func).__qualname__}`."
            )
        self.func = func
        self.args = args
        self.keywords = kwargs

    def __call__(self, *args: Any, **kwargs: Any) -> _Return:
        """Calls `func` with the stored arguments first, then those given here."""
        return self.func(*self.args, *args, **{**self.keywords, **kwargs})


CONTAINERS.add(Partial)
SUSPECT.add(Partial)
