"""`GRUCell` and `LSTMCell`."""

import dataclasses

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecliptic import nn
from ecliptic.errors import LayerArgumentError, ShapeError
from ecliptic.transform import filter_jit

CELLS = ["GRUCell", "LSTMCell"]


def _hidden(name, h):
    return h if name == "GRUCell" else (h, 2 * h)


@settings(max_examples=5)
@given(
    st.sampled_from(CELLS),
    st.integers(0, 3),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([None, jnp.float16, jnp.complex64]),
    st.integers(0, 9),
)
def test_weights_outputs_and_gradients_are_those_of_equinox(name, n, h, bias, dtype, seed):
    key = jax.random.key(seed)
    ours, theirs = (getattr(lib, name)(n, h, bias, dtype, key=key) for lib in (nn, equinox.nn))
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    dtype = dtype or jnp.float32
    x, hidden = jnp.ones(n, dtype), _hidden(name, jax.random.normal(key, (h,), dtype))

    def loss(x, hidden, cell):
        y = cell(x, hidden)
        return sum(jnp.sum(jnp.abs(leaf) ** 2) for leaf in jax.tree.leaves(y)), y

    results = [
        filter_jit(jax.grad(loss, (0, 1), has_aux=True))(x, hidden, cell) for cell in (ours, theirs)
    ]
    for one, other in zip(*map(jax.tree.leaves, results), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(
            one, other, rtol=1e-2 if dtype == jnp.float16 else 1e-5, atol=1e-5
        )


@pytest.mark.parametrize(
    ("name", "biases"), [("GRUCell", ["bias", "bias_n"]), ("LSTMCell", ["bias"])]
)
def test_fields_are_in_order(name, biases):
    names = [f.name for f in dataclasses.fields(getattr(nn, name))]
    sizes = ["input_size", "hidden_size", "use_bias"]
    assert names == ["weight_ih", "weight_hh", *biases, *sizes]


@pytest.mark.parametrize("name", CELLS)
def test_a_sequence_is_a_scan(getkey, name):
    cell = getattr(nn, name)(2, 3, key=getkey())
    hidden = _hidden(name, jnp.zeros(3))
    last, _ = jax.lax.scan(lambda h, x: (cell(x, h), None), hidden, jnp.ones((4, 2)))
    step = filter_jit(cell)
    for _ in range(4):
        hidden = step(jnp.ones(2), hidden)
    for one, other in zip(*map(jax.tree.leaves, (last, hidden)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("name", CELLS)
def test_a_batch_is_refused_with_advice(getkey, name):
    cell = getattr(nn, name)(2, 3, key=getkey())
    with pytest.raises(
        ShapeError,
        match=rf"`{name}` was made with input_size=2 and acts on input of shape \(2,\); got input "
        r"of shape \(5, 2\)\..*`jax\.vmap",
    ):
        cell(jnp.ones((5, 2)), _hidden(name, jnp.ones(3)))


@pytest.mark.parametrize(
    ("name", "argument"), [("GRUCell", "hidden"), ("LSTMCell", r"hidden\[0\]")]
)
def test_a_hidden_state_of_wrong_shape_is_refused(getkey, name, argument):
    cell = getattr(nn, name)(2, 3, key=getkey())
    with pytest.raises(ShapeError, match=rf"hidden_size=3 .* got {argument} of shape \(2,\)"):
        cell(jnp.ones(2), _hidden(name, jnp.ones(2)))


@pytest.mark.parametrize("hidden", [jnp.ones(3), None, jnp.ones(())])
def test_one_hidden_state_for_a_memory_is_refused(getkey, hidden):
    cell = nn.LSTMCell(2, 3, key=getkey())
    with pytest.raises(LayerArgumentError, match=r"`h, c = cell\(input, \(h, c\)\)`.*no pair: a `"):
        cell(jnp.ones(2), hidden)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("sizes", [(-1, 2), (2, None)])
def test_what_is_no_size_is_refused(getkey, name, sizes):
    with pytest.raises(LayerArgumentError, match=rf"`{name}` got .*_size=.*a size is"):
        getattr(nn, name)(*sizes, key=getkey())


@pytest.mark.parametrize("name", CELLS)
def test_other_dtypes_are_promoted_where_jax_allows_it(getkey, name):
    cell = getattr(nn, name)(2, 3, dtype=jnp.bfloat16, key=getkey())
    hidden = _hidden(name, jnp.ones(3))
    with jax.numpy_dtype_promotion("standard"):
        assert jax.tree.leaves(cell(jnp.ones(2), hidden))[0].dtype == jnp.float32
    with pytest.raises(jax.dtypes.TypePromotionError):
        cell(jnp.ones(2), hidden)
