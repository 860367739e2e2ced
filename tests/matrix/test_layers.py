"""Every layer under every transformation.

What several tests need of a row is made once: building a layer and compiling its call take most of
the time.
"""

import copy
import functools
import io
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from ecliptic.control import filter_scan
from ecliptic.serialise import tree_deserialise_leaves, tree_serialise_leaves
from ecliptic.transform import filter_eval_shape, filter_grad, filter_jit, filter_jvp, filter_vmap
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
KEYS = jax.random.split(KEY, 2)


def _input(row, dtype=jnp.float32, *batch):
    return jax.random.normal(jax.random.key(1), (*batch, *row.shape), jnp.float32).astype(dtype)


@functools.cache
def _layer(row):
    """The layer of a row. Nobody changes it: it is frozen."""
    return row.make(KEY, None)


@functools.cache
def _output(row):
    """What it makes of `_input`, operation by operation."""
    return np.asarray(row.call(_layer(row), _input(row)))


@functools.cache
def _compiled(row):
    """Its call, compiled; and how often it was traced."""
    traces = []

    def call(layer, x):
        traces.append(None)
        return row.call(layer, x)

    return filter_jit(call), traces


@functools.cache
def _ensemble(row):
    """Two layers, made at once inside of a compiled function."""
    return filter_jit(filter_vmap(lambda key: row.make(key, None)))(KEYS)


def _close(one, other, **tolerance):
    np.testing.assert_allclose(one, other, **{"rtol": 1e-5, "atol": 1e-5, **tolerance})


@EVERY
def test_jit_changes_nothing(row):
    _close(_compiled(row)[0](_layer(row), _input(row)), _output(row))


@EVERY
def test_equal_constructions_are_traced_once(row):
    call, traces = _compiled(row)
    for seed in range(3):
        call(row.make(jax.random.key(seed), None), _input(row))
    assert len(traces) == 1


@EVERY
def test_a_numpy_input_is_an_array_like_any_other(row):
    _close(row.call(_layer(row), np.asarray(_input(row))), _output(row))


@EVERY
def test_vmap_is_a_loop_over_examples(row):
    layer, x = _layer(row), _input(row, jnp.float32, 2)
    mapped = filter_jit(filter_vmap(row.call, in_axes=(None, 0)))(layer, x)
    call, _ = _compiled(row)
    _close(mapped, jnp.stack([call(layer, one) for one in x]))


@EVERY_LEARNT
def test_an_ensemble_is_a_loop_over_layers(row):
    x = _input(row)
    outputs = filter_jit(filter_vmap(lambda layer: row.call(layer, x)))(_ensemble(row))
    call, _ = _compiled(row)
    _close(outputs, jnp.stack([call(row.make(key, None), x) for key in KEYS]))


@EVERY
def test_derivatives_are_those_of_finite_differences(row):
    with jax.enable_x64(True):
        parameters, rest = partition(row.make(KEY, jnp.float64), is_inexact_array)

        @jax.jit
        def loss(parameters, x):
            return jnp.sum(row.call(combine(parameters, rest), x) ** 2)

        x = _input(row, jnp.float64)
        check_grads(loss, (parameters, x), order=1, modes=("fwd", "rev"), rtol=1e-5, atol=1e-6)


@EVERY_LEARNT
def test_filter_grad_and_filter_jvp_agree_on_each_parameter(row):
    layer, x = _layer(row), _input(row)

    @filter_jit
    def derivatives(layer, x):
        def loss(layer):
            return jnp.sum(row.call(layer, x))

        gradient = filter_grad(loss)(layer)
        tangent = jax.tree.map(lambda leaf: leaf if is_inexact_array(leaf) else None, layer)
        _, slope = filter_jvp(loss, (layer,), (tangent,))
        return gradient, slope

    gradient, slope = derivatives(layer, x)
    parameters = partition(layer, is_inexact_array)[0]
    assert jax.tree.map(jnp.shape, gradient) == jax.tree.map(jnp.shape, parameters)
    pairs = zip(jax.tree.leaves(gradient), jax.tree.leaves(parameters), strict=True)
    _close(slope, sum(jnp.vdot(one, other) for one, other in pairs), rtol=1e-3, atol=1e-3)


@EVERY
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_half_precision_is_preserved(row, dtype):
    layer, x = row.make(KEY, dtype), _input(row, dtype)
    y = filter_eval_shape(row.call, layer, x)
    assert y.dtype == dtype
    assert y.shape == _output(row).shape


@EVERY
def test_a_saved_layer_is_loaded_as_it_was(row):
    layer = _layer(row)
    f = io.BytesIO()
    tree_serialise_leaves(f, layer)
    f.seek(0)
    loaded = tree_deserialise_leaves(f, row.make(jax.random.key(9), None))
    assert f.read() == b""
    assert tree_equal(loaded, layer, typematch=True)


@EVERY
def test_a_skeleton_without_values_is_enough_to_load(row):
    layer = _layer(row)
    f = io.BytesIO()
    tree_serialise_leaves(f, layer)
    f.seek(0)
    skeleton = filter_eval_shape(row.make, KEY, None)
    assert tree_equal(tree_deserialise_leaves(f, skeleton), layer)


@EVERY
def test_the_picture_names_the_class_and_holds_no_numbers_of_arrays(row):
    layer = _layer(row)
    text = tree_pformat(layer)
    assert text == repr(layer)
    assert text.startswith(f"{type(layer).__name__}(")
    assert "Array(" not in text


@EVERY
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))]
)
def test_a_copy_is_equal_and_has_the_same_structure(row, duplicate):
    layer = _layer(row)
    other = duplicate(layer)
    assert tree_equal(layer, other, typematch=True)
    assert jax.tree.structure(layer) == jax.tree.structure(other)


@EVERY
def test_the_shapes_are_known_without_computing(row):
    shapes, layer = filter_eval_shape(row.make, KEY, None), _layer(row)
    assert jax.tree.structure(shapes) == jax.tree.structure(layer)
    for one, other in zip(jax.tree.leaves(shapes), jax.tree.leaves(layer), strict=True):
        if is_array(other):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
        else:
            assert one == other


@EVERY
def test_equal_arguments_and_key_make_equal_layers(row):
    first, second = _layer(row), row.make(KEY, None)
    assert tree_equal(first, second, typematch=True)
    assert jax.tree.structure(first) == jax.tree.structure(second)
    assert hash(jax.tree.structure(first)) == hash(jax.tree.structure(second))


@EVERY
def test_construction_inside_jit_and_vmap_makes_the_same_layers(row):
    inside, outside = _ensemble(row), row.make(KEYS[1], None)
    assert jax.tree.structure(inside) == jax.tree.structure(outside)
    for one, other in zip(jax.tree.leaves(inside), jax.tree.leaves(outside), strict=True):
        if is_array(other):
            _close(one[1], other)


@EVERY
def test_a_layer_is_the_carry_of_a_scan(row):
    layer, x = _layer(row), _input(row)
    last, outputs = filter_scan(lambda layer, _: (layer, row.call(layer, x)), layer, length=2)
    _close(outputs[1], _output(row))
    assert jax.tree.structure(last) == jax.tree.structure(layer)
