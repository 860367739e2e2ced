"""`explain_retraces`: why `filter_jit` traced a function again."""

import contextlib
import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ecliptic.debug._changes import Change, change, compare
from ecliptic.transform import (
    ArrayType,
    Lineage,
    Signature,
    Trace,
    observe,
    observe_placements,
    parameters_of,
)


@dataclasses.dataclass(frozen=True)
class Retrace:
    """A trace of a function that had been traced before, or its compilation for other devices.

    Args:
        function: the function's name.
        place: where it is written, as `file:line`.
        number: which trace it is of all traces of functions with this code.
        nearest: the number of the earlier trace that it is compared with, which is the one with the
            fewest differences; 0 if all that is known is that there was one.
        changes: what is different.
        traced: whether it is traced. If not, what had been traced is compiled again, for arrays
            that are placed elsewhere; `number` is then that of the latest trace.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> f = ec.filter_jit(lambda x, times: x * times)
        >>> with ec.debug.explain_retraces(None) as report:
        ...     _ = f(jnp.ones(2), 2), f(jnp.ones(2), 3)
        >>> report[0].number, report[0].nearest
        (2, 1)
    """

    function: str
    place: str
    number: int
    nearest: int
    changes: tuple[Change, ...]
    traced: bool = True

    def __str__(self) -> str:
        since = f"since trace {self.nearest}" if self.nearest else "since an earlier trace"
        event = f"is traced, for the {_nth(self.number)} time."
        if not self.traced:
            since, event = "since it was last compiled", "is compiled again, without a trace."
        lines = [f"`{self.function}` ({self.place}) {event}"]
        lines += [f"  {since}, {change}" for change in self.changes]
        return "\n".join(lines)


class RetraceReport:
    """What [`explain_retraces`][] found: a sequence of [`Retrace`][], which grows.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> f = ec.filter_jit(lambda x, times: x * times)
        >>> with ec.debug.explain_retraces(None) as report:
        ...     _ = f(jnp.ones(2), 2), f(jnp.ones(2), 3)
        >>> len(report)
        1
    """

    def __init__(self) -> None:
        self._retraces: list[Retrace] = []

    def _add(self, retrace: Retrace) -> None:
        self._retraces.append(retrace)

    def __iter__(self) -> Iterator[Retrace]:
        return iter(tuple(self._retraces))

    def __len__(self) -> int:
        return len(self._retraces)

    def __getitem__(self, index: int) -> Retrace:
        return self._retraces[index]

    def __str__(self) -> str:
        if not self._retraces:
            return "Nothing was traced again."
        return "\n".join(map(str, self._retraces))

    def __repr__(self) -> str:
        return f"<{len(self)} retraces>"


def _nth(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else endings.get(number % 10, 'th')}"


@contextlib.contextmanager
def explain_retraces(announce: Callable[[Any], Any] | None = print) -> Iterator[RetraceReport]:
    """Says of each function that `filter_jit` traces again what is different this time.

    A function is traced and compiled once for each structure of its arguments, each set of static
    values in them, each set of shapes and dtypes. A new trace is compared with all that are
    remembered of the same function (the last 64, from before this block too), and what is different
    from the nearest of them is said by leaf path, with a way out. A program that is compiled again
    without a trace, since arrays are on other devices, is reported after it was compiled.

    The environment variable `ECLIPTIC_EXPLAIN_RETRACES=1` does the same for a whole process, and
    writes to its standard error.

    Args:
        announce: is called with each [`Retrace`][] before it is compiled; `print` by default. None:
            what is found is in the report alone.

    Returns:
        A context manager whose value is a [`RetraceReport`][].

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> @ec.filter_jit
        ... def power(x, n):
        ...     return x**n
        >>> with ec.debug.explain_retraces(None) as report:
        ...     for n in range(3):
        ...         _ = power(jnp.ones(2), n)
        >>> len(report)
        2
        >>> for change in report[0].changes:
        ...     print(change.path, change.kind, change.before, change.after)
        n static 0 1
    """
    report = RetraceReport()

    def found(retrace: Retrace | None) -> None:
        if retrace is not None:
            report._add(retrace)
            if announce is not None:
                announce(retrace)

    ends = [
        observe(lambda *trace: found(_explain(*trace))),
        observe_placements(lambda *compiled: found(_explain_placement(*compiled))),
    ]
    try:
        yield report
    finally:
        for end in ends:
            end()


def _explain(
    lineage: Lineage, trace: Trace, fun: Any, earlier: tuple[Trace, ...]
) -> Retrace | None:
    """What is new in a trace; None for the first."""
    if trace.number == 1:
        return None
    names = [lineage.name, *parameters_of(fun)] if trace.bound else parameters_of(fun)
    nearest, changes = 0, None
    for other in earlier:
        found = _differences(other, trace, names)
        if other.function != trace.function:
            found.insert(0, _wrapped_anew(lineage))
        if changes is None or len(found) <= len(changes):
            nearest, changes = other.number, found
    if changes is None and trace.function and lineage.functions > 1:
        changes = [_wrapped_anew(lineage)]
    changes = changes or [change(lineage.name, "forgotten", "compiled", "compiled no more")]
    return Retrace(lineage.name, lineage.place, trace.number, nearest, tuple(changes))


def _explain_placement(
    lineage: Lineage, names: list[str], now: Signature, earlier: Signature | None
) -> Retrace:
    """What is new where nothing was traced."""
    changes = [] if earlier is None else compare(earlier, now, names)
    places = {leaf.placement for leaf in now.leaves if isinstance(leaf, ArrayType)}
    changes = changes or [
        change("arguments", "sharding", "placed otherwise", "; ".join(sorted(places)))
    ]
    return Retrace(
        lineage.name, lineage.place, lineage.count, lineage.count, tuple(changes), traced=False
    )


def _wrapped_anew(lineage: Lineage) -> Change:
    number = f"function object number {lineage.functions} with the same code"
    return change(lineage.name, "wrapped anew", "another function object", number)


def _differences(before: Trace, after: Trace, names: list[str]) -> list[Change]:
    found = compare(before.signature, after.signature, names)
    found += _of_options(before.options, after.options)
    for flag, value in after.flags.items():
        if before.flags[flag] != value:
            found.append(change(flag, "configuration", str(before.flags[flag]), str(value)))
    if not found and not _same_context(before, after):
        found.append(
            change("JAX", "configuration", "in another context", "in a mesh, or with other options")
        )
    return found


def _same_context(before: Trace, after: Trace) -> bool:
    try:
        return bool(before.context == after.context)
    except Exception:
        return False


def _of_options(before: Any, after: Any) -> list[Change]:
    if before == after:
        return []
    names = [field.name for field in dataclasses.fields(before)]
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in names}
    pairs["donation"] = pairs["donation"][0].mode, pairs["donation"][1].mode
    return [
        change(f"filter_jit({name}=...)", "option", repr(one), repr(other))
        for name, (one, other) in pairs.items()
        if one != other
    ]


def _from_environment() -> contextlib.ExitStack:
    """Explains retraces until the process ends, if the environment says so."""
    stack = contextlib.ExitStack()
    if os.environ.get("ECLIPTIC_EXPLAIN_RETRACES", "").lower() not in ("", "0", "off", "false"):
        stack.enter_context(explain_retraces(functools.partial(print, file=sys.stderr)))
    return stack


_process = _from_environment()
