"""`Linear` and `Identity`."""

import dataclasses
import math

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecliptic import nn
from ecliptic.errors import LayerArgumentError, ShapeError
from tests.support.operations import operations

SIZES = st.one_of(st.just("scalar"), st.integers(0, 9))
DTYPES = st.sampled_from([None, jnp.float32, jnp.bfloat16, jnp.float16, jnp.complex64])


def _ones(size, dtype):
    return jnp.ones(() if size == "scalar" else (size,), dtype)


@settings(max_examples=40)
@given(SIZES, SIZES, st.booleans(), DTYPES, st.integers(0, 2**31 - 1), st.booleans())
def test_weights_and_outputs_are_those_of_equinox(inside, outside, use_bias, dtype, seed, typed):
    key = jax.random.key(seed) if typed else jax.random.PRNGKey(seed)
    ours = nn.Linear(inside, outside, use_bias, dtype, key=key)
    theirs = equinox.nn.Linear(inside, outside, use_bias, dtype, key=key)
    assert ours.weight.dtype == theirs.weight.dtype
    np.testing.assert_array_equal(ours.weight, theirs.weight)
    assert (ours.bias is None) == (theirs.bias is None)
    if use_bias:
        np.testing.assert_array_equal(ours.bias, theirs.bias)
    x = _ones(inside, ours.weight.dtype)
    np.testing.assert_array_equal(ours(x), theirs(x))


def test_the_output_is_weight_times_input_plus_bias(getkey):
    layer = nn.Linear(3, 2, key=getkey())
    x = jax.random.normal(getkey(), (3,))
    np.testing.assert_allclose(layer(x), layer.weight @ x + layer.bias, rtol=1e-6)


def test_the_weight_does_not_depend_on_the_bias(getkey):
    key = getkey()
    with_bias, without = nn.Linear(3, 2, key=key), nn.Linear(3, 2, use_bias=False, key=key)
    assert without.bias is None
    np.testing.assert_array_equal(with_bias.weight, without.weight)


def test_a_complex_weight_has_both_parts_within_the_limit(getkey):
    weight = nn.Linear(25, 100, dtype=jnp.complex64, key=getkey()).weight
    for part in (weight.real, weight.imag):
        assert 0.15 < float(jnp.abs(part).max()) <= 1 / math.sqrt(25)


def test_the_default_dtype_follows_the_setting_of_jax(getkey):
    assert nn.Linear(1, 1, key=getkey()).weight.dtype == jnp.float32
    with jax.enable_x64(True):
        assert nn.Linear(1, 1, key=getkey()).weight.dtype == jnp.float64


def test_fields_are_in_order_and_sizes_are_static():
    fields = [(f.name, bool(f.metadata.get("static"))) for f in dataclasses.fields(nn.Linear)]
    assert fields == [
        ("weight", False),
        ("bias", False),
        ("in_features", True),
        ("out_features", True),
        ("use_bias", True),
    ]


def test_a_numpy_size_becomes_an_int(getkey):
    layer = nn.Linear(np.int64(3), np.int32(2), key=getkey())
    assert (type(layer.in_features), type(layer.out_features)) == (int, int)


def test_the_key_is_keyword_only(getkey):
    with pytest.raises(TypeError, match="positional argument"):
        nn.Linear(3, 2, True, None, getkey())


def test_a_call_takes_a_key_and_ignores_it(getkey):
    layer, x = nn.Linear(3, 2, key=getkey()), jnp.ones(3)
    np.testing.assert_array_equal(layer(x, key=getkey()), layer(x))


@pytest.mark.parametrize("use_bias", [True, False])
def test_a_batch_is_refused_with_advice(getkey, use_bias):
    layer = nn.Linear(3, 2, use_bias=use_bias, key=getkey())
    with pytest.raises(
        ShapeError,
        match=r"`Linear` was made with in_features=3 and acts on one vector of shape \(3,\); got x "
        r"of shape \(3, 3\)\..* did you mean `jax\.vmap\(layer\)\(x\)`\?",
    ):
        layer(jnp.ones((3, 3)))


def test_a_vector_of_wrong_length_is_refused(getkey):
    with pytest.raises(ShapeError, match=r"(?m)in_features=3 .* got x of shape \(4,\)\.$"):
        nn.Linear(3, 2, key=getkey())(jnp.ones(4))


def test_a_vector_for_a_scalar_is_refused(getkey):
    with pytest.raises(
        ShapeError, match=r"in_features='scalar' .*x must have scalar shape \(\); got .* \(1,\)"
    ):
        nn.Linear("scalar", 2, key=getkey())(jnp.ones(1))


@pytest.mark.parametrize("size", [-1, 2.0, "scalars", None, np.array([1, 2])], ids=str)
def test_what_is_no_size_is_refused(getkey, size):
    with pytest.raises(
        LayerArgumentError, match="`Linear` got out_features=.*non-negative integer or 'scalar'"
    ):
        nn.Linear(3, size, key=getkey())


def test_a_traced_size_is_refused_in_the_words_of_jax(getkey):
    with pytest.raises(jax.errors.TracerIntegerConversionError):
        jax.eval_shape(lambda size: nn.Linear(3, size, key=getkey()), 2)


@pytest.mark.parametrize("dtype", [int, jnp.int32, bool])
def test_a_dtype_without_fractions_is_refused(getkey, dtype):
    with pytest.raises(LayerArgumentError, match="`Linear` got dtype=.*floating or complex dtype"):
        nn.Linear(3, 2, dtype=dtype, key=getkey())


def test_the_program_is_one_product_and_one_sum(getkey):
    layer = nn.Linear(3, 2, key=getkey())
    eqns = operations(layer.__call__, jnp.ones(3))
    assert [eqn.primitive.name for eqn in eqns] == ["dot_general", "add"]


def test_identity_returns_the_very_object(getkey):
    x = object()
    assert nn.Identity(1, two=2)(x, key=getkey()) is x
