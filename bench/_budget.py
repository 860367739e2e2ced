"""The ceilings in ``budgets.toml``."""

import dataclasses
import pathlib
import tomllib
from collections.abc import Iterable, Mapping

from bench._row import Row

PATH = pathlib.Path(__file__).with_name("budgets.toml")

# What a budget may limit: the ratio of subject to reference, or the subject's own sample times the
# factor here.
RATIO = "ratio"
FACTORS: Mapping[str, float] = {"µs": 1e6, "s": 1.0, "%": 100.0}


class BudgetError(ValueError):
    """``budgets.toml`` and the rows do not fit each other."""


@dataclasses.dataclass(frozen=True)
class Budget:
    """One entry: a value above ``ceiling`` fails; one above ``aim`` is worth a note."""

    key: str
    ceiling: float
    unit: str
    aim: float | None = None


def load(path: pathlib.Path = PATH) -> dict[str, Budget]:
    """Reads the budgets, by key.

    Raises:
        BudgetError: if an entry has an unknown option or unit, or no ceiling.
    """
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    return {key: _budget(key, entry, path) for key, entry in entries.items()}


def _budget(key: str, entry: Mapping[str, object], path: pathlib.Path) -> Budget:
    try:
        budget = Budget(key, **entry)  # pyright: ignore[reportArgumentType]
    except TypeError as error:
        raise BudgetError(f"{path}: entry {key!r}: {error}; got {dict(entry)}.") from error
    if budget.unit != RATIO and budget.unit not in FACTORS:
        known = ", ".join([RATIO, *FACTORS])
        raise BudgetError(f"{path}: entry {key!r} has unit {budget.unit!r}; known are {known}.")
    return budget


def check_rows(rows: Iterable[Row], budgets: Mapping[str, Budget]) -> None:
    """Holds rows and budgets to each other.

    Raises:
        BudgetError: if a row names an entry that is missing, or needs a reference for it and has
            none; or if no row measures an entry.
    """
    idle = set(budgets)
    for row in rows:
        if row.budget is None:
            continue
        if row.budget not in budgets:
            raise BudgetError(
                f"The row {row.name!r} is limited by {row.budget!r}, which is not in "
                f"{PATH.name}: {', '.join(sorted(budgets))}. Add the entry or mend the name."
            )
        if budgets[row.budget].unit == RATIO and row.reference is None:
            raise BudgetError(
                f"The row {row.name!r} has no reference, but its budget {row.budget!r} is a ratio."
            )
        idle.discard(row.budget)
    if idle:
        raise BudgetError(
            f"No row measures these entries of {PATH.name}: {', '.join(sorted(idle))}."
        )
