"""What a type checker sees of the public names is what the cases say."""

from pathlib import Path

import pytest

from tests.support import checker

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.name for path in CASES.glob("*.py"))


@pytest.fixture(scope="module")
def reports() -> set[checker.Report]:
    """Everything that one run of the checker says about all cases."""
    return checker.reported(CASES)


@pytest.mark.parametrize("name", NAMES)
def test_the_checker_reports_what_the_case_announces(name, reports):
    announced = {report for report in checker.expected(CASES) if report.file == name}
    said = {report for report in reports if report.file == name}
    assert announced, f"{name} announces nothing"
    assert sorted(said) == sorted(announced)


def test_the_checker_can_disagree(tmp_path):
    (tmp_path / "case.py").write_text("x: int = ''\nreveal_type(x)  # reveals: str\n")
    assert checker.reported(tmp_path) == {
        checker.Report("case.py", 1, "error", "reportAssignmentType"),
        checker.Report("case.py", 2, "reveals", "int"),
    }
