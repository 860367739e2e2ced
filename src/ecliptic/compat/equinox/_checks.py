"""`error_if` and `branched_error_if`, whose errors begin and end as programs expect."""

import functools
from collections.abc import Sequence
from typing import Any

from ecliptic import _jax, runtime

_BEFORE = "Above is the stack outside of JIT. A check inside failed:\n"
_AFTER = (
    "\n(The environment variable EQX_ON_ERROR chooses what a failing check does: `raise`, "
    "`breakpoint`, `nan` or `off`.)"
)


def _framed(pred: Any, messages: Sequence[str]) -> list[str]:
    """The messages for a check in a program; outside of one they stand alone."""
    framed = isinstance(pred, _jax.Tracer) and all(isinstance(one, str) for one in messages)
    return [f"{_BEFORE}{one}{_AFTER}" for one in messages] if framed else list(messages)


@functools.wraps(runtime.error_if)
def error_if(x: Any, pred: Any, msg: str, **options: Any) -> Any:
    """`ecliptic.error_if`, where the message of an error in a program has a first and a last line.

    Programs look for both: for the first in what they print, for the last in tests.

    Args:
        x: as there.
        pred: as there.
        msg: as there.
        **options: as there.
    """
    return runtime.error_if(x, pred, _framed(pred, [msg])[0], **options)


@functools.wraps(runtime.branched_error_if)
def branched_error_if(x: Any, pred: Any, index: Any, msgs: Sequence[str], **options: Any) -> Any:
    """`ecliptic.branched_error_if`, with the same two lines.

    Args:
        x: as there.
        pred: as there.
        index: as there.
        msgs: as there.
        **options: as there.
    """
    return runtime.branched_error_if(x, pred, index, _framed(pred, msgs), **options)
