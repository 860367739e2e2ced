"""Attention, embeddings, recurrent cells and normalisations agree with those of PyTorch.

The weights are converted as the docstrings of the layers say; outputs and gradients by the input
are compared.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from ecliptic import nn
from ecliptic.tree import tree_at
from tests.torch.compare import agree, as_array, with_arrays

KEY = jax.random.key(0)


def _randomised(module):
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


@pytest.mark.parametrize("masked", [False, True])
def test_multihead_attention(masked):
    theirs = _randomised(torch.nn.MultiheadAttention(4, 2, batch_first=True))
    ours = nn.MultiheadAttention(
        2,
        4,
        use_query_bias=True,
        use_key_bias=True,
        use_value_bias=True,
        use_output_bias=True,
        key=KEY,
    )
    weights = jnp.split(as_array(theirs.in_proj_weight), 3)
    biases = jnp.split(as_array(theirs.in_proj_bias), 3)
    ours = tree_at(
        lambda m: [
            layer
            for proj in (m.query_proj, m.key_proj, m.value_proj, m.output_proj)
            for layer in (proj.weight, proj.bias)
        ],
        ours,
        [
            *[array for pair in zip(weights, biases, strict=True) for array in pair],
            as_array(theirs.out_proj.weight),
            as_array(theirs.out_proj.bias),
        ],
    )
    mask = torch.rand(3, 5) < 0.6 if masked else None
    if masked:
        mask[:, 0] = True
    allowed = None if mask is None else mask.numpy()
    forbidden = None if mask is None else ~mask
    agree(
        lambda q, k, v: ours(q, k, v, allowed),
        lambda q, k, v: theirs(q, k, v, attn_mask=forbidden)[0],
        (3, 4),
        (5, 4),
        (5, 4),
    )


def test_embedding():
    theirs = torch.nn.Embedding(5, 3)
    ours = nn.Embedding(weight=as_array(theirs.weight))
    np.testing.assert_array_equal(ours(2), as_array(theirs(torch.tensor(2))))


@pytest.mark.parametrize("bias", [True, False])
def test_gru_cell(bias):
    theirs = torch.nn.GRUCell(3, 4, bias=bias)
    arrays = {"weight_ih": as_array(theirs.weight_ih), "weight_hh": as_array(theirs.weight_hh)}
    if bias:
        bias_ih, bias_hh = as_array(theirs.bias_ih), as_array(theirs.bias_hh)
        arrays |= {"bias": bias_ih.at[:8].add(bias_hh[:8]), "bias_n": bias_hh[-4:]}
    agree(with_arrays(nn.GRUCell(3, 4, bias, key=KEY), **arrays), theirs, (3,), (4,))


@pytest.mark.parametrize("bias", [True, False])
def test_lstm_cell(bias):
    theirs = torch.nn.LSTMCell(3, 4, bias=bias)
    arrays = {"weight_ih": as_array(theirs.weight_ih), "weight_hh": as_array(theirs.weight_hh)}
    if bias:
        arrays["bias"] = as_array(theirs.bias_ih) + as_array(theirs.bias_hh)
    ours = with_arrays(nn.LSTMCell(3, 4, bias, key=KEY), **arrays)
    agree(
        lambda x, h, c: jnp.concatenate(ours(x, (h, c))),
        lambda x, h, c: torch.cat(theirs(x, (h, c))),
        (3,),
        (4,),
        (4,),
    )


@pytest.mark.parametrize(
    ("theirs", "ours", "shape"),
    [
        (lambda: torch.nn.LayerNorm((2, 3), 0.1), lambda: nn.LayerNorm((2, 3), 0.1), (2, 3)),
        (lambda: torch.nn.RMSNorm(3, 0.1), lambda: nn.RMSNorm(3, 0.1, use_bias=False), (3,)),
        (lambda: torch.nn.GroupNorm(2, 4), lambda: nn.GroupNorm(2, 4), (4, 3, 2)),
    ],
    ids=["LayerNorm", "RMSNorm", "GroupNorm"],
)
def test_normalisations(theirs, ours, shape):
    theirs, ours = _randomised(theirs()), ours()
    arrays = {name: as_array(value) for name, value in theirs.named_parameters()}
    batched = isinstance(theirs, torch.nn.GroupNorm)
    agree(
        with_arrays(ours, **arrays), lambda x: theirs(x[None])[0] if batched else theirs(x), shape
    )


def test_prelu():
    theirs = _randomised(torch.nn.PReLU(3))
    ours = nn.PReLU(as_array(theirs.weight)[:, None, None])
    agree(ours, lambda x: theirs(x[None])[0], (3, 2, 2))


@pytest.mark.parametrize("axis", [0, 1, None])
def test_weight_norm(axis):
    theirs = torch.nn.Linear(3, 2)
    ours = nn.WeightNorm(
        with_arrays(
            nn.Linear(3, 2, key=KEY), weight=as_array(theirs.weight), bias=as_array(theirs.bias)
        ),
        axis=axis,
    )
    theirs = torch.nn.utils.parametrizations.weight_norm(theirs, "weight", axis)
    length = theirs.parametrizations.weight.original0
    np.testing.assert_allclose(ours.g.reshape(length.shape), as_array(length), rtol=1e-6)
    torch.nn.init.normal_(length)
    ours = with_arrays(ours, g=as_array(length).reshape(ours.g.shape))
    agree(ours, theirs, (3,))
