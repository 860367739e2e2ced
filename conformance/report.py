"""``python -m conformance.report``: one table of the level that is reached.

The levels `surface` and `parity` are measured here and now; how the suites of other projects did is
read from the files that ``python -m conformance.downstream SUITE`` leaves in ``.cache/suites``.
Status 1, if something differs that is not on purpose.
"""

import collections
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Each program of `parity` is compiled and run once.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

from conformance import parity, surface
from conformance.downstream.__main__ import CLONES
from conformance.downstream.__main__ import read as suites


class Row(NamedTuple):
    """One line of the table."""

    level: str
    topic: str
    same: int
    on_purpose: int
    wrong: list[str]


def surface_rows() -> Iterator[Row]:
    """Names of Ecliptic against the data, and the data against Equinox."""
    data = surface.read()
    equinox, ours = parity.libraries()
    found = surface.differences(data, surface.describe(ours))
    wrong = [f"{name} {what}" for name, what in found.items() if name not in surface.ON_PURPOSE]
    wrong += [f"{name} differs no longer" for name in surface.ON_PURPOSE if name not in found]
    yield Row(
        "surface", "names of Ecliptic", len(data) - len(found), len(surface.ON_PURPOSE), wrong
    )
    stale = [f"{name} {what}" for name, what in surface.stale(data, equinox).items()]
    yield Row("surface", "the data itself", len(data) - len(stale), 0, stale)


def parity_rows() -> Iterator[Row]:
    """Programs on both libraries, by topic."""
    for topic in (module.TABLE.topic for module in parity.TOPICS):
        problems = dict(parity.check(rf"^{topic}\."))
        fine = [name for name, problem in problems.items() if not problem]
        meant = sum(name in parity.ON_PURPOSE for name in fine)
        wrong = [f"{name}: {problem}" for name, problem in problems.items() if problem]
        yield Row("parity", topic, len(fine) - meant, meant, wrong)


def downstream_rows() -> Iterator[Row]:
    """The last run of each suite."""
    for name, suite in suites().items():
        path = CLONES / f"{name}.tsv"
        if not path.exists():
            yield Row("downstream", f"{name} (not run here)", 0, len(suite.get("expected", {})), [])
            continue
        lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        count = collections.Counter(kind for kind, _ in lines)
        wrong = [f"{name}: {test}" for kind, test in lines if kind == "unexpected"]
        yield Row("downstream", name, count["passed"], count["expected"], wrong)


def main() -> None:
    """Prints the table, and below it what is wrong."""
    print(f"{'level':<11} {'topic':<24} {'same':>6} {'on purpose':>11} {'wrong':>6}")
    rows = []
    for source in (surface_rows, parity_rows, downstream_rows):
        for row in source():
            rows.append(row)
            print(
                f"{row.level:<11} {row.topic:<24} {row.same:>6} {row.on_purpose:>11} "
                f"{len(row.wrong):>6}",
                flush=True,
            )
    wrong = [line for row in rows for line in row.wrong]
    total = sum(row.same for row in rows), sum(row.on_purpose for row in rows), len(wrong)
    print(f"{'':<11} {'all':<24} {total[0]:>6} {total[1]:>11} {total[2]:>6}")
    for line in wrong:
        print(f"\n{line}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
