"""The modes of checks: what each does, and which of three choices holds."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError, RuntimeCheckError
from ecliptic.runtime import assert_dce, error_if, on_error

X = jnp.array([1.0, -2.0])


def checked(x, **options):
    return error_if(x, x < 0, "negative", **options)


@pytest.mark.parametrize("how", [lambda f: f, jax.jit, jax.vmap], ids=["eager", "jit", "vmap"])
def test_off_leaves_nothing(how):
    assert how(lambda x: checked(x, on_error="off"))(X).tolist() == X.tolist()
    program = jax.make_jaxpr(lambda x, pred: error_if(x, pred, "no", on_error="off"))(X, True)
    assert program.eqns == []


@pytest.mark.parametrize("how", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_nan_goes_to_all_floating_point_arrays(how):
    tree = {"x": X, "half": jnp.ones(2, jnp.bfloat16), "complex": jnp.ones(2, jnp.complex64)}
    tree["n"] = jnp.arange(2)
    out = how(lambda tree, pred: error_if(tree, pred, "no", on_error="nan"))
    bad, good = out(tree, jnp.array(True)), out(tree, jnp.array(False))
    assert ec.tree_equal(good, tree)
    assert ec.tree_equal(bad.pop("n"), tree.pop("n"))
    assert all(bool(jnp.isnan(leaf).all()) for leaf in bad.values())


def test_nan_goes_to_the_failed_elements_of_a_batch():
    run = jax.jit(jax.vmap(lambda x: checked(x, on_error="nan")))
    assert jnp.isnan(run(X)).tolist() == [False, True]


def test_nan_goes_to_the_derivative():
    gradient = jax.grad(lambda x: jnp.sum(jax.vmap(lambda x: checked(x, on_error="nan"))(x) ** 2))
    assert float(gradient(X)[0]) == 2
    assert jnp.isnan(gradient(X)).tolist() == [False, True]


def test_nan_of_a_known_failure():
    assert bool(jnp.isnan(error_if(jnp.ones(()), True, "no", on_error="nan")))


def test_a_failure_that_is_known_where_a_program_is_traced_is_warned_of():
    f = jax.jit(lambda x: error_if(x, True, "no", on_error="nan"))
    with pytest.warns(ec.errors.EclipticWarning, match=r'"nan", its result is NaN.*says: no'):
        assert bool(jnp.isnan(f(1.0)))


def test_the_argument_comes_before_the_context_and_the_context_before_the_environment(monkeypatch):
    def raises(**options):
        try:
            checked(X, **options)
        except RuntimeCheckError:
            return True
        return False

    assert raises()
    monkeypatch.setenv("EQX_ON_ERROR", "off")
    assert not raises()
    monkeypatch.setenv("ECLIPTIC_ON_ERROR", "raise")
    assert raises()
    with on_error("off"):
        assert not raises()
        assert not raises(on_error="default")
        assert raises(on_error="raise")
        with on_error("default"):
            assert raises()
    assert raises()


@pytest.mark.parametrize("jit", [jax.jit, ec.filter_jit])
def test_a_compiled_function_follows_the_context(jit):
    run = jit(checked)
    good = jnp.ones(2)
    for _ in range(6):
        run(good)
    for _ in range(2):
        with on_error("off"):
            assert run(X).tolist() == X.tolist()
        with pytest.raises((RuntimeError, ValueError), match="negative"):
            jax.block_until_ready(run(X))


def test_a_function_compiled_without_its_check_gets_it_later():
    run = ec.filter_jit(checked)
    with on_error("off"):
        for _ in range(6):
            run(X)
    with pytest.raises(RuntimeCheckError, match="negative"):
        run(X)


def test_an_unknown_mode(monkeypatch):
    with pytest.raises(ArgumentError, match="argument of `on_error` is one of .*; got 'loud'"):
        on_error("loud").__enter__()
    monkeypatch.setenv("ECLIPTIC_ON_ERROR", "loud")
    with pytest.raises(ArgumentError, match="variable `ECLIPTIC_ON_ERROR` is one of .* got 'loud'"):
        checked(X)


def test_breakpoint_calls_the_debugger_of_jax_and_then_raises(monkeypatch):
    opened = []

    def debugger(*, num_frames, token=None):
        opened.append(num_frames)
        return token

    monkeypatch.setattr(jax.debug, "breakpoint", debugger)
    monkeypatch.setenv("EQX_ON_ERROR_BREAKPOINT_FRAMES", "3")
    with pytest.raises(RuntimeCheckError, match="negative"):
        checked(X, on_error="breakpoint")
    with pytest.raises(RuntimeCheckError, match="negative"):
        ec.filter_jit(jax.vmap(lambda x: checked(x, on_error="breakpoint")))(X)
    assert opened == [3, 3]


def test_a_wrong_number_of_frames(monkeypatch):
    monkeypatch.setenv("ECLIPTIC_ON_ERROR_BREAKPOINT_FRAMES", "all")
    with pytest.raises(ArgumentError, match="at least 1; got 'all'"):
        checked(X, on_error="breakpoint")


_DEBUGGED = """
import jax.numpy as jnp
import ecliptic as ec
from ecliptic.runtime import error_if

@ec.filter_jit
def run(x):
    return error_if(x, x < 0, "negative", on_error="breakpoint") + 1

print(run(jnp.array(1.0)))
try:
    run(jnp.array(-1.0))
except ec.errors.RuntimeCheckError:
    print("raised")
"""


def test_the_debugger_opens_only_where_a_check_fails():
    result = subprocess.run(
        [sys.executable, "-c", _DEBUGGED],
        input="c\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    first, *between, last = result.stdout.splitlines()
    assert first == "2.0"
    assert any("(jdb)" in line for line in [*between, last])
    assert last.endswith("raised")


def test_what_is_used_is_no_dead_code():
    run = ec.filter_jit(lambda x: assert_dce(x, "it is used") + 1)
    with pytest.raises(RuntimeCheckError, match="it is used\nThe check stands here"):
        run(X)


@pytest.mark.parametrize("jit", [jax.jit, ec.filter_jit])
def test_dead_code_is_left_out(jit):
    run = jit(lambda x: (assert_dce(x**2, "it is used"), x + 1)[1])
    assert run(X).tolist() == (X + 1).tolist()


def test_outside_of_a_program_there_is_no_dead_code():
    assert assert_dce(X, "used") is X
    assert jax.vmap(lambda x: assert_dce(x, "used"))(X).tolist() == X.tolist()


@pytest.mark.parametrize("mode", ["off", "nan"])
def test_modes_of_assert_dce(mode):
    out = ec.filter_jit(lambda x: assert_dce(x, "used", on_error=mode))(X)
    assert bool(jnp.isnan(out).all()) == (mode == "nan")


def test_the_message_of_assert_dce_is_a_string():
    with pytest.raises(ec.errors.ArgumentTypeError, match="is a string; got 3"):
        ec.filter_jit(lambda x: assert_dce(x, 3))(X)
