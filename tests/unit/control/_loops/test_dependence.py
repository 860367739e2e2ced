"""Which outputs of a function depend on which of its inputs."""

import jax
import jax.numpy as jnp
import pytest

from ecliptic.control._loops._dependence import dependence, spread

X = jnp.ones(2)


def test_each_output_depends_on_what_it_is_made_of():
    def f(a, b, c):
        return a + b, jnp.ones(2), b, 2 * c["x"]

    assert dependence(f, X, X, {"x": X}) == [{0, 1}, set(), {1}, {2}]


def test_closed_over_arrays_are_no_inputs():
    assert dependence(lambda a: a * X, X) == [{0}]


@pytest.mark.parametrize("wrap", [jax.jit, jax.checkpoint])
def test_calls_are_looked_into(wrap):
    f = wrap(lambda a, b: (a + 1, b * 2))
    assert dependence(lambda a, b: f(a, b)[::-1], X, X) == [{1}, {0}]


def test_what_a_loop_returns_depends_on_all_that_goes_in():
    def f(a, b):
        return jax.lax.fori_loop(0, 3, lambda i, c: (c[0] + 1, c[1] * 2), (a, b))

    assert dependence(f, X, X) == [{0, 1}, {0, 1}]


def test_no_derivative_goes_through_integers_or_stop_gradient():
    def f(a, b):
        return (
            jnp.floor(a).astype(jnp.int32),
            a.astype(jnp.int32).astype(jnp.float32) * b,
            jax.lax.stop_gradient(a) + b,
        )

    assert dependence(f, X, X, smooth=True) == [set(), {1}, {1}]
    assert dependence(f, X, X) == [{0}, {0, 1}, {0, 1}]


def test_what_a_loop_carries_on_is_followed_to_the_end():
    # Each depends on the one before.
    outputs = [set(), {0}, {1}, {3}]
    assert spread({0}, outputs, set()) == {0, 1, 2}
    assert spread(set(), [{-1}, {0}, set()], {-1}) == {0, 1}


def test_a_custom_derivative_goes_where_the_value_does_not():
    @jax.custom_jvp
    def straight_through(a):
        return a.astype(jnp.int32).astype(jnp.float32)

    straight_through.defjvps(lambda tangent, out, a: tangent)
    assert dependence(straight_through, X, smooth=True) == [{0}]
