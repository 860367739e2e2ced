"""What a check does where it fails: the modes, and the three places where one is chosen.

The mode is a part of a compiled program. JAX knows that chosen by `on_error` as a part of what a
program is compiled for, so a function is traced again under another one, however it is compiled.
"""

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any, Literal, cast, get_args

import jax

from ecliptic.errors import ArgumentError

Mode = Literal["raise", "breakpoint", "nan", "off"]
OnError = Literal["default", "raise", "breakpoint", "nan", "off"]

# The variables of the environment, ours first. The others are those that programs set already.
_MODE = ("ECLIPTIC_ON_ERROR", "EQX_ON_ERROR")
_FRAMES = ("ECLIPTIC_ON_ERROR_BREAKPOINT_FRAMES", "EQX_ON_ERROR_BREAKPOINT_FRAMES")


@functools.cache
def _context() -> Any:
    return jax.make_user_context("default")


# JAX asks that this is done before other threads use it.
_context()


@contextlib.contextmanager
def on_error(mode: OnError) -> Iterator[None]:
    """Chooses what checks do where they fail, for functions that are called inside.

    It holds for checks that leave their own `on_error` open. A function that was compiled under
    another mode is compiled once more.

    Args:
        mode: `"raise"`, `"breakpoint"`, `"nan"` or `"off"`, as for [`error_if`][]; `"default"` is
            what the environment says.

    Raises:
        ArgumentError: if there is no such mode.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> from ecliptic.runtime import error_if, on_error
        >>> @ec.filter_jit
        ... def root(x):
        ...     return jnp.sqrt(error_if(x, x < 0, "negative"))
        >>> with on_error("off"):
        ...     print(root(jnp.array(-1.0)))
        nan
    """
    with _context()(_checked(mode, "The argument of `on_error`", get_args(OnError))):
        yield


def mode_of(argument: str) -> Mode:
    """The mode of a check.

    Args:
        argument: the check's own. Then comes that of `on_error`, then the environment.

    Raises:
        ArgumentError: if it is none, wherever it was chosen.
    """
    _checked(argument, "The argument `on_error`", get_args(OnError))
    for mode in (argument, _context().value):
        if mode != "default":
            return cast(Mode, mode)
    name, value = _variable(_MODE)
    if value is None:
        return "raise"
    return cast(Mode, _checked(value, f"The environment variable `{name}`", get_args(Mode)))


def breakpoint_frames() -> int | None:
    """How many frames of Python a breakpoint keeps; None for all.

    Raises:
        ArgumentError: if the environment says what is no number.
    """
    name, value = _variable(_FRAMES)
    if value is None:
        return None
    if not value.isdecimal() or int(value) == 0:
        raise ArgumentError(
            f"The environment variable `{name}` says how many frames of Python a breakpoint keeps, "
            f"at least 1; got {value!r}."
        )
    return int(value)


def _variable(names: tuple[str, ...]) -> tuple[str, str | None]:
    for name in names:
        if os.environ.get(name):
            return name, os.environ[name]
    return names[0], None


def _checked(mode: str, what: str, modes: tuple[str, ...]) -> str:
    if mode not in modes:
        known = ", ".join(repr(one) for one in modes)
        raise ArgumentError(f"{what} is one of {known}; got {mode!r}.")
    return mode
