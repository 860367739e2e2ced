"""`MultiheadAttention`."""

import dataclasses

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecliptic import nn
from ecliptic.errors import EclipticWarning, LayerArgumentError, MissingKeyError, ShapeError
from ecliptic.tree import is_array, partition, tree_at
from tests.support.operations import operations

KEY = jax.random.key(0)
Q, KV = jax.random.normal(KEY, (3, 4)), jax.random.normal(jax.random.key(1), (5, 4))
MASK = jax.random.bernoulli(jax.random.key(2), 0.6, (2, 3, 5))


def _attention(**options):
    return nn.MultiheadAttention(2, 4, key=KEY, **options)


def _traced_anew(layer, *arguments):
    return jax.jit(lambda *arguments: layer(*arguments))(*arguments)


def _arrays(tree):
    return [leaf for leaf in jax.tree.leaves(tree) if is_array(leaf)]


@settings(max_examples=3)
@given(
    st.tuples(*[st.sampled_from([None, 1, 3])] * 2),
    st.tuples(*[st.booleans()] * 4),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([None, MASK, MASK[0]]),
    st.booleans(),
)
def test_weights_outputs_and_gradients_are_those_of_equinox(sizes, biases, p, mask, process):
    ours, theirs = (
        lib.MultiheadAttention(2, 4, None, None, None, *sizes, *biases, p, key=KEY)
        for lib in (nn, equinox.nn)
    )
    for one, other in zip(_arrays(ours), _arrays(theirs), strict=True):
        np.testing.assert_array_equal(one, other)
    options = {"process_heads": lambda q, k, v: (2 * q, k, v + 1)} if process else {}

    def output_and_gradients(layer):
        arrays, rest = partition(layer, is_array)

        def loss(arrays, q, kv):
            layer = equinox.combine(arrays, rest)
            y = layer(q, kv, kv, mask, key=jax.random.key(5), **options)
            return jnp.sum(jnp.sin(y)), y

        return jax.jit(jax.grad(loss, (0, 1, 2), has_aux=True))(arrays, Q, KV)

    results = [jax.tree.leaves(output_and_gradients(layer)) for layer in (ours, theirs)]
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_sizes_have_the_defaults_of_equinox():
    made = []
    for sizes in [(2, 6), (2, 5), (1, 4, 3, 2, 6, 7, 8)]:
        for lib in (nn, equinox.nn):
            # Nothing is computed, so nothing is compiled.
            jax.eval_shape(lambda key: made.append(lib.MultiheadAttention(*sizes, key=key)), KEY)  # noqa: B023
        theirs, ours = made.pop(), made.pop()
        names = [f.name for f in dataclasses.fields(ours)]
        assert names == [f.name for f in dataclasses.fields(theirs)]
        assert [getattr(ours, n) for n in names[5:]] == [getattr(theirs, n) for n in names[5:]]


def test_the_attention_of_jax_is_used_off_the_cpu_and_gives_the_same(monkeypatch):
    layers = [_attention(dtype=d) for d in (jnp.float32, jnp.bfloat16)]
    inputs = [[x.astype(layer.query_proj.weight.dtype) for x in (Q, KV, KV)] for layer in layers]
    here = [_traced_anew(layer, *x, MASK) for layer, x in zip(layers, inputs, strict=True)]
    calls = []
    theirs = jax.nn.dot_product_attention
    monkeypatch.setattr(
        jax.nn, "dot_product_attention", lambda *a, **kw: (calls.append(1), theirs(*a, **kw))[1]
    )
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    there = [_traced_anew(layer, *x, MASK) for layer, x in zip(layers, inputs, strict=True)]
    assert len(calls) == 2
    for one, other, atol in zip(here, there, (1e-6, 1e-2), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.astype("float32"), other.astype("float32"), atol=atol)


def test_a_softmax_of_half_precision_is_computed_in_single():
    eqns = operations(_attention(dtype=jnp.bfloat16).__call__, *[Q.astype(jnp.bfloat16)] * 3)
    exponentials = [eqn for eqn in eqns if eqn.primitive.name == "exp"]
    assert [eqn.invars[0].aval.dtype for eqn in exponentials] == [jnp.float32]


def test_a_row_that_allows_no_place_looks_at_all_equally():
    y = _attention()(Q, KV, KV, jnp.zeros((3, 5), bool))
    np.testing.assert_allclose(y, _attention()(0 * Q, KV, KV), rtol=1e-5, atol=1e-6)


def test_a_mask_has_queries_as_rows():
    only_first = jnp.zeros((3, 5), bool).at[:, 0].set(True)
    np.testing.assert_allclose(
        _attention()(Q, KV, KV, np.asarray(only_first)),
        _attention()(Q, KV[:1], KV[:1]),
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("shape", [(5, 3), (1, 5), (1, 3, 5), (3,)])
def test_a_mask_of_another_shape_is_refused(shape):
    with pytest.raises(
        ShapeError,
        match=r"shape \(q_seq, kv_seq\)=\(3, 5\) or \(num_heads, q_seq, kv_seq\)=\(2, 3, 5\)",
    ):
        _attention()(Q, KV, KV, jnp.ones(shape, bool))


@pytest.mark.parametrize("dtype", [int, jnp.float32])
def test_a_mask_that_is_not_boolean_is_refused(dtype):
    with pytest.raises(LayerArgumentError, match=r"got dtype .*pass `mask != 0`.*`mask == 0`"):
        _attention()(Q, KV, KV, jnp.ones((3, 5), dtype))


def test_dropout_needs_a_key_except_in_inference():
    layer = _attention(dropout_p=0.5)
    with pytest.raises(MissingKeyError, match="`Dropout` requires a key"):
        layer(Q, KV, KV)
    expected = _attention()(Q, KV, KV)
    np.testing.assert_array_equal(layer(Q, KV, KV, inference=True), expected)
    np.testing.assert_array_equal(nn.inference_mode(layer)(Q, KV, KV), expected)
    np.testing.assert_array_equal(_attention(dropout_p=0.5, inference=True)(Q, KV, KV), expected)


def test_a_flag_of_inference_can_be_traced():
    layer = _attention(dropout_p=0.5)
    call = jax.jit(lambda flag: layer(Q, KV, KV, key=KEY, inference=flag))
    expected = layer(Q, KV, KV, inference=True)
    np.testing.assert_allclose(call(True), expected, rtol=1e-5, atol=1e-6)
    dropped = jax.jit(lambda key: layer(Q, KV, KV, key=key))(KEY)
    np.testing.assert_allclose(call(False), dropped, rtol=1e-5, atol=1e-6)


def test_examples_of_a_batch_drop_different_weights():
    keys = jax.random.split(KEY, 2)
    layer = _attention(dropout_p=0.5)
    ys = jax.jit(jax.vmap(lambda key: layer(Q, KV, KV, key=key)))(keys)
    assert not np.allclose(ys[0], ys[1])


def test_the_old_name_of_inference_is_warned_of():
    with pytest.warns(EclipticWarning, match=r"`MultiheadAttention\(\)\(deterministic=\.\.\.\)`"):
        _attention(dropout_p=0.5)(Q, KV, KV, deterministic=True)


def test_any_layer_may_stand_for_a_projection():
    layer = _attention()
    twice = tree_at(lambda m: m.query_proj, layer, lambda x: 2 * layer.query_proj(x))
    expected = layer(2 * Q, KV, KV)
    np.testing.assert_allclose(twice(Q, KV, KV), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("process", [lambda q, k, v: (q[:1], k, v), lambda q, k, v: (q, k[:1], v)])
def test_heads_must_keep_their_shapes(process):
    with pytest.raises(ShapeError, match="`process_heads` .* must not change the shapes"):
        _attention()(Q, KV, KV, process_heads=process)


def test_processed_heads_are_three_arrays():
    with pytest.raises(LayerArgumentError, match="must return three arrays.*got a `tuple`"):
        _attention()(Q, KV, KV, process_heads=lambda q, k, v: (q, k))


@pytest.mark.parametrize("name", ["query", "key_", "value"])
def test_a_batch_is_refused_with_advice(name):
    arguments = {"query": Q, "key_": KV, "value": KV}
    arguments[name] = arguments[name][None]
    with pytest.raises(ShapeError, match=rf"acts on {name} of shape .* did you mean `jax\.vmap"):
        _attention()(**arguments)


def test_keys_and_values_must_be_as_many():
    with pytest.raises(ShapeError, match="sequences of equal length. Got key_ of shape"):
        _attention()(Q, KV, KV[:2])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"num_heads": 0}, "num_heads=0, but needs one"),
        ({"num_heads": -1}, "num_heads=-1, but a size is"),
        ({"vo_size": 2.0}, "vo_size=2.0, but a size is"),
        ({"dtype": jnp.complex64}, "complex numbers have no order"),
        ({"dropout_p": 2.0}, "p=2.0, but the probability"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, match):
    with pytest.raises(LayerArgumentError, match=match):
        nn.MultiheadAttention(**{"num_heads": 2, "query_size": 4, **options}, key=KEY)
