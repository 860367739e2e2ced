"""When a row is held, when it is measured again, and when it fails."""

import pytest

from bench._budget import Budget
from bench._judge import PATIENCE, Verdict, judge
from bench._measure import Clock, Reported
from bench._row import Factory, Row

BUDGET = Budget("key", 2.0, "ratio")


def constant(value: float) -> Factory:
    return lambda: Reported(lambda: value)


def missing() -> Clock:
    raise ModuleNotFoundError("No module named 'absent'")


def row(subject: Factory, reference: Factory | None = None, **options) -> Row:
    return Row("row", subject=subject, reference=reference, budget="key", **options)


class Counted:
    """A clock whose samples are ``noisy`` for a while and then ``quiet``."""

    def __init__(self, noisy: float, quiet: float, patience: int) -> None:
        self.values = [noisy] * patience
        self.quiet = quiet
        self.samples = 0

    def calibrate(self) -> None:
        pass

    def sample(self) -> float:
        self.samples += 1
        return self.values.pop() if self.values else self.quiet


def test_a_ratio_under_the_ceiling_is_held_after_one_measurement():
    outcome = judge(row(constant(3.0), constant(2.0)), BUDGET, 4)
    assert (outcome.verdict, outcome.bad) == (Verdict.HELD, False)
    assert [(one.value, one.repeats) for one in outcome.measurements] == [(1.5, 4)]


def test_a_ratio_at_the_ceiling_is_held():
    assert judge(row(constant(4.0), constant(2.0)), BUDGET, 1).verdict is Verdict.HELD


def test_a_ratio_over_the_ceiling_fails_after_a_second_longer_measurement():
    outcome = judge(row(constant(5.0), constant(2.0)), BUDGET, 3)
    assert (outcome.verdict, outcome.bad) == (Verdict.OVER, True)
    assert [(one.value, one.repeats) for one in outcome.measurements] == [
        (2.5, 3),
        (2.5, 3 * PATIENCE),
    ]


def test_noise_that_passes_does_not_count_but_is_reported():
    subject = Counted(noisy=9.0, quiet=1.0, patience=3)
    outcome = judge(row(lambda: subject, constant(1.0)), BUDGET, 3)
    assert outcome.verdict is Verdict.HELD
    assert [one.value for one in outcome.measurements] == [9.0, 1.0]


def test_a_row_can_fix_its_own_number_of_samples():
    subject = Counted(noisy=1.0, quiet=1.0, patience=0)
    judge(row(lambda: subject, constant(1.0), repeats=2), BUDGET, 100)
    assert subject.samples == 2


@pytest.mark.parametrize(
    ("unit", "sample", "value"), [("µs", 1.5e-6, 1.5), ("s", 1.5, 1.5), ("%", 0.015, 1.5)]
)
def test_an_absolute_budget_limits_the_subject_in_its_unit(unit: str, sample: float, value: float):
    outcome = judge(row(constant(sample), constant(1e9)), Budget("key", 2.0, unit), 1)
    assert outcome.verdict is Verdict.HELD
    assert outcome.measurements[0].value == pytest.approx(value)


def test_an_absolute_value_over_its_ceiling_fails():
    outcome = judge(row(constant(2.1e-6)), Budget("key", 2.0, "µs"), 1)
    assert outcome.verdict is Verdict.OVER


@pytest.mark.parametrize("slot", ["subject", "reference"])
def test_a_missing_contender_fails_the_row_and_says_why(slot: str):
    factories = {"subject": constant(1.0), "reference": constant(1.0), slot: missing}
    outcome = judge(row(**factories), BUDGET, 1)
    assert (outcome.verdict, outcome.bad) == (Verdict.FAILED, True)
    assert outcome.reason == "ModuleNotFoundError: No module named 'absent'"


def test_a_missing_subject_fails_a_row_without_budget_too():
    assert judge(row(missing), None, 1).verdict is Verdict.FAILED


def test_a_contender_that_breaks_while_it_is_sampled_fails_the_row():
    def broken() -> float:
        raise ValueError("broken in the middle")

    class BreaksLate(Reported):
        def calibrate(self) -> None:
            pass

    outcome = judge(row(lambda: BreaksLate(broken), constant(1.0)), BUDGET, 1)
    assert outcome.verdict is Verdict.FAILED
    assert outcome.reason == "ValueError: broken in the middle"


def test_a_missing_peer_is_named_and_harms_nothing():
    peers = {"here": constant(3.0), "gone": missing}
    outcome = judge(row(constant(1.0), constant(1.0), peers=peers), BUDGET, 1)
    assert outcome.verdict is Verdict.HELD
    assert outcome.absent == {"gone": "ModuleNotFoundError: No module named 'absent'"}
    assert outcome.beside == {"here": {"ecliptic": 1.0, "reference": 1.0, "here": 3.0}}


def test_a_peer_that_breaks_while_it_is_sampled_harms_nothing():
    values = iter([1.0])
    peers = {"breaks": lambda: Reported(lambda: next(values)), "here": constant(3.0)}
    outcome = judge(row(constant(1.0), constant(1.0), peers=peers), BUDGET, 1)
    assert outcome.verdict is Verdict.HELD
    assert list(outcome.absent) == ["breaks"]
    assert list(outcome.beside) == ["here"]


def test_no_peer_runs_before_the_verdict_or_beside_another():
    log: list[str] = []

    def logged(label: str) -> Factory:
        def sample() -> float:
            log.append(label)
            return 1.0

        return lambda: Reported(sample)

    peers = {"p": logged("p"), "q": logged("q")}
    judge(row(logged("s"), logged("r"), peers=peers), BUDGET, 1)
    # calibration, the verdict's turn; then for each peer its calibration and a turn
    assert "".join(log) == "srsrpsrpqsrq"


def test_a_row_without_budget_only_informs():
    outcome = judge(row(constant(9.0), constant(1.0)), None, 1)
    assert (outcome.verdict, outcome.bad) == (Verdict.INFO, False)
    assert outcome.measurements[0].value == 9.0
