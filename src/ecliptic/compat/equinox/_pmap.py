"""`filter_pmap`, which calls a function once more for each program."""

import functools
import inspect
from typing import Any

from ecliptic import transform
from ecliptic.module import Module, Partial, looks_like_wrapped
from ecliptic.transform import filter_eval_shape

_MISSING: Any = object()


class _Evaluated(Module):
    """A function that finds out the structure of its output before it is called."""

    _fun: Any

    @property
    def __wrapped__(self) -> Any:
        return self._fun

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        filter_eval_shape(self._fun, *args, **kwargs)
        return self._fun(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else Partial(self, instance)


looks_like_wrapped(_Evaluated)


@functools.wraps(transform.filter_pmap)
def filter_pmap(fun: Any = _MISSING, **options: Any) -> Any:
    """`ecliptic.filter_pmap`, where the function runs in Python twice for each program.

    Once would do. But programs count traces, and in theirs one is for the structure of the output
    and one for the program.

    Args:
        fun: as there.
        **options: as there.
    """
    if fun is _MISSING:
        return functools.partial(filter_pmap, **options)
    if isinstance(fun, classmethod | staticmethod):
        return type(fun)(filter_pmap(fun.__func__, **options))
    return transform.filter_pmap(_Evaluated(fun) if callable(fun) else fun, **options)


# Its own signature, not that of this wrapper; without the overloads of the annotations.
filter_pmap.__signature__ = inspect.signature(transform.filter_pmap)  # pyright: ignore
