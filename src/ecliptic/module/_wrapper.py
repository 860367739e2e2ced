"""Modules that wrap a callable and look like it."""

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ecliptic.errors import DefinitionError
from ecliptic.module._module import Module

_P = ParamSpec("_P")
_T = TypeVar("_T")


_NAMES = ("__name__", "__qualname__")


class _Docstring:
    """The docstring of a class, which instances answer with that of what they wrap."""

    def __init__(self, of_class: str | None, wrapped: str) -> None:
        self.of_class = of_class
        self.wrapped = wrapped

    def __get__(self, instance: Any, owner: type | None = None) -> str | None:
        return self.of_class if instance is None else getattr(instance, self.wrapped).__doc__


class _Annotations(dict):
    """The annotations of a class, in the place of which instances have those of what they wrap."""

    def __init__(self, of_class: dict[str, Any], wrapped: str) -> None:
        super().__init__(of_class)
        self.wrapped = wrapped

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return getattr(getattr(instance, self.wrapped), "__annotations__", {})


def looks_like_wrapped(cls: type, wrapped: str = "__wrapped__") -> None:
    """Lets instances of `cls` answer with the name, docstring, ... of what they wrap.

    It is a property of the class and no state of an instance, so it survives every
    transformation of the tree. Names cannot be class attributes (Python keeps those of the
    class itself there), so they come by `__getattr__`.

    Args:
        cls: the class.
        wrapped: the attribute that has what an instance wraps. `__wrapped__` gives it the signature
            too, as far as `inspect` is concerned.
    """
    if isinstance(cls.__dict__.get("__doc__"), _Docstring):
        return
    fallback = getattr(cls, "__getattr__", None)

    def __getattr__(self: Any, name: str) -> Any:
        if name in _NAMES:
            return getattr(getattr(self, wrapped), name)
        if fallback is not None:
            return fallback(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    type.__setattr__(cls, "__doc__", _Docstring(cls.__doc__, wrapped))
    annotations = _Annotations(inspect.get_annotations(cls), wrapped)
    type.__setattr__(cls, "__annotations__", annotations)
    type.__setattr__(cls, "__getattr__", __getattr__)


def adopt_module_name(wrapper: Module, wrapped: Any) -> None:
    """Says of a new wrapper that it is of the Python module of what it wraps.

    `doctest` looks there. It is no field, so what a transformation makes of the wrapper lacks it.
    """
    name = getattr(wrapped, "__module__", None)
    if name is not None:
        object.__setattr__(wrapper, "__module__", name)


def module_update_wrapper(
    wrapper: Module, wrapped: Callable[_P, _T] | None = None
) -> Callable[_P, _T]:
    """Makes a Module look like the callable that it wraps: name, docstring, signature.

    What `functools.update_wrapper` does for functions. The class of `wrapper` has to supply a
    property `__wrapped__`, from which the attributes are read whenever they are asked for; they
    stay right when the Module goes through a transformation.

    Args:
        wrapper: an instance of a Module class with a property `__wrapped__`.
        wrapped: the wrapped callable, for the type checker's sake. Default: `wrapper.__wrapped__`.

    Returns:
        `wrapper`.

    Raises:
        DefinitionError: if there is no property `__wrapped__`.

    !!! Example

        >>> import ecliptic as ec
        >>> from collections.abc import Callable
        >>> class Twice(ec.Module):
        ...     fn: Callable
        ...
        ...     @property
        ...     def __wrapped__(self):
        ...         return self.fn
        ...
        ...     def __call__(self, x):
        ...         return self.fn(self.fn(x))
        >>> def increment(x):
        ...     "Adds one."
        ...     return x + 1
        >>> twice = ec.module_update_wrapper(Twice(increment))
        >>> twice(3), twice.__name__, twice.__doc__
        (5, 'increment', 'Adds one.')
    """
    del wrapped
    cls = type(wrapper)
    if not isinstance(getattr(cls, "__wrapped__", None), property):
        raise DefinitionError(
            f"Wrapper module must supply `__wrapped__` as a property, and `{cls.__qualname__}` "
            f"does not. Add to the class: `@property\\ndef __wrapped__(self): return self.<field>`."
        )
    looks_like_wrapped(cls)
    adopt_module_name(wrapper, wrapper.__wrapped__)  # pyright: ignore[reportAttributeAccessIssue]
    return wrapper  # pyright: ignore[reportReturnType]
