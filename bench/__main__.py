"""``python -m bench``: measure, print the table, fail when a budget is passed."""

import argparse
import json
import pathlib
import re
import sys
from collections.abc import Sequence

from bench import _budget, _catalogue, _judge, _report
from bench._row import Row


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Ratios of Ecliptic to JAX, dataclasses and its peers, in one process.",
        epilog="Status: 0 all held; 1 a budget was passed or a row failed; 2 wrong use.",
    )
    parser.add_argument(
        "--filter", metavar="REGEX", default="", help="measure only rows whose name matches"
    )
    parser.add_argument("--list", action="store_true", help="list rows and budgets, run nothing")
    parser.add_argument(
        "--repeats", type=_positive, default=100, help="samples a contender (default: %(default)s)"
    )
    parser.add_argument(
        "--check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="exit with status 1 when a budget is passed (default: on)",
    )
    parser.add_argument("--json", type=pathlib.Path, metavar="OUT", help="write all numbers there")
    return parser.parse_args(argv)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"needs at least 1, got {number}")
    return number


def main(argv: Sequence[str] | None = None, rows: Sequence[Row] = _catalogue.ROWS) -> int:
    """Runs the command line and returns its exit status."""
    options = _arguments(argv)
    try:
        budgets = _budget.load()
        _budget.check_rows(rows, budgets)
    except _budget.BudgetError as error:
        print(error, file=sys.stderr)
        return 2
    chosen = [row for row in rows if re.search(options.filter, row.name)]
    if not chosen:
        print(f"No row matches {options.filter!r}; --list shows them.", file=sys.stderr)
        return 2
    if options.list:
        for row in chosen:
            print(f"{row.name:44}  {row.budget or '-'}")
        return 0
    outcomes = _run(chosen, budgets, options.repeats)
    if options.json is not None:
        text = json.dumps(_report.record(outcomes), indent=2, ensure_ascii=False)
        options.json.write_text(text + "\n", encoding="utf-8")
    return int(options.check and any(outcome.bad for outcome in outcomes))


def _run(
    rows: Sequence[Row], budgets: dict[str, _budget.Budget], repeats: int
) -> list[_judge.Outcome]:
    outcomes: list[_judge.Outcome] = []
    print(_report.header(), flush=True)
    for row in rows:
        budget = budgets[row.budget] if row.budget is not None else None
        outcomes.append(_judge.judge(row, budget, repeats))
        for line in _report.table_lines(outcomes[-1]):
            print(line, flush=True)
    print(f"\n{_report.summary(outcomes)}")
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
