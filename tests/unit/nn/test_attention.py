"""The functions of attention for one head."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.errors import LayerArgumentError, ShapeError
from ecliptic.nn._attention import dot_product_attention, dot_product_attention_weights

Q, K = jax.random.normal(jax.random.key(0), (3, 4)), jax.random.normal(jax.random.key(1), (5, 4))
V = jax.random.normal(jax.random.key(2), (5, 2))
MASK = jax.random.bernoulli(jax.random.key(3), 0.6, (3, 5)).at[:, 0].set(True)


@pytest.mark.parametrize("mask", [None, MASK])
def test_weights_are_a_softmax_of_scaled_products(mask):
    scores = np.asarray(Q @ K.T, np.float64) / 2
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(dot_product_attention_weights(Q, K, mask), expected, rtol=1e-5)
    np.testing.assert_allclose(dot_product_attention(Q, K, V, mask), expected @ V, rtol=1e-4)


def test_half_precision_is_preserved():
    assert dot_product_attention(*[x.astype(jnp.float16) for x in (Q, K, V)]).dtype == jnp.float16


def test_dropout_drops_weights():
    dropout, key = nn.Dropout(0.5), jax.random.key(4)
    expected = dropout(dot_product_attention_weights(Q, K), key=key) @ V
    y = dot_product_attention(Q, K, V, None, dropout, key=key)
    np.testing.assert_allclose(y, expected, rtol=1e-5)
    still = dot_product_attention(Q, K, V, None, dropout, inference=True)
    np.testing.assert_array_equal(still, dot_product_attention(Q, K, V))


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ShapeError, match=r"must have shape \(q_seq, kv_seq\)=\(3, 5\): a row"):
        dot_product_attention_weights(Q, K, MASK.T)


def test_a_mask_that_is_not_boolean_is_refused():
    with pytest.raises(LayerArgumentError, match="got dtype int32"):
        dot_product_attention(Q, K, V, MASK.astype(int))
