"""What the table says about an outcome."""

from bench import _report
from bench._budget import Budget
from bench._judge import judge
from bench._measure import Clock, Reported
from bench._row import Factory, Row


def constant(value: float) -> Factory:
    return lambda: Reported(lambda: value)


def missing() -> Clock:
    raise ImportError("not here\nand more")


def table(row: Row, budget: Budget | None) -> str:
    return "\n".join(_report.table_lines(judge(row, budget, 2)))


def test_a_row_shows_both_times_the_value_and_its_ceiling():
    row = Row("thing", subject=constant(3e-6), reference=constant(2e-6), budget="key")
    first = table(row, Budget("key", 2.0, "ratio")).splitlines()[0]
    assert first.split() == ["thing", "3", "µs", "2", "µs", "1.5", "×", "2", "held"]


def test_a_row_that_was_measured_twice_shows_both_values():
    row = Row("thing", subject=constant(3.0), reference=constant(1.0), budget="key")
    text = table(row, Budget("key", 2.0, "ratio"))
    assert "OVER BUDGET" in text
    assert "measured twice: 3 ×, then 3 × with 8 samples each" in text


def test_a_failed_row_shows_its_reason():
    text = table(Row("thing", subject=missing), None)
    assert "FAILED" in text
    assert "ImportError: not here" in text


def test_an_aim_is_reported_met_or_missed():
    row = Row("thing", subject=constant(1.7), reference=constant(1.0), budget="key")
    assert "held, aim missed" in table(row, Budget("key", 2.0, "ratio", aim=1.5))
    assert "held, aim met" in table(row, Budget("key", 2.0, "ratio", aim=1.7))


def test_peers_stand_beside_subject_and_reference():
    row = Row(
        "thing",
        subject=constant(1e-6),
        reference=constant(2e-6),
        peers={"other": constant(4e-6), "gone": missing},
    )
    text = table(row, None)
    assert "other: 4 µs, 2 × the reference (ecliptic is 0.25 × it)" in text
    assert "gone: absent (ImportError: not here)" in text


def test_memory_is_shown_in_bytes():
    row = Row("thing", subject=constant(3e3), reference=constant(2e3), quantity="B")
    assert table(row, None).split()[:7] == ["thing", "3", "kB", "2", "kB", "1.5", "×"]


def test_a_share_is_shown_in_per_cent():
    row = Row("thing", subject=constant(0.005), reference=constant(0.001), budget="key")
    assert table(row, Budget("key", 1.0, "%")).split()[:6] == [
        "thing",
        "0.5",
        "%",
        "0.1",
        "%",
        "0.5",
    ]
