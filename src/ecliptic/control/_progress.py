"""How a loop shows how far it is: the part that lives in the program."""

import abc
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Real

from ecliptic._jax._handle import handle
from ecliptic.control._display import (
    Display,
    TextDisplay,
    TqdmDisplay,
    close_display,
    open_display,
    report,
)
from ecliptic.errors import ArgumentError, MissingPackageError
from ecliptic.module import Module, field

_State = TypeVar("_State")


class AbstractProgress(Module, Generic[_State]):
    """A way to show the progress of a loop. For one's own, subclass this.

    A loop that is given one calls `init` once before its first step, `step` from time to time and
    once more after its last step, and `close` in the end, also where it fails before it runs. What
    these return is carried along in the loop, so it is a PyTree of arrays whose shapes and dtypes
    stay the same. They are traced, as the loop is: what shall happen on the host goes through
    `jax.debug.callback`. In a batched loop they are called once for the whole batch.

    A callback takes as long as thousands of small steps. `interval` says how many steps
    may pass between two calls of `step`.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> class Note(ec.AbstractProgress):
        ...     def interval(self, length):
        ...         return 50
        ...
        ...     def init(self):
        ...         return None
        ...
        ...     def step(self, state, progress):
        ...         jax.debug.callback(lambda p: print(f"{p:.0%}"), progress)
        ...
        ...     def close(self, state):
        ...         pass
        >>> def step(x, _):
        ...     return x / 2, None
        >>> x, _ = ec.filter_scan(step, jnp.array(1.0), length=120, progress=Note())
        42%
        83%
        100%
    """

    def interval(self, length: int | None) -> int:
        """How many steps may pass between two calls of `step`.

        Args:
            length: how many steps there will be at most; None if that is not known.

        Returns:
            A positive number. Here: a hundredth of the length, or 1.
        """
        return 1 if length is None else max(1, length // 100)

    @abc.abstractmethod
    def init(self) -> _State:
        """Called before the first step: the state at the start."""

    @abc.abstractmethod
    def step(self, state: _State, progress: Float[Array, ""]) -> _State:
        """Called after every `interval` steps, and after the last.

        Args:
            state: the state before.
            progress: which fraction of the work is done, from 0 to 1.

        Returns:
            The next state.
        """

    @abc.abstractmethod
    def close(self, state: _State) -> None:
        """Called after the loop, with the last state."""


class NoProgress(AbstractProgress[None]):
    """Shows nothing, and costs nothing.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> out, _ = ec.filter_scan(
        ...     lambda x, _: (x + 1, None), jnp.array(0), length=3, progress=ec.NoProgress()
        ... )
        >>> int(out)
        3
    """

    def init(self) -> None:
        """No state."""

    def step(self, state: None, progress: Float[Array, ""]) -> None:
        """Does nothing."""

    def close(self, state: None) -> None:
        """Does nothing."""


class _Shown(NamedTuple):
    """The state of what is shown on the host: which display, what it shows, what is true."""

    number: Int[Array, ""]
    shown: Float[Array, ""]
    now: Float[Array, ""]


def _init(make: Callable[[], Display]) -> _Shown:
    number = handle(partial(open_display, make))
    # All of the state hangs on the number, which a compiler cannot know: otherwise the closing of a
    # display would hang on nothing that a loop computes, and come before its reports.
    zero = jnp.minimum(number, 0).astype(jnp.float32)
    return _Shown(number, zero, zero)


def _step(state: _Shown, progress: Any, minimum_increase: float) -> _Shown:
    now = jnp.asarray(progress, jnp.float32)
    # What falls short by rounding alone counts.
    due = now - state.shown >= 0.999 * minimum_increase
    jax.lax.cond(due, lambda: jax.debug.callback(report, state.number, now), lambda: None)
    return _Shown(state.number, jnp.where(due, now, state.shown), now)


def _close(state: _Shown) -> None:
    jax.debug.callback(close_display, *state)


def _interval(minimum_increase: float, length: int | None) -> int:
    return 1 if length is None else int(minimum_increase * length)


def _check_increase(cls: str, minimum_increase: Any) -> float:
    value = float(minimum_increase)
    if not 0 <= value <= 1:
        raise ArgumentError(
            f"`{cls}(minimum_increase=...)` is a fraction of the work, from 0 to 1; got {value}."
        )
    return value


class TextProgress(AbstractProgress[_Shown]):
    """Prints lines such as `42.00%`.

    Args:
        minimum_increase: by how much the fraction of the work has to grow from one line to the
            next: a loop prints at most about 1 / `minimum_increase` lines.

    Raises:
        ArgumentError: if `minimum_increase` is not between 0 and 1.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> out, _ = ec.filter_scan(
        ...     lambda x, _: (x + 1, None), jnp.array(0), length=100, progress=ec.TextProgress(0.5)
        ... )
        0.00%
        50.00%
        100.00%
    """

    minimum_increase: float = field(static=True)

    def __init__(self, minimum_increase: Real[Any, ""] | float = 0.02) -> None:
        self.minimum_increase = _check_increase("TextProgress", minimum_increase)

    def interval(self, length: int | None) -> int:
        """As many steps as make up the smallest increase."""
        return max(1, _interval(self.minimum_increase, length))

    def init(self) -> _Shown:
        """Prints `0.00%`."""
        return _init(TextDisplay)

    def step(self, state: _Shown, progress: Float[Array, ""]) -> _Shown:
        """Prints a line if the fraction grew enough."""
        return _step(state, progress, self.minimum_increase)

    def close(self, state: _Shown) -> None:
        """Prints where the loop ended, unless that was the last line already."""
        _close(state)


class TqdmProgress(AbstractProgress[_Shown]):
    """Shows a bar of `tqdm`, in a terminal or in a notebook.

    Args:
        refresh_steps: how many steps have to pass from one refresh to the next.
        minimum_increase: by how much the fraction of the work has to grow from one refresh to the
            next. A refresh costs about as much as a thousand small steps.
        description: what to write before the bar.

    Raises:
        ArgumentError: if `refresh_steps` is not positive, or `minimum_increase` is not between 0
            and 1.
        MissingPackageError: when it is used, if `tqdm` is not installed.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> bar = ec.TqdmProgress(description="counting")
        >>> out, _ = ec.filter_scan(
        ...     lambda x, _: (x + 1, None), jnp.array(0), length=1000, progress=bar
        ... )
        >>> int(out)
        1000
    """

    refresh_steps: int = field(static=True)
    minimum_increase: float = field(static=True)
    description: str | None = field(static=True)

    def __init__(
        self,
        refresh_steps: int = 20,
        *,
        minimum_increase: float = 0.01,
        description: str | None = None,
    ) -> None:
        if refresh_steps < 1:
            raise ArgumentError(
                f"`TqdmProgress(refresh_steps=...)` must be positive; got {refresh_steps}."
            )
        self.refresh_steps = int(refresh_steps)
        self.minimum_increase = _check_increase("TqdmProgress", minimum_increase)
        self.description = description

    def interval(self, length: int | None) -> int:
        """`refresh_steps`, or as many steps as make up the smallest increase."""
        return max(self.refresh_steps, _interval(self.minimum_increase, length))

    def init(self) -> _Shown:
        """Opens the bar."""
        if importlib.util.find_spec("tqdm") is None:
            raise MissingPackageError(
                "`TqdmProgress` needs the package `tqdm`, which is not installed. Install it "
                "(`pip install tqdm`, or `ecliptic[progress]`), or use `ecliptic.TextProgress`."
            )
        return _init(partial(TqdmDisplay, self.description))

    def step(self, state: _Shown, progress: Float[Array, ""]) -> _Shown:
        """Moves the bar if the fraction grew enough."""
        return _step(state, progress, self.minimum_increase)

    def close(self, state: _Shown) -> None:
        """Closes the bar where the loop ended."""
        _close(state)
