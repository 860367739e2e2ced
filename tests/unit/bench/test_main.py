"""The command line: exit status, selection, and the file of numbers."""

import json
import pathlib

import pytest

from bench import __main__ as command
from bench import _budget
from bench._budget import Budget
from bench._measure import Clock, Reported
from bench._row import Row

BUDGETS = {"key": Budget("key", 2.0, "ratio")}


def unit() -> Clock:
    return Reported(lambda: 1.0)


def triple() -> Clock:
    return Reported(lambda: 3.0)


def missing() -> Clock:
    raise ImportError("no such thing")


HELD = Row("held row", subject=unit, reference=unit, budget="key")
OVER = Row("over row", subject=triple, reference=unit, budget="key")
FAILED = Row("failed row", subject=missing, reference=unit, budget="key")


@pytest.fixture(autouse=True)
def _budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_budget, "load", lambda: dict(BUDGETS))


def test_the_status_is_zero_when_all_budgets_are_held():
    assert command.main([], [HELD]) == 0


@pytest.mark.parametrize("bad", [OVER, FAILED], ids=["passed", "failed"])
def test_the_status_is_one_when_a_budget_is_passed_or_a_row_failed(bad: Row):
    assert command.main([], [HELD, bad]) == 1


def test_without_check_a_passed_budget_is_only_shown(capsys: pytest.CaptureFixture[str]):
    assert command.main(["--no-check"], [OVER]) == 0
    assert "OVER BUDGET" in capsys.readouterr().out


def test_a_missing_budget_is_an_error_before_anything_runs(capsys: pytest.CaptureFixture[str]):
    unknown = Row("row", subject=missing, reference=unit, budget="unknown")
    assert command.main([], [HELD, unknown]) == 2
    captured = capsys.readouterr()
    assert "limited by 'unknown'" in captured.err
    assert not captured.out


def test_a_filter_selects_rows_by_name(capsys: pytest.CaptureFixture[str]):
    assert command.main(["--filter", "^held"], [HELD, OVER]) == 0
    assert "over row" not in capsys.readouterr().out


def test_a_filter_that_selects_nothing_is_an_error(capsys: pytest.CaptureFixture[str]):
    assert command.main(["--filter", "typo"], [HELD]) == 2
    assert "No row matches 'typo'" in capsys.readouterr().err


def test_the_list_runs_nothing(capsys: pytest.CaptureFixture[str]):
    assert command.main(["--list"], [HELD, FAILED]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split() for line in out] == [["held", "row", "key"], ["failed", "row", "key"]]


def test_the_number_of_samples_comes_from_the_command_line(tmp_path: pathlib.Path):
    out = tmp_path / "numbers.json"
    command.main(["--repeats", "7", "--json", str(out)], [HELD])
    (row,) = json.loads(out.read_text(encoding="utf-8"))["rows"]
    assert row["measurements"][0]["repeats"] == 7


def test_no_samples_are_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        command.main(["--repeats", "0"], [HELD])
    assert "needs at least 1, got 0" in capsys.readouterr().err


def test_the_file_of_numbers_holds_every_measurement_and_the_environment(tmp_path: pathlib.Path):
    out = tmp_path / "numbers.json"
    assert command.main(["--json", str(out)], [OVER, FAILED]) == 1
    record = json.loads(out.read_text(encoding="utf-8"))
    over, failed = record["rows"]
    assert [one["value"] for one in over["measurements"]] == [3.0, 3.0]
    assert over["measurements"][0]["samples"] == {"ecliptic": 3.0, "reference": 1.0}
    assert (over["verdict"], over["ceiling"]) == ("over", 2.0)
    assert (failed["verdict"], failed["reason"]) == ("failed", "ImportError: no such thing")
    assert record["environment"]["jax"]
