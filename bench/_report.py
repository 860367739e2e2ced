"""The table for people and the record for programs."""

import importlib.metadata
import os
import platform
from collections.abc import Iterable, Iterator

from bench._budget import RATIO, Budget
from bench._judge import REFERENCE, SUBJECT, Measurement, Outcome, Verdict

PACKAGES = ("ecliptic", "jax", "jaxlib", "numpy", "equinox", "flax", "optax")
WIDTHS = (44, 10, 10, 12, 9, 6)
HEADER = ("what", "ecliptic", "reference", "value", "ceiling", "aim", "verdict")


def environment() -> dict[str, str]:
    """What the numbers depend on."""
    versions = {name: _version(name) for name in PACKAGES}
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    processors = str(os.cpu_count())
    python = platform.python_version()
    return {"python": python, **versions, "processors": processors, "load": load}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def header() -> str:
    """The first lines of the table."""
    facts = ", ".join(f"{name} {value}" for name, value in environment().items())
    titles = _line(HEADER)
    return f"{facts}\n\n{titles}\n{'-' * len(titles)}"


def table_lines(outcome: Outcome) -> Iterator[str]:
    """A row of the table, then a line for each thing worth knowing about it."""
    row, budget = outcome.row, outcome.budget
    if not outcome.measurements:
        yield _line((row.name, "", "", "", *_limits(budget), outcome.verdict.value))
        yield f"    {outcome.reason}"
        return
    last = outcome.measurements[-1]
    samples, unit = last.samples, _unit(outcome)
    shown = _shown_in(outcome)
    reference = _sample(samples[REFERENCE], shown) if REFERENCE in samples else ""
    subject = _sample(samples[SUBJECT], shown)
    value = _value(last.value, unit)
    yield _line((row.name, subject, reference, value, *_limits(budget), _verdict(outcome, last)))
    if len(outcome.measurements) > 1:
        first = outcome.measurements[0]
        values = f"{_value(first.value, unit)}, then {_value(last.value, unit)}"
        yield f"    measured twice: {values} with {last.repeats} samples each"
    yield from _peer_lines(outcome, last, shown)


def _peer_lines(outcome: Outcome, last: Measurement, unit: str) -> Iterator[str]:
    if REFERENCE in last.samples:
        share = last.samples[SUBJECT] / last.samples[REFERENCE]
        yield f"    reference: {outcome.row.against} (ecliptic is {share:.3g} × it)"
    for label in outcome.row.peers:
        if label in outcome.absent:
            yield f"    {label}: absent ({outcome.absent[label].splitlines()[0]})"
            continue
        samples = outcome.beside[label]
        peer = f"    {label}: {_sample(samples[label], unit)}"
        if REFERENCE in samples:
            peer += f", {samples[label] / samples[REFERENCE]:.3g} × the reference"
        yield f"{peer} (ecliptic is {samples[SUBJECT] / samples[label]:.3g} × it)"


def _verdict(outcome: Outcome, last: Measurement) -> str:
    aim = outcome.budget.aim if outcome.budget is not None else None
    if outcome.verdict is not Verdict.HELD or aim is None:
        return outcome.verdict.value
    return "held, aim met" if last.value <= aim else "held, aim missed"


def summary(outcomes: Iterable[Outcome]) -> str:
    """The last line: how many rows have which verdict."""
    verdicts = [outcome.verdict for outcome in outcomes]
    counts = [f"{verdicts.count(kind)} {kind.value}" for kind in Verdict]
    return f"{len(verdicts)} rows: {', '.join(counts)}"


def record(outcomes: Iterable[Outcome]) -> dict[str, object]:
    """Everything that was measured, ready for JSON."""
    return {"environment": environment(), "rows": [_entry(outcome) for outcome in outcomes]}


def _entry(outcome: Outcome) -> dict[str, object]:
    budget = outcome.budget
    return {
        "name": outcome.row.name,
        "against": outcome.row.against,
        "budget": outcome.row.budget,
        "ceiling": budget.ceiling if budget else None,
        "aim": budget.aim if budget else None,
        "unit": _unit(outcome),
        "verdict": outcome.verdict.name.lower(),
        "reason": outcome.reason,
        "absent": dict(outcome.absent),
        "beside": {label: dict(samples) for label, samples in outcome.beside.items()},
        "measurements": [
            {"value": one.value, "repeats": one.repeats, "samples": dict(one.samples)}
            for one in outcome.measurements
        ],
    }


def _unit(outcome: Outcome) -> str:
    if outcome.budget is not None:
        return outcome.budget.unit
    return RATIO if outcome.row.reference is not None else "s"


def _shown_in(outcome: Outcome) -> str:
    """The unit of samples, which that of the value may be a ratio of."""
    return "B" if outcome.row.quantity == "B" else _unit(outcome)


def _limits(budget: Budget | None) -> tuple[str, str]:
    if budget is None:
        return "", ""
    return f"{budget.ceiling:g}", "" if budget.aim is None else f"{budget.aim:g}"


def _value(value: float, unit: str) -> str:
    return f"{value:.3g} {'×' if unit == RATIO else unit}"


def _sample(sample: float, unit: str) -> str:
    """A sample is a time, unless it is in bytes, or a share under a budget in per cent."""
    if unit == "%":
        return f"{100 * sample:.3g} %"
    if unit == "B":
        return f"{sample / 1e3:.3g} kB"
    for factor, name in ((1e9, "ns"), (1e6, "µs"), (1e3, "ms")):
        if sample * factor < 1000:
            return f"{sample * factor:.3g} {name}"
    return f"{sample:.3g} s"


def _line(cells: tuple[str, ...]) -> str:
    name, *numbers, verdict = cells
    padded = [name.ljust(WIDTHS[0])]
    padded += [cell.rjust(width) for cell, width in zip(numbers, WIDTHS[1:], strict=True)]
    return "  ".join([*padded, verdict])
