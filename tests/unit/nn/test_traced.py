"""Computations that are traced once for all layers of the same shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.nn._activation import _ELEMENTWISE
from ecliptic.nn._traced import traced_once

X = jnp.arange(3.0)


def _counted(n_static=0):
    calls = []

    @traced_once(n_static)
    def scaled(*args):
        calls.append(args)
        return 2 * args[-1]

    return scaled, calls


def test_the_trace_and_the_derivative_are_kept_for_equal_shapes():
    scaled, calls = _counted()
    for _ in range(3):
        jax.grad(lambda x: jnp.sum(scaled(scaled(x))))(X)
        jax.make_jaxpr(jax.vmap(scaled))(X)
    assert len(calls) == 2  # of a vector, and of a scalar


def test_what_is_static_is_told_apart():
    scaled, calls = _counted(1)
    for static in ("a", "b", "a"):
        scaled(static, X)
    assert [static for static, _ in calls] == ["a", "b"]


def _lowered(function):
    return jax.jit(lambda x: function(x)).lower(X).as_text()


def test_its_operations_are_those_of_the_caller():
    scaled, _ = _counted()
    assert _lowered(scaled) == _lowered(lambda x: 2 * x)


def test_what_is_no_array_is_passed_to_the_function_as_it_is():
    scaled, calls = _counted()
    value = np.arange(3.0)
    assert scaled(None, value).tolist() == [0, 2, 4]
    assert calls[0][1] is value


def _called(layer):
    return {
        "Lambda": nn.Lambda(layer),
        "Sequential": nn.Sequential([layer]),
        "MLP": nn.MLP(3, 3, 3, 0, final_activation=layer, key=jax.random.key(0)),
    }


@pytest.mark.parametrize("activation", sorted(_ELEMENTWISE, key=lambda f: f.__name__))
def test_a_known_function_leaves_the_program_that_it_leaves_by_itself(activation):
    def operations(function):
        gradient = jax.grad(lambda x: jnp.sum(function(x)))
        return _lowered(gradient).count("stablehlo.")

    for name in ("Lambda", "Sequential"):
        layer = _called(activation)[name]
        assert _lowered(layer) == _lowered(activation)
        assert operations(layer) == operations(activation)


@pytest.mark.parametrize("name", ["Lambda", "Sequential", "MLP"])
def test_a_function_of_the_users_is_called_whenever_the_layer_is_traced(name):
    factor = [1.0]

    def scale(x):
        return x * factor[0]

    layer = _called(scale)[name]
    first = jax.jit(lambda x: layer(x))(X)
    factor[0] = 2.0
    np.testing.assert_allclose(jax.jit(lambda x: layer(x))(X), 2 * first)
