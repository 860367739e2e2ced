"""How things look in generated documentation: `doc_repr` and `doc_remove_args`.

Both do nothing, unless the program that generates documentation has set
`typing.GENERATING_DOCUMENTATION`. A signature is shown with the `repr` of defaults and annotations,
which for a function or a long union is not what a reader wants to see.
"""

import inspect
import typing
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


class _Shown(type):
    """A class, so that it may stand in annotations, that looks and acts like something else."""

    _shown_as: str
    _meant: Any

    def __new__(mcs, text: str, meant: Any) -> Any:
        return super().__new__(mcs, text, (), {"_shown_as": text, "_meant": meant})

    def __init__(cls, text: str, meant: Any) -> None:
        super().__init__(text, (), {})

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._meant(*args, **kwargs)

    def __repr__(cls) -> str:
        return cls._shown_as


def _documents() -> bool:
    return bool(getattr(typing, "GENERATING_DOCUMENTATION", False))


def doc_repr(obj: _T, string: str) -> _T:
    """Gives an object another `repr` while documentation is generated.

    For the default of an argument, or for an alias in annotations.

    Args:
        obj: the object.
        string: what documentation shows in its place.

    Returns:
        `obj` itself; while `typing.GENERATING_DOCUMENTATION` is true, a stand-in that can be called
        like `obj`, and looks like `string`.

    !!! Example

        >>> from ecliptic.module import doc_repr
        >>> def norm(x, combine=doc_repr(sum, "sum")):
        ...     return combine(abs(element) for element in x)
        >>> norm([1, -2])
        3
    """
    if _documents():
        return typing.cast(_T, _Shown(string, obj))
    return obj


def doc_remove_args(*args: str) -> Callable[[_T], _T]:
    """Hides arguments from a function's signature while documentation is generated.

    Args:
        *args: the names of the arguments. Those that the function lacks are ignored.

    Returns:
        A decorator, which returns the function itself.

    !!! Example

        >>> from ecliptic.module import doc_remove_args
        >>> @doc_remove_args("internal")
        ... def solve(y0, internal=None):
        ...     return y0
    """

    def hide(fn: _T) -> _T:
        if _documents():
            signature = inspect.signature(typing.cast(Callable[..., Any], fn))
            kept = [p for name, p in signature.parameters.items() if name not in args]
            # Modules are frozen; a filtered function is one.
            object.__setattr__(fn, "__signature__", signature.replace(parameters=kept))
        return fn

    return hide
