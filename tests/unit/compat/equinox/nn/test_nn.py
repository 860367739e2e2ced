"""`equinox.nn`."""

import jax
import jax.numpy as jnp
import pytest

import ecliptic.compat.equinox as eqx
from ecliptic import nn
from ecliptic.compat.equinox.nn import _attention

NAMES = """
AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
AdaptiveMaxPool3d AdaptivePool AvgPool1d AvgPool2d AvgPool3d BatchNorm Conv Conv1d Conv2d Conv3d
ConvTranspose ConvTranspose1d ConvTranspose2d ConvTranspose3d Dropout Embedding GRUCell GroupNorm
Identity LSTMCell Lambda LayerNorm Linear MLP MaxPool1d MaxPool2d MaxPool3d MultiheadAttention PReLU
Pool RMSNorm RotaryPositionalEmbedding Sequential Shared SpectralNorm State StateIndex StatefulLayer
WeightNorm delete_init_state inference_mode make_with_state
""".split()


def test_every_name_is_there_and_is_that_of_ecliptic():
    assert sorted(eqx.nn.__all__) == sorted(NAMES)
    own = {name: getattr(eqx.nn, name) for name in NAMES if name != "RotaryPositionalEmbedding"}
    assert own == {name: getattr(nn, name) for name in own}


def test_functions_of_attention_are_where_libraries_look_for_them():
    assert {"dot_product_attention", "dot_product_attention_weights"} < {*_attention.__all__}


def test_a_rotary_embedding_refuses_an_input_of_another_dtype_in_strict_mode():
    x = jnp.ones((3, 4), jnp.float16)
    single, half = (eqx.nn.RotaryPositionalEmbedding(4, dtype=d) for d in ("float32", "float16"))
    with jax.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="promotion path"):
        single(x)
    with jax.numpy_dtype_promotion("standard"):
        assert single(x).dtype == jnp.float16
    assert half(x).tolist() == nn.RotaryPositionalEmbedding(4, dtype="float16")(x).tolist()
    assert isinstance(half, nn.RotaryPositionalEmbedding)
