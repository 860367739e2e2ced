"""The ceilings, and that they and the rows fit each other."""

import pathlib

import pytest

from bench import _budget
from bench._budget import Budget, BudgetError, check_rows
from bench._catalogue import ROWS
from bench._measure import Reported
from bench._row import Row


def clock() -> Reported:
    return Reported(lambda: 1.0)


def load(tmp_path: pathlib.Path, text: str) -> dict[str, Budget]:
    path = tmp_path / "budgets.toml"
    path.write_text(text, encoding="utf-8")
    return _budget.load(path)


RATIO = {"known": Budget("known", 2.0, "ratio")}


def test_an_entry_is_read_with_its_aim(tmp_path: pathlib.Path):
    text = '["a.b"]\nceiling = 2.0\naim = 1.5\nunit = "ratio"'
    assert load(tmp_path, text) == {"a.b": Budget("a.b", 2.0, "ratio", 1.5)}


def test_an_entry_without_ceiling_is_an_error(tmp_path: pathlib.Path):
    with pytest.raises(BudgetError, match=r"'a'.*ceiling"):
        load(tmp_path, '[a]\nunit = "ratio"')


def test_an_unknown_option_is_an_error(tmp_path: pathlib.Path):
    with pytest.raises(BudgetError, match=r"'a'.*floor"):
        load(tmp_path, '[a]\nceiling = 1\nunit = "ratio"\nfloor = 0')


def test_an_unknown_unit_is_an_error(tmp_path: pathlib.Path):
    with pytest.raises(BudgetError, match=r"'a' has unit 'hours'; known are ratio"):
        load(tmp_path, '[a]\nceiling = 1\nunit = "hours"')


def test_a_row_whose_budget_is_missing_is_an_error():
    row = Row("row", subject=clock, reference=clock, budget="unknown")
    with pytest.raises(
        BudgetError, match=r"'row' is limited by 'unknown', which is not in .*known"
    ):
        check_rows([row], RATIO)


def test_a_budget_that_no_row_measures_is_an_error():
    row = Row("row", subject=clock, reference=clock)
    with pytest.raises(BudgetError, match=r"No row measures .*: known"):
        check_rows([row], RATIO)


def test_a_ratio_without_a_reference_is_an_error():
    with pytest.raises(BudgetError, match=r"'row' has no reference"):
        check_rows([Row("row", subject=clock, budget="known")], RATIO)


def test_the_rows_and_the_budgets_of_the_project_fit_each_other():
    check_rows(ROWS, _budget.load())


def test_no_two_rows_share_a_name():
    names = [row.name for row in ROWS]
    assert sorted(set(names)) == sorted(names)
