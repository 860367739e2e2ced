"""Computations that are traced once for all layers of the same shapes."""

import jax
import jax.numpy as jnp
import numpy as np

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


def test_its_operations_are_those_of_the_caller():
    scaled, _ = _counted()
    assert [eqn.primitive.name for eqn in jax.make_jaxpr(scaled)(X).eqns] == ["mul"]


def test_what_is_no_array_is_passed_to_the_function_as_it_is():
    scaled, calls = _counted()
    value = np.arange(3.0)
    assert scaled(None, value).tolist() == [0, 2, 4]
    assert calls[0][1] is value
