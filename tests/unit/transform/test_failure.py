"""Failing checks and `filter_jit`: who waits, who finds out, what is left behind."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.errors import RuntimeCheckError
from ecliptic.runtime import error_if
from ecliptic.transform import _failure, on_failure

GOOD, BAD = jnp.array(1.0), jnp.array(-1.0)


def checked(x):
    return error_if(x, x < 0, "negative")


@pytest.fixture
def waits(monkeypatch):
    """How often a program has been waited for."""
    calls = []
    wait = jax.block_until_ready
    monkeypatch.setattr(jax, "block_until_ready", lambda out: (calls.append(1), wait(out))[1])
    return calls


def _nested(inner):
    return lambda x: inner(x) + 1


WITH_A_CHECK = {
    "straight": lambda: lambda x: checked(x) + 1,
    "nested": lambda: _nested(jax.jit(lambda x: checked(x))),
    "in a scan": lambda: lambda x: jax.lax.scan(lambda c, _: (checked(c), None), x, None, 2)[0],
    "in a bounded loop": lambda: (
        lambda x: ec.filter_while_loop(
            lambda c: c[0] < 2,
            lambda c: (c[0] + 1, checked(c[1])),
            (0, x),
            max_steps=2,
            kind="bounded",
        )
    ),
}


@pytest.mark.parametrize("name", WITH_A_CHECK)
def test_a_program_with_a_check_is_waited_for(name, waits):
    run = ec.filter_jit(WITH_A_CHECK[name]())
    for i in range(6):
        run(GOOD)
        assert len(waits) == i + 1


def test_a_check_in_a_function_that_was_traced_before(waits):
    inner = jax.jit(checked)
    inner(GOOD)
    run = ec.filter_jit(_nested(inner))
    run(GOOD)
    assert len(waits) == 1
    with pytest.raises(RuntimeCheckError, match="negative"):
        run(BAD)


def test_a_program_without_a_check_is_not_waited_for(waits):
    run = ec.filter_jit(lambda x: x + 1)
    for _ in range(6):
        run(GOOD)
    assert waits == []


@pytest.mark.parametrize("calls", [1, 6])
def test_a_check_that_other_shapes_have(calls):
    run = ec.filter_jit(lambda x: checked(x) if x.ndim else x + 1)
    for _ in range(calls):
        run(GOOD)
    with pytest.raises(RuntimeCheckError, match="negative"):
        run(BAD[None])
    run(GOOD[None])
    assert float(run(BAD)) == 0


@pytest.mark.parametrize(
    "before",
    [
        lambda run: jax.eval_shape(run, GOOD),
        lambda run: run.trace(GOOD),
        lambda run: run.lower(GOOD),
        lambda run: run.lower(GOOD).compile(),
        lambda run: jax.jit(run)(GOOD),
        lambda run: jax.vmap(run)(GOOD[None]),
    ],
    ids=["eval_shape", "trace", "lower", "compile", "jit", "vmap"],
)
def test_a_function_that_was_traced_or_compiled_before_it_is_called(before):
    run = ec.filter_jit(lambda x: checked(x) + 1)
    before(run)
    with pytest.raises(RuntimeCheckError, match="negative"):
        run(BAD)
    assert float(run(GOOD)) == 2


def test_a_function_is_traced_once_for_each_shape():
    traces = []

    @ec.filter_jit
    def run(x):
        traces.append(x.shape)
        return checked(x) if x.ndim else x

    for _ in range(6):
        run(GOOD)
        run(GOOD[None])
    assert traces == [(), (1,)]


def test_compiled_ahead_of_time():
    compiled = ec.filter_jit(lambda x: checked(x) + 1).lower(GOOD).compile()
    for _ in range(6):
        assert float(compiled(GOOD)) == 2
        with pytest.raises(RuntimeCheckError, match="negative"):
            compiled(BAD)


def test_a_check_cannot_be_exported_but_can_be_left_out():
    run = ec.filter_jit(lambda x: checked(x) + 1)
    with pytest.raises(NotImplementedError):
        run.export(GOOD).serialize()
    with ec.runtime.on_error("off"):
        assert float(run.export(GOOD).call(BAD)) == 0


def test_donated_arguments():
    run = ec.filter_jit(lambda x: checked(x) + 1, donate="all")
    assert float(run(jnp.array(1.0))) == 2
    with pytest.raises(RuntimeCheckError, match="negative"):
        run(jnp.array(-1.0))


def test_another_error_of_xla_comes_through():
    def fail(x):
        raise ValueError("something else")

    struct = jax.ShapeDtypeStruct((), jnp.float32)
    run = ec.filter_jit(lambda x: checked(jax.pure_callback(fail, struct, x)))
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="something else"):
        run(GOOD)


def test_hooks_are_called_after_a_failure(monkeypatch):
    called = []
    monkeypatch.setattr(_failure, "_hooks", [])
    on_failure(lambda: called.append(1))
    on_failure(lambda: 1 / 0)
    run = ec.filter_jit(checked)
    run(GOOD)
    assert called == []
    with pytest.raises(RuntimeCheckError, match="negative"):
        run(BAD)
    assert called


def test_the_displays_of_loops_are_closed(capsys):
    progress = ec.TqdmProgress()

    def step(carry, x):
        return carry + checked(x), None

    run = ec.filter_jit(lambda x: ec.filter_scan(step, GOOD, x, progress=progress)[0])
    with pytest.raises(RuntimeCheckError, match="negative"):
        run(jnp.linspace(1.0, -1.0, 50))
    from ecliptic.control import _display

    assert all(one.display is None for one in _display._open.values())


def test_errors_that_nobody_asked_for_are_few(monkeypatch):
    monkeypatch.setattr(_failure, "_MAX_KEPT", 2)
    run = jax.jit(checked)
    run(GOOD)
    for _ in range(5):
        with pytest.raises(RuntimeCheckError, match="negative"):
            run(BAD).block_until_ready()
    assert len(_failure._kept) <= 2


_SILENT = """
import logging
import jax, jax.numpy as jnp
import ecliptic as ec
from ecliptic.runtime import error_if

def setup():
    loggers = [logging.root, *map(logging.getLogger, logging.root.manager.loggerDict)]
    return [(list(x.handlers), list(x.filters), x.level, x.disabled) for x in loggers]

@ec.filter_jit
def run(x):
    return error_if(x, x < 0, "negative")

run(jnp.ones(()))
before = setup()
for _ in range(3):
    try:
        run(-jnp.ones(()))
    except ec.errors.RuntimeCheckError as error:
        print(str(error).splitlines()[0])
assert setup() == before
"""


def test_a_failure_writes_nothing_and_an_exit_after_it_is_silent():
    result = subprocess.run(
        [sys.executable, "-c", _SILENT], capture_output=True, text=True, check=False
    )
    assert result.stdout == "negative\n" * 3
    assert result.stderr == ""
    assert result.returncode == 0


def test_what_python_prints_of_an_uncaught_failure():
    code = _SILENT + "run(-jnp.ones(()))\n"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert result.stderr.count("Traceback") == 1
    assert "RuntimeCheckError: negative\n" in result.stderr
    assert "Callback" not in result.stderr
