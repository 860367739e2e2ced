"""`Shared`."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.control import filter_scan
from ecliptic.errors import StructureError
from ecliptic.transform import filter_grad, filter_jit
from ecliptic.tree import is_array


def second(pair):
    return pair[1].weight


def first(pair):
    return pair[0].weight


@pytest.fixture
def pair(getkey):
    return nn.Linear(3, 3, key=getkey()), nn.Linear(3, 3, key=getkey())


@pytest.fixture
def shared(pair):
    return nn.Shared(pair, second, first)


def _apply(shared, x):
    one, other = shared()
    return other(one(x))


def test_a_call_puts_the_very_value_in_both_places(pair, shared):
    one, other = shared()
    assert other.weight is one.weight is pair[0].weight
    assert other.bias is pair[1].bias


def test_the_value_is_stored_once(shared):
    assert [leaf.shape for leaf in jax.tree.leaves(shared) if is_array(leaf)] == [
        (3, 3),
        (3,),
        (3,),
    ]


def test_fields_are_in_order():
    assert [f.name for f in dataclasses.fields(nn.Shared)] == ["pytree", "where", "get"]


def test_gradients_of_both_places_add_up(pair, shared):
    x = jnp.ones(3)
    gradient = filter_grad(lambda shared: jnp.sum(_apply(shared, x)))(shared)

    def apart(a, b):
        one, other = pair
        return jnp.sum(b @ (a @ x + one.bias) + other.bias)

    parts = jax.grad(apart, (0, 1))(pair[0].weight, pair[0].weight)
    np.testing.assert_allclose(gradient.pytree[0].weight, parts[0] + parts[1], rtol=1e-6)


def test_jit_and_scan_take_it_whole(shared):
    x = jnp.ones(3)
    expected = _apply(shared, x)
    np.testing.assert_allclose(filter_jit(_apply)(shared, x), expected, rtol=1e-6)
    carry, ys = filter_scan(lambda s, _: (s, _apply(s, x)), shared, None, length=2)
    np.testing.assert_allclose(ys[1], expected, rtol=1e-6)
    np.testing.assert_allclose(_apply(carry, x), expected, rtol=1e-6)


def test_several_nodes_can_be_shared(pair):
    shared = nn.Shared(pair, lambda p: [p[1].weight, p[1].bias], lambda p: [p[0].weight, p[0].bias])
    other = shared()[1]
    assert (other.weight is pair[0].weight, other.bias is pair[0].bias) == (True, True)


def test_what_is_shared_can_be_computed(pair):
    shared = nn.Shared(pair, second, lambda p: p[0].weight.T)
    np.testing.assert_array_equal(shared()[1].weight, pair[0].weight.T)


@pytest.mark.parametrize(
    "get", [lambda p: p[0].bias, lambda p: p[0], lambda p: p[0].weight.astype(jnp.bfloat16)]
)
def test_values_that_differ_in_kind_are_refused(pair, get):
    with pytest.raises(StructureError, match="must have the same structure, shapes and dtypes"):
        nn.Shared(pair, second, get)
