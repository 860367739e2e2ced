"""`filter_jit` warns of large arrays that a function brings along; and of nothing else."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.debug import large_constants
from ecliptic.errors import EclipticWarning, LargeConstantWarning
from ecliptic.transform import _baked

X = jnp.ones(2)
LARGE = np.zeros(2**20, np.float32)
MODEL = {"a": {"weight": LARGE}}


class Model(ec.Module):
    weight: jax.Array

    def __call__(self, x):
        return self.weight[0] * x


def closure(model):
    return lambda x: x + model["a"]["weight"][0]


def of_a_closure(model):
    inner = closure(model)
    return lambda x: inner(x)


def of_a_jitted_closure(model):
    inner = ec.filter_jit(closure(model))
    return lambda x: inner(x)


def default(model):
    return lambda x, model=model: x + model["a"]["weight"][0]


def keyword_default(model):
    def f(x, *, model=model):
        return x + model["a"]["weight"][0]

    return f


def _apply(model, x):
    return x + model["a"]["weight"][0]


def partial(model):
    return functools.partial(_apply, model)


def partial_by_keyword(model):
    return functools.partial(lambda x, *, model: _apply(model, x), model=model)


MAKERS = {
    closure: "model",
    of_a_closure: "inner",
    of_a_jitted_closure: "inner",
    default: "model",
    keyword_default: "model",
    partial: "model",
    partial_by_keyword: "model",
}


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_it_warns_of_what_is_captured_and_says_how_large_it_is(make):
    f = ec.filter_jit(make(MODEL))
    variable = f"variable `{MAKERS[make]}`.*Pass `{MAKERS[make]}` as an argument"
    with pytest.warns(LargeConstantWarning, match="4.0 MB.*" + variable):
        f(X)


def test_the_warning_points_at_the_call():
    f = ec.filter_jit(lambda x, model=MODEL: x)
    with pytest.warns(EclipticWarning, match="as constants") as caught:
        f(X)
    assert caught[0].filename == __file__


def test_it_warns_once_for_a_function():
    f = ec.filter_jit(lambda x, model=MODEL: x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f(X)
        f(jnp.ones(5))
    assert [record.category for record in caught] == [LargeConstantWarning]


def test_it_warns_of_a_static_argument_too():
    f = ec.filter_jit(lambda function, x: function(x))
    with pytest.warns(LargeConstantWarning, match="in its argument"):
        f(closure(MODEL), X)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Model(LARGE),
        lambda: Model(LARGE).__call__,
        lambda: ec.Partial(_apply, MODEL),
        lambda: jax.tree_util.Partial(_apply, MODEL),
        lambda: ec.filter_grad(lambda x: (x**2).sum()),
        lambda: lambda x: x,
        lambda: closure({"a": {"weight": LARGE[:100]}}),
    ],
)
def test_what_is_an_argument_or_small_gives_no_warning(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ec.filter_jit(make())(X)


def test_arrays_traced_outside_are_no_constants():
    @ec.filter_jit
    def outer(big, x):
        return ec.filter_jit(lambda x: x + big[0])(x)

    outer(LARGE, X)


def test_a_method_of_a_jitted_class_gives_no_warning():
    class Stepper(ec.Module):
        weight: jax.Array

        @ec.filter_jit
        def step(self, x):
            return self.weight[0] * x

    Stepper(LARGE).step(X)


@pytest.mark.parametrize("size", [None, 2**23])
def test_the_size_can_be_set(size):
    with large_constants(size):
        ec.filter_jit(closure(MODEL))(X)


def test_a_smaller_size_can_be_set():
    small = jnp.ones(10)
    f = ec.filter_jit(lambda x: x + small[0])
    with large_constants(40), pytest.warns(LargeConstantWarning, match="40 bytes"):
        f(X)


@pytest.mark.parametrize(
    ("text", "size"), [("24", 24), ("off", None), ("Off", None), ("", 2**22), ("many", 2**22)]
)
def test_the_environment_sets_the_size(monkeypatch, text, size):
    monkeypatch.setenv("ECLIPTIC_LARGE_CONSTANT", text)
    assert _baked._from_environment() == size
