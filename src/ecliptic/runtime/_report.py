"""What a failing check says: the user's message, which elements failed, where the check stands."""

import dataclasses
import linecache
import math
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import jax
import numpy as np

from ecliptic._jax._trace import is_of_jit
from ecliptic.errors import RuntimeCheckError
from ecliptic.transform import check_compiled, tell_failure

# Where a function that `filter_jit` compiles is called to be traced. What called that is another
# thing at each call.
_BOUNDARY = os.sep + os.path.join("transform", "_program.py")

# Of how many failed elements the positions are told, and of how many frames.
_MAX_POSITIONS = 10
_MAX_FRAMES = 8

_OWN = (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    os.path.dirname(os.path.abspath(jax.__file__)) + os.sep,
)


class Place(NamedTuple):
    """A line of the user's program.

    Args:
        file: the file.
        line: the number of the line.
        function: the function that the line is in.
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        text = f'  File "{self.file}", line {self.line}, in {self.function}'
        source = linecache.getline(self.file, self.line).strip()
        return f"{text}\n    {source}" if source else text


def user_places() -> tuple[Place, ...]:
    """The calls that led here, the last one at the end: those of the user's own program.

    From the function on that `filter_jit` or `jax.jit` compiles, if there is one.
    """
    places: list[Place] = []
    compiled: int | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith(_BOUNDARY):
            compiled = None
            break
        if is_of_jit(code):
            compiled = len(places)
        elif not code.co_filename.startswith(_OWN):
            places.append(Place(code.co_filename, frame.f_lineno, code.co_name))
            if code.co_name == "<module>":
                break
        frame = frame.f_back
    # (One that JAX compiles for itself may have no function of the user's in it.)
    return tuple(reversed(places[: compiled or None][:_MAX_FRAMES]))


@dataclasses.dataclass(frozen=True)
class CheckReport:
    """Raises the error of a check. Equal for equal checks, so a program with one is, too.

    Args:
        messages: the user's.
        places: where the check stands.
    """

    messages: tuple[str, ...]
    places: tuple[Place, ...]

    def fail(self, bad: Any, index: Any, mapped: int) -> None:
        """Raises the error, outside of any compiled program."""
        tell_failure()
        raise self.error(bad, index, mapped)

    def compiled(self, *, several: bool) -> Callable[[Any, Any, int], None]:
        """Has the caller of the program wait for its result.

        Args:
            several: whether the program is for several devices.

        Returns:
            What reports the error while the program runs.
        """
        report = check_compiled(several=several)
        return lambda bad, index, mapped: report(self.error(bad, index, mapped))

    def error(
        self, bad: Any, index: Any, mapped: int, kind: type[RuntimeCheckError] = RuntimeCheckError
    ) -> RuntimeCheckError:
        """The error.

        Args:
            bad: the booleans.
            index: the numbers of the messages; its axes after the mapped ones fit those of `bad`.
            mapped: how many axes, at the front, are those of `jax.vmap`.
            kind: the class.
        """
        own = index.shape[mapped:]
        between = (1,) * (bad.ndim - mapped - len(own))
        index = np.broadcast_to(index.reshape((*index.shape[:mapped], *between, *own)), bad.shape)
        parts = []
        for number in dict.fromkeys(index[bad].tolist()):
            parts.append(self._message(number))
            if bad.ndim:
                parts += _failed(np.argwhere(bad & (index == number)), bad.shape, mapped)
        if self.places:
            parts += ["The check stands here:", *map(str, self.places)]
        return kind("\n".join(parts))

    def _message(self, number: int) -> str:
        if 0 <= number < len(self.messages):
            return self.messages[number]
        return (
            f"A check failed, and the index of its message is {number}, where there are "
            f"{len(self.messages)} messages."
        )

    def __repr__(self) -> str:
        return repr(self.messages[0]) if len(self.messages) == 1 else repr(self.messages)


class DeadCodeReport(CheckReport):
    """The same for `assert_dce`: outside of a program nothing can be eliminated."""

    def fail(self, bad: Any, index: Any, mapped: int) -> None:
        """Does nothing."""


def _failed(positions: Any, shape: tuple[int, ...], mapped: int) -> list[str]:
    """Which elements failed, in words."""
    lines = []
    if mapped:
        elements = list(dict.fromkeys(map(tuple, positions[:, :mapped].tolist())))
        size = math.prod(shape[:mapped])
        axes = "the mapped axis" if mapped == 1 else f"the {mapped} mapped axes, outermost first"
        lines.append(f"Failed for {len(elements)} of {size} elements of {axes}: {_told(elements)}.")
    if len(shape) > mapped:
        whole = "the condition" if not mapped else "the condition, mapped axes first"
        count = f"{len(positions)} of {math.prod(shape)} positions"
        lines.append(f"True at {count} of {whole}: {_told(list(map(tuple, positions.tolist())))}.")
    return lines


def _told(positions: list[tuple[int, ...]]) -> str:
    """Positions in words: those of one axis as numbers, others as tuples."""
    words = [str(one[0]) if len(one) == 1 else str(one) for one in positions[:_MAX_POSITIONS]]
    return ", ".join(words) + (", ..." if len(positions) > _MAX_POSITIONS else "")
