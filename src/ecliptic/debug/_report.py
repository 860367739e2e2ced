"""`trace_report`: how often each function was traced, and how long that took."""

import dataclasses
from collections.abc import Iterator

from ecliptic.transform import lineages


@dataclasses.dataclass(frozen=True)
class TraceCount:
    """How often functions with the same code were traced, and the time that was spent on them.

    Args:
        function: the function's name.
        place: where it is written, as `file:line`.
        functions: how many function objects with this code there were; 0 if it is a PyTree.
        traces: how often they were traced.
        compiles: how often what had been traced was compiled.
        trace_seconds: the time in the Python function while it was traced, with all that is traced
            inside of it.
        lower_seconds: the time that JAX took to translate what was traced for the compiler.
        compile_seconds: the time that the compiler took, or reading from its cache on the disk.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> @ec.filter_jit
        ... def counted(x):
        ...     return 2 * x
        >>> _ = counted(jnp.ones(2))
        >>> next(count.traces for count in ec.debug.trace_report() if count.function == "counted")
        1
    """

    function: str
    place: str
    functions: int
    traces: int
    compiles: int
    trace_seconds: float
    lower_seconds: float
    compile_seconds: float

    @property
    def seconds(self) -> float:
        """The whole time."""
        return self.trace_seconds + self.lower_seconds + self.compile_seconds


class TraceReport:
    """What [`trace_report`][] returns: a sequence of [`TraceCount`][], the slowest first.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> @ec.filter_jit
        ... def reported(x):
        ...     return 2 * x
        >>> _ = reported(jnp.ones(2))
        >>> "reported" in [count.function for count in ec.debug.trace_report()]
        True
    """

    def __init__(self, counts: list[TraceCount]) -> None:
        self._counts = counts

    def __iter__(self) -> Iterator[TraceCount]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __getitem__(self, index: int) -> TraceCount:
        return self._counts[index]

    def __str__(self) -> str:
        names = ("trace", "lower", "compile")
        times = " ".join(f"{name:>8}" for name in names)
        heading = f"{'traces':>6} {'compiles':>8} {times}  function"
        lines = [
            f"{c.traces:>6} {c.compiles:>8} {c.trace_seconds:>7.2f}s {c.lower_seconds:>7.2f}s "
            f"{c.compile_seconds:>7.2f}s  {c.function} ({c.place})"
            for c in self
        ]
        return "\n".join([heading, *lines])


def trace_report() -> TraceReport:
    """Says how often each function was traced by `filter_jit` so far, and how long it took.

    What is counted: every trace since the process began. What is measured: the time in the Python
    function while it was traced; and what `jax.monitoring` tells of lowering and compiling on the
    same thread, by name of function, right after. A program that is compiled again without a trace
    (for other devices) is not counted, nor is what is traced by plain `jax.jit`. A function that is
    traced inside of another is compiled with that, and has no times of its own but the first.

    Returns:
        A sequence of [`TraceCount`][], which prints as a table.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> @ec.filter_jit
        ... def doubled(x):
        ...     return 2 * x
        >>> for size in (2, 3, 2, 3):
        ...     _ = doubled(jnp.ones(size))
        >>> [(c.traces, c.compiles) for c in ec.debug.trace_report() if c.function == "doubled"]
        [(2, 2)]
    """
    counts = [
        TraceCount(
            x.name, x.place, x.functions, x.count, x.compiles,
            x.seconds["trace"], x.seconds["lower"], x.seconds["compile"],
        )
        for x in lineages()
    ]  # fmt: skip
    return TraceReport(sorted(counts, key=lambda count: -count.seconds))
