"""`MLP`."""

import dataclasses
from collections import Counter

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecliptic import nn
from ecliptic.errors import LayerArgumentError, ShapeError
from ecliptic.module import Module
from ecliptic.tree import is_array, tree_at
from tests.support.operations import operations

SIZES = st.one_of(st.just("scalar"), st.integers(1, 5))


class Slope(Module):
    slope: jax.Array

    def __call__(self, x):
        return jnp.where(x >= 0, x, self.slope * x)


def _slope():
    return Slope(jnp.asarray(0.25))


def _arrays(tree):
    return [leaf for leaf in jax.tree.leaves(tree) if is_array(leaf)]


@settings(max_examples=25)
@given(
    SIZES,
    SIZES,
    st.integers(1, 5),
    st.integers(0, 4),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, jnp.bfloat16]),
    st.booleans(),
    st.sampled_from([jax.nn.relu, jnp.tanh, _slope()]),
    st.sampled_from([{}, {"final_activation": jax.nn.sigmoid}, {"final_activation": _slope()}]),
    st.integers(0, 100),
)
def test_leaves_and_outputs_are_those_of_equinox(
    inside, outside, width, depth, bias, final_bias, dtype, scan, activation, final, seed
):
    sizes = (inside, outside, width, depth, activation)
    options = {"use_bias": bias, "use_final_bias": final_bias, "dtype": dtype, "scan": scan}
    key = jax.random.key(seed)
    if dtype is not None and (isinstance(activation, Slope) or "final_activation" in final):
        dtype = options["dtype"] = None  # the slope is a float32 array
    if depth == 0:
        final = {}  # Equinox leaves it out then: see the test below
    ours = nn.MLP(*sizes, **options, **final, key=key)
    theirs = equinox.nn.MLP(*sizes, **options, **final, key=key)
    for one, other in zip(_arrays(ours), _arrays(theirs), strict=True):
        assert (one.dtype, one.weak_type) == (other.dtype, other.weak_type)
        np.testing.assert_array_equal(one, other)
    x = jax.random.normal(key, () if inside == "scalar" else (inside,)).astype(dtype or "float32")
    np.testing.assert_allclose(
        ours(x).astype("float32"), theirs(x).astype("float32"), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("out_size", [2, "scalar"])
def test_the_final_activation_is_applied_at_depth_zero_too(getkey, out_size):
    key = getkey()
    plain = nn.MLP(3, out_size, 4, 0, key=key)
    mlp = nn.MLP(3, out_size, 4, 0, final_activation=jnp.tanh, key=key)
    np.testing.assert_array_equal(mlp(jnp.ones(3)), jnp.tanh(plain(jnp.ones(3))))


def test_fields_are_in_order_and_all_but_three_are_static():
    fields = [(f.name, bool(f.metadata.get("static"))) for f in dataclasses.fields(nn.MLP)]
    assert fields[:3] == [("layers", False), ("activation", False), ("final_activation", False)]
    assert fields[3:] == [
        (name, True)
        for name in (
            "use_bias",
            "use_final_bias",
            "in_size",
            "out_size",
            "width_size",
            "depth",
            "scan",
        )
    ]


def test_scanned_layers_are_the_hidden_layers_stacked(getkey):
    key = getkey()
    plain = nn.MLP(3, 2, 4, 3, key=key)
    scanned = nn.MLP(3, 2, 4, 3, scan=True, key=key)
    first, between, last = scanned.layers
    np.testing.assert_array_equal(first.weight, plain.layers[0].weight)
    np.testing.assert_array_equal(
        between.weight, jnp.stack([layer.weight for layer in plain.layers[1:3]])
    )
    np.testing.assert_array_equal(last.weight, plain.layers[3].weight)
    np.testing.assert_allclose(scanned(jnp.ones(3)), plain(jnp.ones(3)), rtol=1e-6)


@pytest.mark.parametrize("depth", [2, 20])
def test_a_scanned_network_compiles_to_a_program_of_one_length(getkey, depth):
    mlp = nn.MLP(3, 2, 4, depth, scan=True, key=getkey())
    eqns = operations(mlp.__call__, jnp.ones(3))
    assert Counter(eqn.primitive.name for eqn in eqns)["dot_general"] == 2


def test_the_program_is_as_long_as_the_network(getkey):
    mlp = nn.MLP(2, 2, 2, 3, key=getkey())
    eqns = operations(mlp.__call__, jnp.ones(2))
    assert Counter(eqn.primitive.name for eqn in eqns) == {
        "dot_general": 4,
        "add": 4,
        "custom_jvp_call": 3,
    }


@pytest.mark.parametrize("scan", [False, True])
def test_a_learnt_activation_has_parameters_for_each_layer_and_unit(getkey, scan):
    mlp = nn.MLP(3, 2, 4, 3, _slope(), _slope(), scan=scan, key=getkey())
    assert mlp.activation.slope.shape == (3, 4)
    assert mlp.final_activation.slope.shape == (2,)


@pytest.mark.parametrize("scan", [False, True])
def test_each_unit_is_moved_by_its_own_parameter(getkey, scan):
    mlp = nn.MLP(3, 2, 4, 3, _slope(), scan=scan, use_bias=False, key=getkey())
    slopes = jax.random.uniform(getkey(), (3, 4))
    mlp = tree_at(lambda m: m.activation.slope, mlp, slopes)
    first, *between, last = mlp.layers
    hidden = between[0].weight if scan else [layer.weight for layer in between]
    x = expected = jax.random.normal(getkey(), (3,))
    for weight, slope in zip([first.weight, *hidden], slopes, strict=True):
        before = weight @ expected
        expected = jnp.where(before >= 0, before, slope * before)
    np.testing.assert_allclose(mlp(x), last.weight @ expected + last.bias, rtol=1e-5)


@pytest.mark.parametrize("which", ["activation", "final_activation"])
def test_softmax_is_refused_as_not_elementwise(getkey, which):
    mlp = nn.MLP(3, 2, 4, 2, key=getkey(), **{which: jax.nn.softmax})
    with pytest.raises(
        LayerArgumentError,
        match=rf"`MLP` applies {which} to each unit on its own.*`softmax` fails on a scalar "
        r".*not an elementwise function.*`jax\.nn\.softmax\(mlp\(x\)\)`",
    ):
        mlp(jnp.ones(3))


def test_an_activation_that_changes_the_shape_is_refused(getkey):
    with pytest.raises(
        LayerArgumentError, match=r"`cumsum` makes an array of shape \(1,\) of a scalar"
    ):
        nn.MLP(3, 2, 4, 2, jnp.cumsum, key=getkey())(jnp.ones(3))


def test_an_error_of_an_elementwise_activation_is_its_own(getkey):
    def broken(x):
        raise ValueError("the activation's own error")

    with pytest.raises(ValueError, match="the activation's own error") as caught:
        nn.MLP(3, 2, 4, 2, broken, key=getkey())(jnp.ones(3))
    assert not isinstance(caught.value, LayerArgumentError)


@pytest.mark.parametrize(("in_size", "x"), [(3, jnp.ones((5, 3))), ("scalar", jnp.ones(5))])
def test_a_batch_is_refused_with_advice(getkey, in_size, x):
    with pytest.raises(ShapeError, match=r"`MLP` was made with in_size=.* did you mean `jax\.vmap"):
        nn.MLP(in_size, 2, 4, 2, key=getkey())(x)


@pytest.mark.parametrize("name", ["in_size", "out_size", "width_size", "depth"])
def test_what_is_no_size_is_refused(getkey, name):
    sizes = {"in_size": 1, "out_size": 1, "width_size": 1, "depth": 1, name: -1}
    with pytest.raises(LayerArgumentError, match=rf"`MLP` got {name}=-1, but a size is"):
        nn.MLP(**sizes, key=getkey())


def test_a_complex_network_computes_with_complex_numbers(getkey):
    mlp = nn.MLP(3, 2, 4, 2, jnp.tanh, dtype=jnp.complex64, key=getkey())
    assert mlp(jnp.ones(3, jnp.complex64)).dtype == jnp.complex64


def test_a_network_can_be_vmapped_and_trained_whole(getkey):
    mlp = nn.MLP(3, 2, 4, 2, key=getkey())
    assert jax.vmap(mlp)(jnp.ones((5, 3))).shape == (5, 2)
