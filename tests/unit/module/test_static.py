"""`Static`: structure and no leaf."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec


@pytest.mark.parametrize("value", [1, "s", None, [1, 2], {"k": len}, jnp.ones(2), object()])
def test_a_static_value_is_no_leaf(value):
    held = ec.Static(value)
    assert held.value is value
    assert jax.tree.leaves(held) == []
    assert jax.tree.map(lambda x: 0, held).value is value


def test_holding_arrays_is_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ec.Static(np.ones(2))


@pytest.mark.parametrize(
    ("x", "y"),
    [(1, 1), ("s", "s"), ([1], [1]), (jnp.ones(2), jnp.ones(2)), ({"k": np.ones(2)},) * 2],
)
def test_equal_values_have_equal_structures_and_hashes(x, y):
    x, y = ec.Static(x), ec.Static(y)
    assert x == y
    assert hash(x) == hash(y)
    assert jax.tree.structure(x) == jax.tree.structure(y)
    assert hash(jax.tree.structure(x)) == hash(jax.tree.structure(y))


@pytest.mark.parametrize(
    ("x", "y"),
    [(1, 2), (1, 1.0), ([1], (1,)), (jnp.ones(2), jnp.zeros(2)), (jnp.ones(2), np.ones(2)),
     (jnp.ones(2), jnp.ones(3))],
)  # fmt: skip
def test_different_values_have_different_structures(x, y):
    assert jax.tree.structure(ec.Static(x)) != jax.tree.structure(ec.Static(y))
    assert ec.Static(x) != ec.Static(y)


def test_it_goes_through_jit_vmap_and_a_carry():
    held = ec.Static("a string")
    assert jax.jit(lambda h, x: (h, x))(held, 1.0)[0].value == "a string"
    out = jax.vmap(lambda x: (x, held))(jnp.ones(2))[1]
    assert out == held
    carry, _ = jax.lax.scan(lambda c, _: (c, None), (held, 1.0), None, length=2)
    assert carry[0] == held


def test_jit_traces_again_for_another_value_only():
    traces = []

    @jax.jit
    def run(held, x):
        traces.append(held.value)
        return x

    for value in ([1], [1], [2]):
        run(ec.Static(value), 1.0)
    assert traces == [[1], [2]]


def test_the_structure_prints_the_value():
    assert "'a string'" in str(jax.tree.structure(ec.Static("a string")))


def test_it_prints_its_value():
    assert repr(ec.Static("s")) == "Static('s')"
