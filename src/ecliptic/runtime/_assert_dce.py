"""`assert_dce`: a program that fails unless a value was eliminated from it."""

from typing import Any, TypeVar

import numpy as np
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic._jax._check import unknown_true
from ecliptic.errors import ArgumentTypeError
from ecliptic.runtime._error_if import stop_if
from ecliptic.runtime._mode import OnError, mode_of
from ecliptic.runtime._report import DeadCodeReport, user_places

_T = TypeVar("_T", bound=PyTree)


def assert_dce(x: _T, msg: str, *, on_error: OnError = "default") -> _T:
    """Returns `x`, and fails if the program uses it.

    For what the compiler is expected to leave out, since nothing depends on it (dead code). The
    program fails when it runs, unless it did. Outside of a compiled program it does nothing.

    Args:
        x: what is to be eliminated: any PyTree with an array in it.
        msg: what to say if it was not.
        on_error: what to do, see [`error_if`][].

    Returns:
        `x`.

    Raises:
        RuntimeCheckError: when the program runs, if it uses an array of the result.
        ArgumentTypeError: if `msg` is no string.
        ArgumentError: if there is no array in `x`, or no such mode.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> from ecliptic.runtime import assert_dce
        >>> @ec.filter_jit
        ... def double(x):
        ...     square = assert_dce(x**2, "the square is computed")
        ...     return 2 * x, square.shape
        >>> double(jnp.ones(3))[1]
        (3,)
    """
    mode = mode_of(on_error)
    if mode == "off" or _jax.trace_state_clean():
        return x
    if not isinstance(msg, str):
        raise ArgumentTypeError(
            f"The message of `assert_dce` is a string; got {msg!r} of type "
            f"`{type(msg).__qualname__}`."
        )
    index: Any = np.zeros((), np.int32)
    return stop_if(x, unknown_true(), index, DeadCodeReport((msg,), user_places()), mode)
