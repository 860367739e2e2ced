"""`assert_max_traces`: a limit on how often a function is traced."""

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

from ecliptic import _jax
from ecliptic.debug._changes import Signature, compare
from ecliptic.errors import ArgumentError, DebugError
from ecliptic.module import field, looks_like_wrapped
from ecliptic.transform import (
    AbstractWrapper,
    JitFunction,
    check_callable,
    name_of,
    parameters_of,
    unwrapped,
)
from ecliptic.tree._format import PjitFunction

_MISSING: Any = object()
_F = TypeVar("_F", bound=Callable[..., Any])


class _Count:
    """How often a function was traced, and with what. Shared by all copies of a wrapper."""

    __slots__ = ("lock", "number", "signatures")

    def __init__(self) -> None:
        self.number = 0
        self.signatures: list[Signature] = []
        self.lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<{self.number} traces>"


class _AssertMaxTraces(AbstractWrapper):
    """A function that may be traced so often and no more."""

    _fun: Any
    max_traces: int | None = field(static=True)
    _count: _Count = field(static=True)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        count = self._count
        signature = Signature.of(args, kwargs)
        with count.lock:
            count.number += 1
            number = count.number
            earlier = list(count.signatures)
            if self.max_traces is not None and number <= self.max_traces:
                count.signatures.append(signature)
        if self.max_traces is not None and number > self.max_traces:
            raise DebugError(_too_often(self._fun, self.max_traces, number, signature, earlier))
        return self._fun(*args, **kwargs)


looks_like_wrapped(_AssertMaxTraces)


def _too_often(
    fun: Any, limit: int, number: int, signature: Signature, earlier: list[Signature]
) -> str:
    message = (
        f"{fun!r} can only be traced {limit} times. However, it has now been traced {number} times."
    )
    if _jax.trace_state_clean():
        return (
            f"{message} It was called outside of any trace, where each call counts: compile it, "
            f"with `filter_jit` outside of `assert_max_traces`."
        )
    names = parameters_of(fun)
    found = [compare(before, signature, names) for before in earlier]
    nearest = min(found, key=len, default=[])
    if not nearest:
        return f"{message} Its arguments are those of an earlier trace, as far as can be seen."
    lines = "\n".join(f"  {change}" for change in nearest)
    return f"{message} Since the nearest earlier trace, this has changed:\n{lines}"


def _compiled_inside(fun: Any) -> bool:
    """Whether this is a compiled function, or wraps one."""
    return any(isinstance(layer, JitFunction | PjitFunction) for layer in unwrapped(fun))


@overload
def assert_max_traces(*, max_traces: int | None) -> Callable[[_F], _F]: ...
@overload
def assert_max_traces(fn: _F, *, max_traces: int | None) -> _F: ...
def assert_max_traces(fn: Any = _MISSING, *, max_traces: int | None) -> Any:
    """Raises if a function is traced more often than it should be.

    Goes directly around the function, below `filter_jit`: what is counted is how often the function
    is called, and under `filter_jit` or `jax.jit` it is called when it is traced.

    Args:
        fn: the function. Without it, a decorator is returned.
        max_traces: how often it may be traced; None for any number, which only counts.

    Returns:
        A function like `fn`. It is a Module, with the leaves that `fn` has if that is a PyTree.

    Raises:
        ArgumentTypeError: if `fn` cannot be called.
        DebugError: if `fn` is compiled already, so that its calls would be counted and not its
            traces; and in the call that is one trace too many.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> @ec.filter_jit
        ... @ec.debug.assert_max_traces(max_traces=1)
        ... def double(x):
        ...     return 2 * x
        >>> for _ in range(10):
        ...     _ = double(jnp.ones(3))
        >>> ec.debug.get_num_traces(double)
        1
    """
    if fn is _MISSING:
        return functools.partial(assert_max_traces, max_traces=max_traces)
    check_callable(fn, "assert_max_traces")
    if _compiled_inside(fn):
        raise DebugError(
            f"`assert_max_traces` was applied to {name_of(fn)!r}, which is compiled already: it "
            f"would count calls and not traces. Exchange the two decorators: `@filter_jit` first, "
            f"in the line above `@assert_max_traces(max_traces={max_traces})`."
        )
    return _AssertMaxTraces(fn, max_traces, _Count())


def get_num_traces(fn: Any) -> int:
    """Says how often a function with [`assert_max_traces`][] was traced so far.

    Args:
        fn: what [`assert_max_traces`][] returned, or what wraps it, such as `filter_jit` of it.

    Raises:
        ArgumentError: if there is no [`assert_max_traces`][] in it.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> f = ec.filter_jit(ec.debug.assert_max_traces(lambda x: 2 * x, max_traces=2))
        >>> _ = f(jnp.ones(2)), f(jnp.ones(3))
        >>> ec.debug.get_num_traces(f)
        2
    """
    for layer in unwrapped(fn):
        if isinstance(layer, _AssertMaxTraces):
            return layer._count.number
    raise ArgumentError(
        f"{fn!r} does not appear to be wrapped with `ecliptic.debug.assert_max_traces`: put the "
        f"decorator directly around the function, and pass it or what wraps it."
    )
