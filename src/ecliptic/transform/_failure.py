"""How a check that fails inside of a compiled program reaches whoever called the program.

Two things meet here that know nothing of each other. A check (`ecliptic.runtime`) is compiled into
programs, and fails on the host, in a thread of the device's choosing; whoever calls a program
(`filter_jit`) knows neither whether it holds a check nor what XLA's error means.

- While a program is traced and compiled, a `Watch` is open in its thread. A check that is compiled
  in that time says so (`check_compiled`). A program with a check waits for its result.
- A check that fails leaves its error under a number, and raises that error with the number at its
  end. XLA makes a text of it, of which the number leads back to the error.
- Whoever waits for a program asks for the error. Where nobody does, as under a plain `jax.jit`, it
  is put in the place of JAX's when that is raised (`_conversion.py`).
- In a program for several devices an error of one lets the others wait for it, until XLA ends the
  process. So a check does not raise there, if there is a watch to leave the error with; the program
  goes on with zeros in place of what was checked, and the error is raised after its end.
"""

import contextlib
import itertools
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import jax

from ecliptic._jax._check import caller_of_program
from ecliptic.errors import RuntimeCheckError
from ecliptic.transform._conversion import convert

# Of how many failures the error is kept: where nobody waits for a program, each time that a result
# is read asks for it again.
_MAX_KEPT = 256

_MARK = re.compile(r"\[runtime check (\d+)\]")

# What JAX raises for a program that failed: the first where it is called, the second (of all
# classes) where somebody waits for a result.
_FROM_XLA = (jax.errors.JaxRuntimeError, ValueError)

_kept: OrderedDict[int, RuntimeCheckError] = OrderedDict()
_numbers = itertools.count()
_lock = threading.Lock()
_hooks: list[Callable[[], None]] = []


class Watch:
    """Whether a program holds a check, and what was found in programs that must not raise.

    Attributes:
        found: whether there is a check; true from the first one on that is compiled.
        silent: whether one of them leaves its error here. Then the program runs once at a time.
        errors: what they left.
    """

    __slots__ = ("errors", "found", "lock", "silent")

    def __init__(self) -> None:
        self.found = False
        self.silent = False
        self.errors: list[RuntimeCheckError] = []
        self.lock = threading.RLock()


class _Open(threading.local):
    """The watches that are open in this thread."""

    def __init__(self) -> None:
        self.watches: list[Watch] = []


_open = _Open()


class UnwatchedTraceError(BaseException):
    """A program has to be traced, and nobody watches whether it holds a check.

    It never leaves `filter_jit`, which calls the program once more. It is no `Exception`, since
    that could be caught on the way.
    """


@contextlib.contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """A stretch of code in which checks that are compiled are noted."""
    _open.watches.append(watch)
    try:
        yield
    finally:
        _open.watches.pop()


def require_watch(watch: Watch) -> None:
    """Raises where this watch is not open.

    Raises:
        UnwatchedTraceError: to be caught by the caller of the program.
    """
    if not any(open_one is watch for open_one in _open.watches):
        raise UnwatchedTraceError


def check_compiled(*, several: bool) -> Callable[[RuntimeCheckError], None]:
    """Notes that a check is a part of what is compiled now.

    Args:
        several: whether the program is for several devices.

    Returns:
        What takes the error where the check fails.
    """
    if not _open.watches:
        return _raise_unwatched
    for watch in _open.watches:
        watch.found = True
    if not several:
        return _raise_in_program
    watch = _open.watches[-1]
    watch.silent = True
    return watch.errors.append


def _raise_in_program(error: RuntimeCheckError) -> None:
    with _lock:
        number = next(_numbers)
        _kept[number] = error
        while len(_kept) > _MAX_KEPT:
            _kept.popitem(last=False)
    tell_failure()
    # A text is all that XLA takes of an error: what is noted has to be a part of it.
    text = "\n".join([str(error), *error.__notes__])
    raise type(error)(f"{text}\n[runtime check {number}]")


def _raise_unwatched(error: RuntimeCheckError) -> None:
    convert(_instead_of, caller_of_program())
    _raise_in_program(error)


def _instead_of(error: BaseException) -> RuntimeCheckError | None:
    """What is raised in the place of this error; None if it has nothing to do with a check."""
    # (Asked for errors of all kinds. The text of a class that is not JAX's may be anything.)
    if type(error) not in _FROM_XLA or not error.args or type(error.args[0]) is not str:
        return None
    failure = failure_of(error)
    if failure is not None:
        tell_failure()
    return failure


def failure_of(error: BaseException) -> RuntimeCheckError | None:
    """The error of the check that failed, if this error of JAX comes from one."""
    mark = _MARK.search(str(error))
    kept = None if mark is None else _kept.get(int(mark[1]))
    # A new one each time: an error that was raised holds the frames that it passed.
    return None if kept is None else type(kept)(*kept.args)


def on_failure(hook: Callable[[], None]) -> None:
    """Has a function called after each failure of a check, in any thread."""
    _hooks.append(hook)


def tell_failure() -> None:
    """Calls the functions that were given to `on_failure`."""
    for hook in _hooks:
        # Another error on the way to report one would hide it.
        with contextlib.suppress(Exception):
            hook()


@contextlib.contextmanager
def converted_errors() -> Iterator[None]:
    """Turns what JAX raises for a failing check into the error of the check.

    For programs that are compiled by a plain `jax.jit`. A check that fails in one raises the error
    of the check by itself since Python 3.12; on 3.11 only where JAX runs the program in the thread
    that called it, as small ones on the CPU. Elsewhere JAX raises an error of its own, with a text
    of XLA's. Wait for the results inside: it may come only then.

    Raises:
        RuntimeCheckError: if a check failed inside.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from ecliptic.runtime import converted_errors, error_if
        >>> @jax.jit
        ... def root(x):
        ...     return jnp.sqrt(error_if(x, x < 0, "negative"))
        >>> try:
        ...     with converted_errors():
        ...         root(-1.0).block_until_ready()
        ... except ec.errors.RuntimeCheckError as error:
        ...     print(str(error).splitlines()[0])
        negative
    """
    try:
        yield
    except _FROM_XLA as error:
        failure = failure_of(error)
        if failure is None:
            raise
        tell_failure()
        raise failure from None


def waiting(compiled: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    """A compiled function that waits for its result, so that what fails raises at the call.

    Args:
        compiled: the function.
        watch: tells whether there is a check in it. If not, there is nothing to wait for.
    """

    def run(*arrays: Any) -> Any:
        __tracebackhide__ = True
        try:
            out = compiled(*arrays)
            if not watch.found:
                return out
            jax.block_until_ready(out)
        except _FROM_XLA as error:
            failure = failure_of(error)
            if failure is None:
                raise
        else:
            if not watch.errors:
                return out
            failure = watch.errors[0]
            watch.errors.clear()
        tell_failure()
        # Outside of the handler: XLA's error is no context of this one.
        raise failure

    def run_alone(*arrays: Any) -> Any:
        if not watch.silent:
            return run(*arrays)
        __tracebackhide__ = True
        with watch.lock:
            return run(*arrays)

    return run_alone
