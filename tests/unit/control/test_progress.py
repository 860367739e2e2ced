"""The progress of loops."""

import builtins
import importlib.util
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.control import (
    AbstractProgress,
    NoProgress,
    TextProgress,
    TqdmProgress,
    _display,
    filter_scan,
    filter_while_loop,
)
from ecliptic.errors import ArgumentError, ArgumentTypeError, CarryError, MissingPackageError


class Recorder(AbstractProgress[jax.Array]):
    """Keeps what it is told: `init`, fractions, `close`."""

    told: list = ec.field(static=True)
    every: int = ec.field(static=True, default=1)

    def __init__(self, every=1):
        self.told = Told()
        self.every = every

    def interval(self, length):
        return self.every

    def init(self):
        return jnp.zeros((), jnp.int32)

    def step(self, state, progress):
        jax.debug.callback(lambda p: self.told.append(round(float(p), 4)), progress)
        return state + 1

    def close(self, state):
        jax.debug.callback(lambda n: self.told.append(f"closed after {n}"), state)


class Told(list):
    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other


def grow(x, _):
    return jnp.sin(x) + 1, x


def scan(x, progress, length=10, **kwargs):
    return filter_scan(grow, x, length=length, progress=progress, **kwargs)[0]


def count_to(n, progress, **kwargs):
    return filter_while_loop(
        lambda c: c["i"] < n, lambda c: {**c, "i": c["i"] + 1}, {"i": jnp.array(0), "name": "n"},
        progress=progress, **kwargs,
    )["i"]  # fmt: skip


@pytest.fixture
def lines(capsys):
    """What was printed, since it was last asked."""

    def read():
        jax.effects_barrier()
        return capsys.readouterr().out.split()

    return read


@pytest.fixture(autouse=True)
def all_displays_are_closed():
    yield
    jax.effects_barrier()
    assert _display._open == {}


HALVES = TextProgress(0.5)
WITHIN = pytest.mark.parametrize(
    "within",
    [
        lambda f: f,
        jax.jit,
        ec.filter_jit,
        jax.grad,
        lambda f: jax.jit(jax.grad(f)),
        lambda f: jax.jit(jax.grad(jax.checkpoint(f))),
        lambda f: jax.grad(jax.checkpoint(f)),
        lambda f: jax.jit(jax.hessian(f)),
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
        lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x])),
        lambda f: lambda x: jax.jit(jax.vmap(jax.grad(f)))(jnp.stack([x, x])),
    ],
    ids=[
        "eager", "jit", "filter_jit", "grad", "jit-grad", "jit-grad-checkpoint", "grad-checkpoint",
        "hessian", "jvp", "vmap", "jit-vmap-grad",
    ],
)  # fmt: skip


@WITHIN
@pytest.mark.parametrize("kind", ["lax", "checkpointed"])
def test_a_scan_reports_once_whatever_is_done_with_it(lines, within, kind):
    within(lambda x: scan(x, HALVES, kind=kind))(jnp.array(1.0))
    assert lines() == ["0.00%", "50.00%", "100.00%"]


@WITHIN
@pytest.mark.parametrize("kind", ["checkpointed", "bounded"])
def test_a_while_loop_reports_once_whatever_is_done_with_it(lines, within, kind):
    def f(x):
        return filter_while_loop(
            lambda c: c[0] < 10, lambda c: (c[0] + 1, jnp.sin(c[1])), (jnp.array(0), x),
            max_steps=10, kind=kind, progress=HALVES,
        )[1]  # fmt: skip

    within(f)(jnp.array(1.0))
    assert lines() == ["0.00%", "50.00%", "100.00%"]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("length", "every", "unroll"),
    [(0, 1, 1), (1, 4, 1), (7, 1, 3), (7, 100, True), (8, 4, 1), (13, 4, 1), (13, 4, 3)],
)
def test_the_results_of_a_scan_stay_what_they_are(length, every, reverse, unroll):
    xs = {"a": jnp.arange(length * 2.0).reshape(length, 2), "k": jax.random.split(KEY, length)}

    def step(carry, x):
        carry = carry * 0.9 + x["a"] + jax.random.normal(x["k"], (2,))
        return carry, (carry, x["k"], "s")

    def run(progress):
        return filter_scan(step, jnp.ones(2), xs, None, reverse, unroll, progress=progress)

    (one, (a, keys, name)), (other, (b, others, _)) = run(Recorder(every)), run(None)
    assert jnp.allclose(one, other, atol=1e-6)
    assert jnp.allclose(a, b, atol=1e-6)
    assert jnp.array_equal(jax.random.key_data(keys), jax.random.key_data(others))
    assert name == "s"


KEY = jax.random.key(0)


@pytest.mark.parametrize("kind", ["lax", "checkpointed"])
def test_the_derivative_of_a_scan_stays_what_it_is(kind):
    with_progress = jax.grad(lambda x: scan(x, Recorder(4), kind=kind))(1.0)
    assert jnp.allclose(with_progress, jax.grad(lambda x: scan(x, None))(1.0), rtol=1e-5)


@pytest.mark.parametrize(
    ("length", "every", "told"),
    [
        (4, 1, [0.25, 0.5, 0.75, 1.0, "closed after 4"]),
        (10, 4, [0.4, 0.8, 1.0, "closed after 3"]),
        (8, 4, [0.5, 1.0, "closed after 2"]),
        (3, 100, [1.0, "closed after 1"]),
    ],
)
def test_a_scan_reports_between_its_parts_and_at_its_end(length, every, told):
    progress = Recorder(every)
    scan(jnp.array(1.0), progress, length)
    assert progress.told == told or list(progress.told) == told


def test_what_interval_is_by_default():
    assert AbstractProgress.interval(NoProgress(), 1000) == 10
    assert AbstractProgress.interval(NoProgress(), 7) == 1
    assert AbstractProgress.interval(NoProgress(), None) == 1
    assert TextProgress().interval(1000) == 20
    assert TextProgress(0).interval(1000) == 1
    assert TextProgress().interval(None) == 1
    assert TqdmProgress().interval(1000) == 20
    assert TqdmProgress(7).interval(None) == 7
    assert TqdmProgress().interval(100_000) == 1000
    assert TqdmProgress(minimum_increase=0.5).interval(100_000) == 50_000


def test_a_while_loop_that_stops_early_ends_where_it_is(lines):
    assert int(count_to(4, HALVES, max_steps=10)) == 4
    assert lines() == ["0.00%", "40.00%"]


def test_a_while_loop_stops_after_max_steps(lines):
    assert int(count_to(40, HALVES, max_steps=10)) == 10
    assert lines() == ["0.00%", "50.00%", "100.00%"]


def test_a_loop_without_steps_is_at_its_end_at_once(lines):
    scan(jnp.array(1.0), HALVES, 0)
    assert count_to(0, HALVES, max_steps=0) == 0
    assert lines()[:2] == ["0.00%", "0.00%"]


def test_a_loop_without_steps_in_a_derivative(lines):
    jax.jit(jax.grad(jax.checkpoint(lambda x: scan(x, HALVES, 0))))(1.0)
    assert lines()[0] == "0.00%"


def test_a_fraction_of_the_carry(lines):
    count_to(10, HALVES, fraction=lambda c: c["i"] / 10)
    assert lines() == ["0.00%", "50.00%", "100.00%"]


def test_a_fraction_stays_between_0_and_1(lines):
    count_to(4, TextProgress(0.1), fraction=lambda c: c["i"] - 2.0)
    assert lines() == ["0.00%", "100.00%"]


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_of_a_batch_that_stops_at_different_times_the_longest_counts(lines, transform):
    out = transform(jax.vmap(lambda n: count_to(n, HALVES, max_steps=10)))(jnp.array([2, 10, 5]))
    assert out.tolist() == [2, 10, 5]
    assert lines() == ["0.00%", "50.00%", "100.00%"]


def test_of_a_batch_with_fractions_the_mean_counts():
    progress = Recorder()
    jax.vmap(lambda n: count_to(n, progress, fraction=lambda c: c["i"] / n))(jnp.array([2, 4]))
    assert list(progress.told) == [0.375, 0.75, 0.875, 1.0, 1.0, "closed after 5"]


def test_batches_of_batches():
    progress = Recorder()
    both = jax.vmap(jax.vmap(lambda n: count_to(n, progress, max_steps=4)))
    both(jnp.array([[1, 2], [3, 4]]))
    assert list(progress.told) == [0.25, 0.5, 0.75, 1.0, 1.0, "closed after 5"]


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.grad, jax.vmap])
def test_a_loop_in_a_loop_has_a_display_for_each_run(lines, transform):
    def outer(x):
        return filter_scan(lambda x, _: (scan(x, HALVES), None), x, length=2)[0]

    transform(outer)(jnp.ones(2) if transform is jax.vmap else jnp.array(1.0))
    assert lines() == ["0.00%", "50.00%", "100.00%"] * 2


def test_both_loops_may_report(lines):
    def step(x, _):
        return scan(x, TextProgress(1.0), 3), None

    filter_scan(step, jnp.array(1.0), length=2, progress=HALVES)
    inner = ["0.00%", "100.00%"]
    assert lines() == ["0.00%", *inner, "50.00%", *inner, "100.00%"]


def test_several_loops_at_once(lines):
    def run(x):
        return scan(x, HALVES) + scan(x + 1, HALVES)

    threads = [threading.Thread(target=run, args=(jnp.array(float(i)),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(lines()) == sorted(["0.00%", "50.00%", "100.00%"] * 8)


def raise_at_the_fifth(x, _):
    def check(x):
        if x >= 5:
            raise RuntimeError("at the fifth")

    jax.debug.callback(check, x)
    return x + 1, None


@pytest.mark.filterwarnings("ignore")
def test_a_loop_that_raises_closes_its_display():
    with pytest.raises(Exception, match="at the fifth"):
        filter_scan(raise_at_the_fifth, jnp.array(0), length=10, progress=HALVES)
    assert _display._open == {}


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.grad])
def test_a_loop_that_cannot_be_traced_closes_its_display(transform):
    def wrong(x, _):
        return jnp.stack([x, x]), None

    with pytest.raises(CarryError, match="the shapes differ"):
        transform(lambda x: filter_scan(wrong, x, length=10, progress=HALVES)[0])(jnp.array(1.0))
    assert _display._open == {}


def test_closing_all_displays_lets_the_running_ones_go_on(capsys):
    number = _display.open_display(_display.TextDisplay)
    _display.close_all_displays()
    _display.report(number, 0.5)
    _display.close_display(number, 0.5, 1.0)
    _display.report(number, 1.0)
    assert capsys.readouterr().out.split() == ["0.00%", "0.00%", "50.00%", "100.00%"]


def test_a_display_never_goes_back(capsys):
    number = _display.open_display(_display.TextDisplay)
    for fraction in (0.5, 0.25, 0.5):
        _display.report(number, fraction)
    _display.close_display(number, 0.5, 0.5)
    assert capsys.readouterr().out.split() == ["0.00%", "50.00%"]


@pytest.mark.parametrize("error", [OSError, ValueError])
def test_a_stream_that_is_gone_does_not_end_the_computation(monkeypatch, error):
    number = _display.open_display(_display.TextDisplay)

    def gone(*args, **kwargs):
        raise error("closed")

    monkeypatch.setattr(builtins, "print", gone)
    _display.report(number, 0.5)
    _display.close_display(number, 0.5, 1.0)


@pytest.mark.parametrize("progress", [None, NoProgress()])
def test_without_progress_the_program_is_the_same(progress):
    def program(progress):
        return str(jax.make_jaxpr(lambda x: scan(x, progress))(1.0))

    assert program(progress) == program(None)
    assert "callback" not in program(progress)
    assert "callback" in program(HALVES)


@pytest.mark.parametrize("wrap", [lambda f: f, ec.filter_jit])
def test_a_second_call_does_not_trace_again(wrap):
    traces = []

    def step(x, _):
        traces.append(1)
        return x + 1, None

    run = wrap(lambda x: filter_scan(step, x, length=8, progress=TextProgress(0.25))[0])
    for i in range(3):
        run(jnp.array(i))
    assert len(traces) == 1


def test_state_of_any_structure_goes_through():
    class Keeps(AbstractProgress):
        def init(self):
            return {"key": jax.random.key(0), "seen": (jnp.zeros(3, jnp.bfloat16), None)}

        def step(self, state, progress):
            key, _ = jax.random.split(state["key"])
            seen, _ = state["seen"]
            return {"key": key, "seen": (seen.at[0].set(progress.astype(seen.dtype)), None)}

        def close(self, state):
            assert state["seen"][0].dtype == jnp.bfloat16

    scan(jnp.array(1.0), Keeps())
    jax.vmap(lambda n: count_to(n, Keeps(), max_steps=4))(jnp.array([1, 3]))


class TestTqdm:
    def test_it_draws_a_bar_to_the_end(self, capsys):
        scan(jnp.array(1.0), TqdmProgress(description="this loop"), 100)
        text = capsys.readouterr().err
        assert "this loop:   0.00%|" in text
        assert text.rstrip().rpartition("\r")[2].startswith("this loop: 100.00%|")

    def test_it_stays_where_the_loop_stopped(self, capsys):
        count_to(4, TqdmProgress(1), max_steps=10)
        assert capsys.readouterr().err.rstrip().rpartition("\r")[2].strip().startswith("40.00%|")

    def test_it_is_imported_when_it_is_used(self):
        program = (
            "import sys, ecliptic as ec, jax.numpy as jnp\n"
            "ec.filter_scan(lambda x, _: (x, None), jnp.array(0), length=2,"
            " progress=ec.TextProgress())\n"
            "ec.TqdmProgress()\n"
            "assert 'tqdm' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    def test_if_it_is_missing_the_error_says_what_to_do(self, monkeypatch):
        find = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: None if name == "tqdm" else find(name)
        )
        with pytest.raises(MissingPackageError, match=r"needs the package `tqdm`.*TextProgress"):
            scan(jnp.array(1.0), TqdmProgress())


class TestRefusals:
    @pytest.mark.parametrize("progress", [True, TextProgress, "text"])
    def test_something_else(self, progress):
        with pytest.raises(ArgumentTypeError, match=r"`filter_scan\(progress=...\)` is an inst"):
            scan(jnp.array(1.0), progress)

    def test_a_while_loop_without_an_end(self):
        with pytest.raises(ArgumentError, match="does not know how far the loop has to go"):
            count_to(3, HALVES)
        assert int(count_to(3, NoProgress())) == 3

    def test_a_fraction_without_progress(self):
        with pytest.raises(ArgumentError, match="says how far a loop is to `progress=`"):
            count_to(3, None, fraction=lambda c: 0.0)

    @pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
    def test_an_increase_that_is_no_fraction(self, value):
        with pytest.raises(ArgumentError, match="from 0 to 1; got"):
            TextProgress(value)
        with pytest.raises(ArgumentError, match=r"`TqdmProgress\(minimum_increase=...\)`"):
            TqdmProgress(minimum_increase=value)

    def test_refresh_steps_that_are_none(self):
        with pytest.raises(ArgumentError, match=r"refresh_steps=...\)` must be positive; got 0"):
            TqdmProgress(0)
