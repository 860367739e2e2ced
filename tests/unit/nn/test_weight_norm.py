"""`WeightNorm`."""

import dataclasses

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.errors import LayerArgumentError
from ecliptic.tree import is_array, tree_at


@pytest.mark.parametrize(
    ("name", "axis"), [("weight", 0), ("weight", -1), ("weight", None), ("bias", 0)]
)
def test_lengths_outputs_and_gradients_are_those_of_equinox(getkey, name, axis):
    key, x = getkey(), jnp.arange(1.0, 4.0)
    results = []
    for lib in (nn, equinox.nn):
        layer = lib.WeightNorm(lib.Linear(3, 2, key=key), name, axis)
        layer = equinox.tree_at(lambda m: m.g, layer, replace_fn=lambda g: 2 * g)
        arrays, rest = equinox.partition(layer, is_array)

        def loss(arrays, rest=rest):
            y = equinox.combine(arrays, rest)(x)
            return jnp.sum(jnp.sin(y)), y

        gradient, y = jax.jit(jax.grad(loss, has_aux=True))(arrays)
        results.append([layer.g, y, *jax.tree.leaves(gradient)])
    for one, other in zip(*results, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_fields_are_in_order_and_structures_of_equal_layers_equal(getkey):
    names = ["layer", "g", "weight_name", "axis", "_norm"]
    assert [f.name for f in dataclasses.fields(nn.WeightNorm)] == names
    first, second = (nn.WeightNorm(nn.Linear(3, 2, key=getkey())) for _ in range(2))
    assert jax.tree.structure(first) == jax.tree.structure(second)
    assert all(is_array(leaf) for leaf in jax.tree.leaves(first))


def test_a_convolution_has_a_length_for_each_channel(getkey):
    layer = nn.WeightNorm(nn.Conv2d(2, 3, 2, key=getkey()))
    x = jax.random.normal(getkey(), (2, 4, 4))
    assert layer.g.shape == (3, 1, 1, 1)
    np.testing.assert_allclose(layer(x), layer.layer(x), rtol=1e-5, atol=1e-6)


def test_a_layer_of_two_arguments_gets_both(getkey):
    cell = nn.GRUCell(2, 3, key=getkey())
    layer = nn.WeightNorm(cell, "weight_hh")
    arguments = (jnp.ones(2), jnp.ones(3))
    np.testing.assert_allclose(layer(*arguments), cell(*arguments), rtol=1e-6)
    np.testing.assert_allclose(layer(*arguments, key=getkey()), cell(*arguments), rtol=1e-6)


def test_the_output_does_not_depend_on_the_length_of_the_weight(getkey):
    layer, x = nn.WeightNorm(nn.Linear(3, 2, key=getkey())), jnp.ones(3)
    longer = tree_at(lambda m: m.layer.weight, layer, replace_fn=lambda w: 3 * w)
    np.testing.assert_allclose(longer(x), layer(x), rtol=1e-6)


def test_a_weight_of_zeros_has_finite_gradients(getkey):
    linear = tree_at(lambda m: m.weight, nn.Linear(3, 2, key=getkey()), jnp.zeros((2, 3)))
    layer = nn.WeightNorm(linear)
    np.testing.assert_array_equal(layer(jnp.ones(3)), linear.bias)
    gradient = jax.grad(lambda m: jnp.sum(m(jnp.ones(3))))(layer)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.complex64])
def test_lengths_are_taken_in_single_precision_and_are_real(getkey, dtype):
    linear = nn.Linear(3, 2, dtype=dtype, key=getkey())
    linear = tree_at(lambda m: m.weight, linear, jnp.full((2, 3), 300, dtype))
    layer = nn.WeightNorm(linear)
    assert layer.g.dtype == jnp.finfo(dtype).dtype
    np.testing.assert_allclose(layer.g, 300 * 3**0.5, rtol=1e-3)
    assert layer(jnp.ones(3, dtype)).dtype == dtype


@pytest.mark.parametrize("name", ["nothing", "in_features", "bias"])
def test_what_is_no_weight_is_refused(getkey, name):
    linear = nn.Linear(3, 2, use_bias=False, key=getkey())
    with pytest.raises(LayerArgumentError, match=rf"weight_name='{name}', but `Linear\.{name}` is"):
        nn.WeightNorm(linear, name)


def test_an_axis_that_is_not_there_is_refused(getkey):
    with pytest.raises(LayerArgumentError, match="got axis=2, but `weight` has 2 axes"):
        nn.WeightNorm(nn.Linear(3, 2, key=getkey()), axis=2)
