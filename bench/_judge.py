"""Measures a row and compares it with its budget."""

import dataclasses
import enum
import math
from collections.abc import Mapping

from bench._budget import FACTORS, RATIO, Budget
from bench._measure import Clock, interleave
from bench._row import Factory, Row

SUBJECT = "ecliptic"
REFERENCE = "reference"

# A busy machine can spoil even a minimum. A value above its ceiling is measured again, with this
# many times the samples, and only the second value counts.
PATIENCE = 4


class Verdict(enum.Enum):
    """What became of a row."""

    HELD = "held"
    OVER = "OVER BUDGET"
    FAILED = "FAILED"
    INFO = "for information"


@dataclasses.dataclass(frozen=True)
class Measurement:
    """Each contender's least sample, and the value that the budget limits."""

    samples: Mapping[str, float]
    value: float
    repeats: int


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A row's measurements (two, if the first was over the budget) and what they mean.

    Attributes:
        row: What was measured.
        budget: What limits it.
        verdict: What became of it.
        measurements: Of subject and reference alone; the last one counts.
        reason: Why the row failed.
        beside: For each peer, the samples of subject, reference and the peer from turns of their
            own.
        absent: Why a peer is missing.
    """

    row: Row
    budget: Budget | None
    verdict: Verdict
    measurements: tuple[Measurement, ...] = ()
    reason: str | None = None
    beside: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def bad(self) -> bool:
        return self.verdict in (Verdict.OVER, Verdict.FAILED)


def judge(row: Row, budget: Budget | None, repeats: int) -> Outcome:
    """Measures ``row`` against ``budget``; whatever its contenders raise is its failure."""
    repeats = row.repeats or repeats
    try:
        clocks = {SUBJECT: _ready(row.subject)}
        if row.reference is not None:
            clocks[REFERENCE] = _ready(row.reference)
        measurements = _measurements(clocks, budget, repeats)
    except Exception as error:
        return Outcome(row, budget, Verdict.FAILED, reason=_reason(error))
    # A peer may leave garbage by the megabyte while the collector is off, and cold caches behind
    # it. So none runs before the verdict, and none beside another.
    beside: dict[str, Mapping[str, float]] = {}
    absent: dict[str, str] = {}
    for label, peer in row.peers.items():
        try:
            turns = {**clocks, label: _ready(peer)}
            beside[label] = interleave(turns, math.ceil(repeats / PATIENCE))
        except Exception as error:
            absent[label] = _reason(error)
    verdict = _verdict(measurements[-1].value, budget)
    return Outcome(row, budget, verdict, measurements, beside=beside, absent=absent)


def _measurements(
    clocks: Mapping[str, Clock], budget: Budget | None, repeats: int
) -> tuple[Measurement, ...]:
    first = _measure(clocks, budget, repeats)
    if _verdict(first.value, budget) is not Verdict.OVER:
        return (first,)
    return first, _measure(clocks, budget, PATIENCE * repeats)


def _verdict(value: float, budget: Budget | None) -> Verdict:
    if budget is None:
        return Verdict.INFO
    return Verdict.HELD if value <= budget.ceiling else Verdict.OVER


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _ready(factory: Factory) -> Clock:
    clock = factory()
    clock.calibrate()
    return clock


def _measure(clocks: Mapping[str, Clock], budget: Budget | None, repeats: int) -> Measurement:
    samples = interleave(clocks, repeats)
    if budget is not None and budget.unit != RATIO:
        value = samples[SUBJECT] * FACTORS[budget.unit]
    elif REFERENCE in samples:
        value = samples[SUBJECT] / samples[REFERENCE]
    else:
        value = samples[SUBJECT]
    return Measurement(samples, value, repeats)
