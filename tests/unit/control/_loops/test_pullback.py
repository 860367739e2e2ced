"""What is the same in each step, when a function in the step mixes it with what is not."""

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec


@jax.jit
def both(x, weight):
    return jnp.sin(x), jnp.cos(weight)


@jax.jit
def one(x, weight):
    return jnp.cos(weight)


@jax.jit
def nested(x, weight):
    return both(x, weight)[1], x * weight


def with_both(x, weight):
    a, b = both(x, weight)
    return a * b


def with_one(x, weight):
    return x * one(x, weight)


def with_nested(x, weight):
    a, b = nested(x, weight)
    return a * b


def with_remat(x, weight):
    a, b = jax.checkpoint(lambda x, weight: (jnp.sin(x), jnp.cos(weight)))(x, weight)
    return a * b


@pytest.mark.parametrize("kind", ["checkpointed", "bounded"])
@pytest.mark.parametrize("step", [with_both, with_one, with_nested, with_remat])
def test_a_compiled_function_may_return_something_of_the_weights_alone(step, kind):
    def looped(x, weight):
        def body(state):
            return state[0] + 1, step(state[1], weight)

        init = (0, x)
        return ec.filter_while_loop(lambda s: s[0] < 3, body, init, max_steps=4, kind=kind)[1]

    def unrolled(x, weight):
        return step(step(step(x, weight), weight), weight)

    found = jax.grad(looped, (0, 1))(0.5, 0.7)
    assert jnp.allclose(jnp.array(found), jnp.array(jax.grad(unrolled, (0, 1))(0.5, 0.7)))


def test_elements_of_a_batch_may_stop_on_their_own():
    def looped(x, weight):
        def body(state):
            return with_both(state, weight) + 0.3

        return ec.filter_while_loop(lambda x: x < 0.9, body, x, max_steps=4, kind="checkpointed")

    x, weights = jnp.array([0.1, 0.5, 0.95]), jnp.array([0.1, 0.2, 0.3])
    batched = jax.grad(lambda x, w: jax.vmap(looped)(x, w).sum(), (0, 1))(x, weights)
    for i in range(3):
        alone = jax.grad(looped, (0, 1))(x[i], weights[i])
        assert jnp.allclose(jnp.array([batched[0][i], batched[1][i]]), jnp.array(alone))
