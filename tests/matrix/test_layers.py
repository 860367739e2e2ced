"""Every layer under every transformation."""

import copy
import io
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from ecliptic.serialise import tree_deserialise_leaves, tree_serialise_leaves
from ecliptic.transform import filter_grad, filter_jit, filter_vmap
from ecliptic.tree import (
    combine,
    is_array,
    is_inexact_array,
    partition,
    tree_equal,
    tree_pformat,
)
from tests.support.layers import LAYERS

EVERY = pytest.mark.parametrize("row", LAYERS, ids=[row.name for row in LAYERS])
LEARNT = [row for row in LAYERS if row.learnt]
EVERY_LEARNT = pytest.mark.parametrize("row", LEARNT, ids=[row.name for row in LEARNT])
KEY = jax.random.key(0)


def _input(row, dtype=jnp.float32, *batch):
    return jax.random.normal(jax.random.key(1), (*batch, *row.shape), jnp.float32).astype(dtype)


def _loss(row, layer, x):
    return jnp.sum(row.call(layer, x) ** 2)


@EVERY
def test_jit_changes_nothing(row):
    layer, x = row.make(KEY, None), _input(row)
    np.testing.assert_allclose(
        filter_jit(row.call)(layer, x), row.call(layer, x), rtol=1e-6, atol=1e-6
    )


@EVERY
def test_vmap_is_a_loop_over_examples(row):
    layer, x = row.make(KEY, None), _input(row, jnp.float32, 5)
    mapped = filter_vmap(row.call, in_axes=(None, 0))(layer, x)
    looped = jnp.stack([row.call(layer, one) for one in x])
    np.testing.assert_allclose(mapped, looped, rtol=1e-5, atol=1e-6)


@EVERY_LEARNT
def test_an_ensemble_is_a_loop_over_layers(row):
    x = _input(row)
    keys = jax.random.split(KEY, 3)
    ensemble = filter_vmap(lambda key: row.make(key, None))(keys)
    mapped = filter_vmap(lambda layer: row.call(layer, x))(ensemble)
    looped = jnp.stack([row.call(row.make(key, None), x) for key in keys])
    np.testing.assert_allclose(mapped, looped, rtol=1e-5, atol=1e-6)


@EVERY
def test_the_gradient_is_that_of_finite_differences(row):
    with jax.enable_x64(True):
        layer, x = row.make(KEY, jnp.float64), _input(row, jnp.float64)
        parameters, rest = partition(layer, is_inexact_array)

        def loss(parameters, x):
            return _loss(row, combine(parameters, rest), x)

        check_grads(loss, (parameters, x), order=1, rtol=1e-5, atol=1e-6)


@EVERY_LEARNT
def test_filter_grad_has_a_gradient_for_each_parameter(row):
    layer, x = row.make(KEY, None), _input(row)
    gradient = filter_grad(lambda layer: _loss(row, layer, x))(layer)
    expected = jax.tree.map(jnp.shape, partition(layer, is_inexact_array)[0])
    assert jax.tree.map(jnp.shape, gradient) == expected


@EVERY
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_half_precision_is_preserved(row, dtype):
    y = row.call(row.make(KEY, dtype), _input(row, dtype))
    assert y.dtype == dtype
    single = row.call(row.make(KEY, jnp.float32), _input(row, jnp.float32))
    assert y.shape == single.shape


@EVERY
def test_a_numpy_input_is_an_array_like_any_other(row):
    layer, x = row.make(KEY, None), _input(row)
    np.testing.assert_array_equal(row.call(layer, np.asarray(x)), row.call(layer, x))


@EVERY
def test_a_saved_layer_is_loaded_as_it_was(row):
    layer = row.make(KEY, None)
    f = io.BytesIO()
    tree_serialise_leaves(f, layer)
    f.seek(0)
    loaded = tree_deserialise_leaves(f, row.make(jax.random.key(9), None))
    assert f.read() == b""
    assert tree_equal(loaded, layer, typematch=True)


@EVERY
def test_a_skeleton_without_values_is_enough_to_load(row):
    layer = row.make(KEY, None)
    f = io.BytesIO()
    tree_serialise_leaves(f, layer)
    f.seek(0)
    arrays, rest = partition(layer, is_array)
    skeleton = combine(jax.eval_shape(lambda: arrays), rest)
    assert tree_equal(tree_deserialise_leaves(f, skeleton), layer)


@EVERY
def test_the_picture_names_the_class_and_holds_no_numbers_of_arrays(row):
    layer = row.make(KEY, None)
    text = tree_pformat(layer)
    assert text == repr(layer)
    assert text.startswith(f"{type(layer).__name__}(")
    assert "Array(" not in text


@EVERY
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))]
)
def test_a_copy_is_equal_and_has_the_same_structure(row, duplicate):
    layer = row.make(KEY, None)
    other = duplicate(layer)
    assert tree_equal(layer, other, typematch=True)
    assert jax.tree.structure(layer) == jax.tree.structure(other)


@EVERY
def test_the_shapes_are_known_without_computing(row):
    layer = row.make(KEY, None)
    shapes = jax.eval_shape(lambda key: partition(row.make(key, None), is_array)[0], KEY)
    arrays, _ = partition(layer, is_array)
    assert jax.tree.structure(shapes) == jax.tree.structure(arrays)
    assert [leaf.shape for leaf in jax.tree.leaves(shapes)] == [
        leaf.shape for leaf in jax.tree.leaves(arrays)
    ]


@EVERY
def test_equal_constructions_are_traced_once(row):
    traces = 0

    @filter_jit
    def call(layer, x):
        nonlocal traces
        traces += 1
        return row.call(layer, x)

    x = _input(row)
    for seed in range(3):
        call(row.make(jax.random.key(seed), None), x)
    assert traces == 1


@EVERY
def test_equal_arguments_and_key_make_equal_layers(row):
    first, second = row.make(KEY, None), row.make(KEY, None)
    assert tree_equal(first, second, typematch=True)
    assert jax.tree.structure(first) == jax.tree.structure(second)
    assert hash(jax.tree.structure(first)) == hash(jax.tree.structure(second))


@EVERY
def test_construction_inside_jit_makes_the_same_layer(row):
    outside = row.make(KEY, None)
    inside = filter_jit(lambda key: row.make(key, None))(KEY)
    assert jax.tree.structure(inside) == jax.tree.structure(outside)
    for one, other in zip(jax.tree.leaves(inside), jax.tree.leaves(outside), strict=True):
        if is_array(one):
            np.testing.assert_allclose(one, other, rtol=1e-6)


@EVERY
def test_a_layer_is_the_carry_of_a_scan_of_its_arrays(row):
    layer, x = row.make(KEY, None), _input(row)
    arrays, rest = partition(layer, is_array)

    def step(arrays, _):
        return arrays, row.call(combine(arrays, rest), x)

    _, outputs = jax.lax.scan(step, arrays, None, length=2)
    np.testing.assert_allclose(outputs[1], row.call(layer, x), rtol=1e-6, atol=1e-6)
