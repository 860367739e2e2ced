"""A check in a program that nobody waits for raises its own error, not one of JAX's."""

import concurrent.futures
import subprocess
import sys
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import ecliptic as ec
from ecliptic.errors import RuntimeCheckError
from ecliptic.runtime import converted_errors, error_if
from ecliptic.transform import _conversion, _failure

# Since when Python tells of exceptions in other threads.
EVERYWHERE = sys.version_info >= (3, 12)

GOOD = jnp.array(1.0)
BAD = jnp.array(-1.0)


def checked(x):
    return error_if(x, x < 0, "negative")


def _first():
    return jax.jit(checked)


def _after_a_success():
    run = jax.jit(checked)
    for _ in range(3):
        run(GOOD)
    return run


def _after_a_failure():
    run = jax.jit(checked)
    with pytest.raises(RuntimeCheckError):
        run(BAD)
    return run


def _ahead_of_time():
    return jax.jit(checked).lower(GOOD).compile()


def _loop_outside_of_any_jit():
    return lambda x: jax.lax.scan(lambda c, _: (checked(c) + 1, None), x, None, length=3)[0]


def _through_native_code():
    run = _after_a_success()
    return lambda x: next(map(run, [x]))


# Programs that JAX runs in the thread that calls them.
HERE = {
    "the first call": _first,
    "a later call": _after_a_success,
    "a call after a failure": _after_a_failure,
    "compiled ahead of time": _ahead_of_time,
    "a loop outside of any jit": _loop_outside_of_any_jit,
    "called by native code": _through_native_code,
}


@pytest.mark.parametrize("program", HERE)
def test_the_error_is_that_of_the_check(program):
    run = HERE[program]()
    for _ in range(3):
        with pytest.raises(RuntimeCheckError, match=r"\Anegative\nThe check stands here:") as info:
            jax.block_until_ready(run(BAD))
        error = info.value
        assert type(error) is RuntimeCheckError
        assert error.__cause__ is None
        assert error.__context__ is None
        assert "runtime check" not in str(error)
        assert error.__notes__[0].startswith("See errors/runtime-checks in ")
        run(GOOD)


def _large():
    def f(x):
        big = jnp.ones((400, 400)) * x
        for _ in range(20):
            big = jnp.cos(big) @ big / 400
        return error_if(big, x < 0, "negative")

    return jax.jit(f)


def _on_two_devices(x):
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    sharding = NamedSharding(mesh, PartitionSpec("x"))
    return checked(jax.lax.with_sharding_constraint(jnp.ones(8) * x, sharding))


def _several_devices():
    return jax.jit(lambda x: _on_two_devices(x))


# Programs that JAX may run in other threads.
ELSEWHERE = {"a large program": _large, "several devices": _several_devices}

READ = {
    "block_until_ready": lambda out: out.block_until_ready(),
    "NumPy": np.asarray,
    "another program": lambda out: jnp.sum(out).block_until_ready(),
}


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("program", ELSEWHERE)
def test_the_error_of_a_program_in_another_thread(program, read):
    run = ELSEWHERE[program]()
    jax.block_until_ready(run(GOOD))
    known = RuntimeCheckError if EVERYWHERE else (jax.errors.JaxRuntimeError, ValueError)
    with pytest.raises(known, match="negative"):
        READ[read](run(BAD))
    with pytest.raises(RuntimeCheckError, match=r"\Anegative\n"), converted_errors():
        READ[read](run(BAD))
    jax.block_until_ready(run(GOOD))


@pytest.mark.skipif(not EVERYWHERE, reason="Python tells of exceptions in one thread only")
def test_results_that_failed_raise_it_again_and_each_its_own():
    run = jax.jit(lambda x, y: error_if(_on_two_devices(x), y, "wrong"))
    first, second = run(BAD, False), run(GOOD, True)
    for _ in range(3):
        with pytest.raises(RuntimeCheckError, match=r"\Awrong\n"):
            second.block_until_ready()
        with pytest.raises(RuntimeCheckError, match=r"\Anegative\n"):
            first.block_until_ready()


def test_its_frames_are_those_of_the_caller():
    run = _after_a_success()
    with pytest.raises(RuntimeCheckError) as info:
        run(BAD)
    files = {frame.filename for frame in traceback.extract_tb(info.value.__traceback__)}
    assert files == {__file__, _conversion.__file__}


def test_two_checks_that_fail_in_one_program():
    run = jax.jit(lambda x: (checked(x), error_if(x, x < -0.5, "too small")))
    run(GOOD)
    for _ in range(3):
        with pytest.raises(RuntimeCheckError, match=r"\A(negative|too small)\n"):
            run(BAD)
    assert sys.gettrace() is _TRACE


# What traces this thread while tests run, such as the measurement of coverage.
_TRACE = sys.gettrace()


def test_the_thread_is_traced_afterwards_as_it_was():
    run = _after_a_success()
    told = []

    def trace(frame, event, arg):
        if frame.f_code.co_name in {"fail", "after"}:
            told.append((frame.f_code.co_name, event))
            return trace
        return None

    def after():
        return 1

    def fail():
        try:
            run(BAD)
        except RuntimeCheckError:
            return after()

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        fail()
        now = sys.gettrace()
    finally:
        sys.settrace(before)
    assert now is trace
    assert ("after", "line") in told
    assert told[-1] == ("fail", "return")


def test_a_program_that_returns_leaves_the_thread_untraced(monkeypatch):
    # (As if JAX kept the error to itself.)
    before = sys.gettrace()
    monkeypatch.setattr(_failure, "_raise_in_program", lambda error: None)
    jax.jit(checked)(BAD)
    assert sys.gettrace() is before
    frame = sys._getframe()
    assert frame.f_trace is None or before is not None


class _OddError(ValueError):
    def __str__(self):
        raise RuntimeError("the text of another error was asked for")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("something else"),
        ValueError(),
        ValueError(1),
        ValueError("[runtime check 123456789]"),
        KeyError("[runtime check 0]"),
        _OddError("odd"),
        StopIteration(1),
    ],
)
def test_other_errors_are_left_alone(error):
    with pytest.raises(RuntimeCheckError):
        jax.jit(checked)(BAD)
    with pytest.raises(type(error)) as info:
        raise error
    assert info.value is error


def test_other_errors_of_xla_are_left_alone():
    def fail(x):
        raise ValueError("something else")

    struct = jax.ShapeDtypeStruct((), jnp.float32)
    run = jax.jit(lambda x: checked(jax.pure_callback(fail, struct, x)))
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="something else") as info:
        run(GOOD).block_until_ready()
    assert not isinstance(info.value, RuntimeCheckError)


def test_many_threads_get_their_own_errors():
    runs = [
        jax.jit(lambda x, n=n: error_if(x + n, x < 0, f"failed in thread {n}")) for n in range(8)
    ]

    def work(n):
        for i in range(200):
            if i % 3:
                assert float(runs[n](GOOD)) == 1 + n
            else:
                with pytest.raises(RuntimeCheckError, match=rf"\Afailed in thread {n}\n"):
                    runs[n](BAD)
        return n

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(work, range(8))) == list(range(8))


def test_a_program_that_is_waited_for_converts_its_own_error(monkeypatch):
    monkeypatch.setattr(_failure, "convert", lambda *args: pytest.fail("converted"))
    with pytest.raises(RuntimeCheckError, match="negative"):
        ec.filter_jit(checked)(BAD)


def test_a_program_that_is_waited_for_after_one_that_is_not():
    with pytest.raises(RuntimeCheckError):
        jax.jit(checked)(BAD)
    run = ec.filter_jit(checked)
    for _ in range(2):
        with pytest.raises(RuntimeCheckError, match=r"\Anegative\n") as info:
            run(BAD)
        assert info.value.__context__ is None
        assert float(run(GOOD)) == 1


_ALONE = """
import sys
import jax, jax.numpy as jnp
import ecliptic as ec
from ecliptic.runtime import error_if

run = jax.jit(lambda x: error_if(x, x < 0, "negative"))
run(jnp.ones(()))
"""


def _python(code):
    return subprocess.run(
        [sys.executable, "-c", _ALONE + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_nothing_is_begun_before_a_check_fails():
    result = _python("""
def used():
    if sys.version_info >= (3, 12):
        return [n for n in range(6) if sys.monitoring.get_tool(n) == "ecliptic"]
    return []

assert used() == []
try:
    ec.filter_jit(lambda x: error_if(x, x < 0, "negative"))(-jnp.ones(()))
except ec.errors.RuntimeCheckError:
    pass
assert used() == []
try:
    run(-jnp.ones(()))
except ec.errors.RuntimeCheckError:
    print("caught")
assert len(used()) == (sys.version_info >= (3, 12))
""")
    assert (result.stdout, result.stderr) == ("caught\n", "")


def test_what_python_prints_of_an_uncaught_failure():
    result = _python("run(-jnp.ones(()))\n")
    assert result.returncode == 1
    assert result.stderr.count("Traceback") == 1
    assert "RuntimeCheckError: negative\n" in result.stderr
    assert "Callback" not in result.stderr


@pytest.mark.skipif(not EVERYWHERE, reason="Python has no tools that are told of exceptions")
@pytest.mark.parametrize("taken", [1, 2])
def test_tools_that_others_took_are_left_to_them(taken):
    result = _python(f"""
tools = {_conversion._TOOLS}[:{taken}]
for tool in tools:
    sys.monitoring.use_tool_id(tool, "another")
for _ in range(2):
    try:
        run(-jnp.ones(()))
    except Exception as error:
        print(type(error) is ec.errors.RuntimeCheckError)
assert all(sys.monitoring.get_tool(tool) == "another" for tool in tools)
""")
    assert (result.stdout, result.stderr) == (f"{taken == 1}\n" * 2, "")
