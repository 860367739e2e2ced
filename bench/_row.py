"""What one line of the table measures."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial

from bench._measure import Clock
from bench._models import ECLIPTIC, EQUINOX

# Builds a contender when its turn comes: a name that is missing fails its own row alone, and a
# filtered run builds nothing else.
Factory = Callable[[], Clock]


@dataclasses.dataclass(frozen=True)
class Row:
    """One benchmark.

    Attributes:
        name: The line in the table, which ``--filter`` searches.
        subject: Builds Ecliptic's contender.
        reference: Builds what the subject is compared with; None where the value is absolute.
        against: What the reference is, in words.
        budget: The entry of ``budgets.toml`` that limits the row; None where it only informs.
        peers: Further contenders, for information: one that is not installed does no harm.
        repeats: How many samples to take; None for as many as the command line says. Slow
            benchmarks set it.
        quantity: What the clocks read: seconds, or bytes.
    """

    name: str
    subject: Factory
    reference: Factory | None = None
    against: str = ""
    budget: str | None = None
    peers: Mapping[str, Factory] = dataclasses.field(default_factory=dict)
    repeats: int | None = None
    quantity: str = "s"


def against_equinox(
    name: str, budget: str | None, contender: Callable[[str], Clock], repeats: int = 40
) -> Row:
    """A row that compares the same thing in both libraries.

    Args:
        name: The line in the table.
        budget: The entry of ``budgets.toml``.
        contender: Builds the clock of a library, given its name.
        repeats: How many samples to take.
    """
    return Row(
        name,
        budget=budget,
        subject=partial(contender, ECLIPTIC),
        reference=partial(contender, EQUINOX),
        against="Equinox",
        repeats=repeats,
    )
