"""The clocks and the interleaved minimum, under a time that the tests make."""

import gc

import pytest

from bench import _measure
from bench._measure import Reported, Timed, Varied, collector_off, interleave, unrolled


class FakeTime:
    """A timer that stands still until somebody works."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr(_measure, "time", fake)
    return fake


def logging_clock(log: list[str], label: str, samples: list[float]) -> Reported:
    values = iter(samples)

    def sample() -> float:
        log.append(label)
        return next(values)

    return Reported(sample)


def test_contenders_take_turns_and_the_order_rotates():
    log: list[str] = []
    clocks = {label: logging_clock(log, label, [1.0] * 3) for label in "abc"}
    interleave(clocks, 3)
    assert "".join(log) == "abcbcacab"


def test_each_contender_keeps_its_own_minimum():
    clocks = {
        "a": logging_clock([], "a", [3.0, 1.0, 2.0]),
        "b": logging_clock([], "b", [5.0, 6.0, 4.0]),
    }
    assert interleave(clocks, 3) == {"a": 1.0, "b": 4.0}


def test_the_collector_is_off_while_samples_are_taken_and_on_again_after():
    seen: list[bool] = []

    def sample() -> float:
        seen.append(gc.isenabled())
        return 1.0

    assert gc.isenabled()
    interleave({"a": Reported(sample)}, 2)
    assert seen == [False, False]
    assert gc.isenabled()


def test_the_collector_comes_back_when_a_sample_raises():
    with pytest.raises(ZeroDivisionError), collector_off():
        _ = 1 / 0
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with collector_off():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(("seconds", "loops"), [(2e-3, 1), (3e-4, 4), (1e-5, 128)])
def test_calibration_doubles_the_calls_until_a_batch_is_long_enough(
    fake_time: FakeTime, seconds: float, loops: int
):
    clock = Timed(lambda: fake_time.work(seconds))
    clock.calibrate()
    assert clock.loops == loops


def test_calibration_forgets_how_slow_the_first_call_was(fake_time: FakeTime):
    durations = iter([5.0])
    clock = Timed(lambda: fake_time.work(next(durations, 3e-4)))
    clock.calibrate()
    assert clock.loops == 4


def test_a_sample_is_the_time_of_one_operation(fake_time: FakeTime):
    clock = Timed(lambda: fake_time.work(2.0), calls=4)
    clock.loops = 8
    assert clock.sample() == 0.5


def test_the_first_call_of_a_sample_is_not_timed(fake_time: FakeTime):
    durations = iter([100.0])
    clock = Timed(lambda: fake_time.work(next(durations, 1.0)))
    assert clock.sample() == 1.0


def test_a_sample_first_waits_for_what_is_still_running(
    fake_time: FakeTime, monkeypatch: pytest.MonkeyPatch
):
    waited: list[object] = []
    monkeypatch.setattr(_measure.jax, "block_until_ready", waited.append)
    Timed(lambda: "result").sample()
    assert waited == ["result"]


def test_varied_clocks_take_turns_sample_by_sample():
    log: list[str] = []
    clock = Varied([logging_clock(log, label, [1.0] * 3) for label in "ab"])
    clock.calibrate()
    assert "".join(log) == "ab"
    for _ in range(3):
        clock.sample()
    assert "".join(log) == "ababa"


def test_an_unrolled_expression_runs_on_every_line_of_every_turn():
    calls: list[int] = []
    clock = unrolled("record(number)", lines=7, record=calls.append, number=3)
    clock.sample()
    # once untimed, once timed
    assert calls == [3] * (2 * 7 * _measure.UNROLLED_TURNS)


def test_an_unrolled_expression_is_timed_by_the_operation(fake_time: FakeTime):
    clock = unrolled("work(2.0)", lines=5, work=fake_time.work)
    assert clock.sample() == 2.0
