"""Measures a row and compares it with its budget."""

import dataclasses
import enum
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

    ``reason`` says why a row failed, and ``absent`` why a peer is missing.
    """

    row: Row
    budget: Budget | None
    verdict: Verdict
    measurements: tuple[Measurement, ...] = ()
    reason: str | None = None
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def bad(self) -> bool:
        return self.verdict in (Verdict.OVER, Verdict.FAILED)


def judge(row: Row, budget: Budget | None, repeats: int) -> Outcome:
    """Measures ``row`` against ``budget``; whatever its contenders raise is its failure."""
    repeats = row.repeats or repeats
    try:
        clocks, absent = _contenders(row)
        first = _measure(clocks, budget, repeats)
        if budget is None:
            return Outcome(row, None, Verdict.INFO, (first,), absent=absent)
        if first.value <= budget.ceiling:
            return Outcome(row, budget, Verdict.HELD, (first,), absent=absent)
        second = _measure(clocks, budget, PATIENCE * repeats)
    except Exception as error:
        return Outcome(row, budget, Verdict.FAILED, reason=f"{type(error).__name__}: {error}")
    verdict = Verdict.HELD if second.value <= budget.ceiling else Verdict.OVER
    return Outcome(row, budget, verdict, (first, second), absent=absent)


def _contenders(row: Row) -> tuple[dict[str, Clock], dict[str, str]]:
    clocks: dict[str, Clock] = {SUBJECT: _ready(row.subject)}
    if row.reference is not None:
        clocks[REFERENCE] = _ready(row.reference)
    absent: dict[str, str] = {}
    for label, peer in row.peers.items():
        try:
            clocks[label] = _ready(peer)
        except Exception as error:
            absent[label] = f"{type(error).__name__}: {error}"
    return clocks, absent


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
