"""Numbers that the host gives out while a program runs."""

import itertools

import jax
import jax.numpy as jnp
import pytest

from ecliptic._jax._handle import handle, tied_to


@pytest.fixture
def counter():
    numbers = itertools.count(7)
    return lambda: next(numbers)


def test_outside_of_a_program_it_is_asked_at_once(counter):
    assert [int(handle(counter)) for _ in range(3)] == [7, 8, 9]


def test_a_program_asks_at_each_run(counter):
    program = jax.jit(lambda x: x + handle(counter))
    assert [int(program(1)) for _ in range(3)] == [8, 9, 10]


def test_it_is_one_for_a_whole_batch(counter):
    def f(x):
        with tied_to([x]):
            return x * 0 + handle(counter)

    assert jax.vmap(f)(jnp.arange(3)).tolist() == [7, 7, 7]
    assert jax.jit(jax.vmap(f))(jnp.arange(3)).tolist() == [8, 8, 8]


@pytest.mark.parametrize("transform", [lambda f: f, jax.checkpoint])
def test_on_the_way_back_it_is_the_same(counter, transform):
    seen = []

    @transform
    def f(x):
        with tied_to([x]):
            number = handle(counter)
        jax.debug.callback(lambda n: seen.append(int(n)), number)
        return jnp.sin(jnp.sin(x))

    jax.jit(jax.grad(f))(1.0).block_until_ready()
    jax.effects_barrier()
    assert set(seen) == {7}
    assert counter() == 8


def test_in_the_derivative_of_a_loop_there_is_one_for_each_step(counter):
    seen = []

    def step(x, _):
        with tied_to([x]):
            number = handle(counter)
        jax.debug.callback(lambda n: seen.append(int(n)), number)
        return jnp.sin(x), None

    jax.grad(lambda x: jax.lax.scan(step, x, length=3)[0])(1.0).block_until_ready()
    jax.effects_barrier()
    assert sorted(seen) == [7, 8, 9]
