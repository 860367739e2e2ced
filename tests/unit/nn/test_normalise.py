"""`LayerNorm`, `RMSNorm` and `GroupNorm`."""

import dataclasses

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecliptic import nn
from ecliptic.errors import EclipticWarning, LayerArgumentError, ShapeError
from ecliptic.tree import is_array, is_inexact_array, partition, tree_at

NORMS = [nn.LayerNorm, nn.RMSNorm]


def _moved(layer, seed):
    """The layer with other weights and biases than ones and zeros."""
    leaves, structure = jax.tree.flatten(layer)
    keys = jax.random.split(jax.random.key(seed), len(leaves) or 1)
    leaves = [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=False)]
    return jax.tree.unflatten(structure, leaves)


def _output_and_gradient(layer, x):
    arrays, rest = partition(layer, is_inexact_array)

    def loss(arrays, x):
        y = equinox.combine(arrays, rest)(x)
        return jnp.sum(jnp.sin(y)), y

    (_, y), gradients = jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))(arrays, x)
    return [y, *jax.tree.leaves(gradients)]


def _agree(ours, theirs, x):
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        expected = _output_and_gradient(theirs, x)
    for one, other in zip(_output_and_gradient(ours, x), expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@settings(max_examples=6)
@given(
    st.sampled_from(["LayerNorm", "RMSNorm"]),
    st.sampled_from([(), (3,), (2, 3)]),
    st.sampled_from([1e-5, 0.5]),
    st.booleans(),
    st.booleans(),
)
def test_outputs_and_gradients_are_those_of_equinox(name, shape, eps, weight, bias):
    ours, theirs = (
        _moved(getattr(lib, name)(shape, eps, weight, bias), 3) for lib in (nn, equinox.nn)
    )
    _agree(ours, theirs, jax.random.normal(jax.random.key(1), shape))


@settings(max_examples=4)
@given(st.integers(1, 3), st.integers(1, 2), st.sampled_from([(), (4,), (2, 3)]), st.booleans())
def test_groups_are_normalised_as_by_equinox(groups, each, others, affine):
    if others == () and each == 1:
        return  # constant groups: Equinox halves the gradient
    channels = groups * each
    ours, theirs = (
        _moved(lib.GroupNorm(groups, channels, 0.1, affine), 3) for lib in (nn, equinox.nn)
    )
    _agree(ours, theirs, jax.random.normal(jax.random.key(1), (channels, *others)))


@pytest.mark.parametrize("norm", NORMS)
def test_fields_are_in_order(norm):
    names = ["shape", "eps", "use_weight", "use_bias", "weight", "bias"]
    assert [f.name for f in dataclasses.fields(norm)] == names
    assert [bool(f.metadata.get("static")) for f in dataclasses.fields(norm)] == [True] * 4 + [
        False
    ] * 2


def test_fields_of_groups_are_in_order():
    assert [f.name for f in dataclasses.fields(nn.GroupNorm)] == [
        "groups",
        "channels",
        "eps",
        "channelwise_affine",
        "weight",
        "bias",
    ]


@pytest.mark.parametrize("layer", [nn.LayerNorm(256), nn.RMSNorm(256), nn.GroupNorm(1, 256)])
def test_statistics_of_half_precision_are_taken_in_single(layer):
    # The sum of the squares is far beyond what float16 can hold.
    x = jnp.linspace(-200, 200, 256).astype(jnp.float16)
    y = layer(x)
    assert y.dtype == jnp.float16
    expected = np.asarray(x, np.float64) / np.asarray(x, np.float64).std()
    np.testing.assert_allclose(np.asarray(y, np.float64), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("layer", [nn.LayerNorm(3), nn.RMSNorm(3), nn.GroupNorm(1, 3)])
def test_integers_give_floating_numbers(layer):
    assert layer(jnp.array([1, 2, 3])).dtype == jnp.float32


@pytest.mark.parametrize("layer", [nn.LayerNorm(4), nn.GroupNorm(1, 4)])
def test_complex_numbers_get_the_variance_one(layer):
    y = layer(jnp.array([1 + 1j, -1 + 2j, 3j, 2]))
    np.testing.assert_allclose(jnp.mean(y), 0, atol=1e-6)
    np.testing.assert_allclose(jnp.mean(jnp.abs(y) ** 2), 1, rtol=1e-4)


def test_complex_numbers_get_the_mean_square_one():
    y = nn.RMSNorm(3)(jnp.array([1 + 1j, -1 + 2j, 3j]))
    np.testing.assert_allclose(jnp.mean(jnp.abs(y) ** 2), 1, rtol=1e-4)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.complex64])
@pytest.mark.parametrize("make", [nn.LayerNorm, nn.RMSNorm])
def test_weight_and_bias_have_the_dtype_given(make, dtype):
    layer = make(3, dtype=dtype)
    assert layer.weight.dtype == layer.bias.dtype == dtype
    assert layer(jnp.ones(3)).dtype == (jnp.float32 if dtype == jnp.bfloat16 else dtype)


@pytest.mark.parametrize("norm", NORMS)
def test_a_missing_vmap_is_refused(norm):
    with pytest.raises(
        ShapeError,
        match=rf"`{norm.__name__}` was made with shape=\(3,\) and acts on x of shape \(3,\); got x "
        r"of shape \(2, 3\)\..* did you mean `jax\.vmap\(layer\)\(x\)`\?",
    ):
        norm(3)(jnp.ones((2, 3)))


@pytest.mark.parametrize("shape", [(), (8, 4), (3,)])
def test_a_wrong_number_of_channels_is_refused(shape):
    with pytest.raises(ShapeError, match=r"`GroupNorm` was made with groups=2, channels=4 .* got"):
        nn.GroupNorm(2, 4)(jnp.ones(shape))


def test_channels_that_were_not_given_must_fit_the_groups():
    layer = nn.GroupNorm(2, channelwise_affine=False)
    assert layer(jnp.ones((6, 2))).shape == (6, 2)
    with pytest.raises(ShapeError, match=r"channels is a multiple of 2; .*\(3, 2\).*`jax\.vmap"):
        layer(jnp.ones((3, 2)))


@pytest.mark.parametrize(("groups", "channels"), [(3, 4), (0, 4)])
def test_groups_that_do_not_divide_the_channels_are_refused(groups, channels):
    with pytest.raises(LayerArgumentError, match="number of groups must divide the number of chan"):
        nn.GroupNorm(groups, channels)


def test_an_affine_map_of_unknown_channels_is_refused():
    with pytest.raises(LayerArgumentError, match="got no channels.*`channelwise_affine=False`"):
        nn.GroupNorm(2)


@pytest.mark.parametrize("eps", [-1.0, float("nan"), None])
def test_what_cannot_be_added_to_a_variance_is_refused(eps):
    with pytest.raises(LayerArgumentError, match=r"`LayerNorm` got eps=.*non-negative number"):
        nn.LayerNorm(3, eps)


def test_what_is_no_shape_is_refused():
    with pytest.raises(LayerArgumentError, match=r"`RMSNorm` got shape=-1, but a size is"):
        nn.RMSNorm((2, -1))


@pytest.mark.parametrize("layer", [nn.LayerNorm(3), nn.RMSNorm(3), nn.GroupNorm(1, 3)])
@pytest.mark.parametrize("state", [None, {"a": 1}])
def test_a_state_is_returned_as_it_is(layer, state):
    y, returned = layer(jnp.ones(3), state)
    assert returned is state
    np.testing.assert_array_equal(y, layer(jnp.ones(3)))


def test_the_old_name_of_weight_and_bias_is_warned_of():
    with pytest.warns(EclipticWarning, match=r"`LayerNorm\(elementwise_affine=\.\.\.\)` is depr"):
        layer = nn.LayerNorm(3, elementwise_affine=False)
    assert (layer.weight, layer.bias, layer.use_weight, layer.use_bias) == (
        None,
        None,
        False,
        False,
    )


@pytest.mark.parametrize("layer", [nn.LayerNorm((0, 2)), nn.RMSNorm(0), nn.GroupNorm(2, 4)])
def test_an_empty_array_stays_one(layer):
    shape = (4, 0) if isinstance(layer, nn.GroupNorm) else layer.shape
    assert layer(jnp.ones(shape)).shape == shape


def test_a_weight_can_be_replaced_by_one_of_another_dtype():
    layer = tree_at(lambda m: m.weight, nn.LayerNorm(3), jnp.ones(3, jnp.bfloat16))
    assert layer(jnp.ones(3)).dtype == jnp.float32
    assert all(is_array(leaf) for leaf in jax.tree.leaves(layer))
