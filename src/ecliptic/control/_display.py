"""The progress displays of the loops that are running: the part that lives on the host.

A program knows its display by a number. It opens one, reports to it and closes it through
callbacks, which JAX may run in any order and in any thread; and the recomputation of a loop, on the
way back of a derivative, reports to the number of the way there. So a display never goes back, and
reports to one that was closed are dropped.
"""

import contextlib
import importlib
import itertools
import threading
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from ecliptic.transform import on_failure


@runtime_checkable
class Display(Protocol):
    """Shows how far a loop is. Made when the loop starts, when it shows that nothing is done."""

    def show(self, fraction: float) -> None:
        """Shows that this fraction of the work is done."""

    def close(self) -> None:
        """Says that no more will come."""


class TextDisplay:
    """Prints a line for each fraction."""

    def __init__(self) -> None:
        self.show(0.0)

    def show(self, fraction: float) -> None:
        """Prints a percentage."""
        print(f"{100 * fraction:.2f}%", flush=True)

    def close(self) -> None:
        """Leaves the lines as they are."""


class TqdmDisplay:
    """A bar of `tqdm`, in a terminal or in a notebook.

    Args:
        description: what to write before the bar.
    """

    def __init__(self, description: str | None) -> None:
        make: Any = importlib.import_module("tqdm.auto").tqdm
        # A bar below another one goes when it is done. Whether a report is drawn depends on the
        # time since the last one alone.
        self._bar = make(
            total=100.0,
            desc=description and f"{description}: ",
            unit="%",
            leave=None,
            miniters=0,
            bar_format="{desc}{percentage:6.2f}%|{bar}| [{elapsed}<{remaining}]",
        )

    def show(self, fraction: float) -> None:
        """Moves the bar."""
        self._bar.update(100 * fraction - self._bar.n)

    def close(self) -> None:
        """Closes the bar where it is."""
        self._bar.close()


class _Open:
    """A display, and the largest fraction that it has shown."""

    def __init__(self, make: Callable[[], Display]) -> None:
        self.make = make
        self.display: Display | None = make()
        self.shown = 0.0

    def show(self, fraction: float) -> None:
        if not fraction > self.shown:
            return
        if self.display is None:
            self.display = self.make()
        self.shown = fraction
        # The stream may have gone, which is no reason to end a computation.
        with contextlib.suppress(OSError, ValueError):
            self.display.show(fraction)

    def close(self) -> None:
        if self.display is not None:
            with contextlib.suppress(OSError, ValueError):
                self.display.close()
        self.display = None


_open: dict[int, _Open] = {}
_numbers = itertools.count()
_lock = threading.RLock()


def open_display(make: Callable[[], Display]) -> int:
    """Opens a display.

    Args:
        make: makes it.

    Returns:
        The number to report to.
    """
    with _lock:
        number = next(_numbers)
        _open[number] = _Open(make)
        return number


def report(number: Any, fraction: Any) -> None:
    """Shows a fraction on a display, if it is open and has not shown more."""
    with _lock:
        found = _open.get(int(number))
        if found is not None:
            found.show(float(fraction))


def close_display(number: Any, shown: Any, fraction: Any) -> None:
    """Shows the last fraction on a display, and closes it. What comes later is dropped.

    Args:
        number: the display.
        shown: what was shown last. Not needed; it makes a program wait for what showed it.
        fraction: the last fraction.
    """
    with _lock:
        report(number, fraction)
        found = _open.pop(int(number), None)
        if found is not None:
            found.close()


def close_all_displays() -> None:
    """Closes all displays, since a program failed and nothing says whose they are.

    A loop that is still running opens its display again with its next report.
    """
    with _lock:
        for found in _open.values():
            found.close()


# A check that fails ends the program that it is in.
on_failure(close_all_displays)
