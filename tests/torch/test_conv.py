"""Convolutions and pools beside PyTorch, with the conversions that the docstrings state."""

import jax.numpy as jnp
import pytest
import torch

from ecliptic import nn
from tests.torch.compare import agree, as_array, with_arrays


def from_torch(weight, groups=1):
    inputs, outputs, *kernel_size = weight.shape
    weight = weight.reshape(groups, inputs // groups, outputs, *kernel_size)
    weight = weight.swapaxes(1, 2).reshape(groups * outputs, -1, *kernel_size)
    return jnp.flip(weight, range(2, weight.ndim))


def _compare(ours, theirs, shape):
    agree(ours, lambda x: theirs(x[None])[0], shape)


def _with(layer, weight, bias):
    return with_arrays(layer, weight=weight, bias=bias.reshape(layer.bias.shape))


CONVOLUTIONS = [
    (1, {"kernel_size": 3, "padding": "same", "dilation": 2}, (6,)),
    (1, {"kernel_size": 3, "stride": 2, "padding": 2, "padding_mode": "circular"}, (7,)),
    (2, {"kernel_size": (2, 3), "stride": (2, 1), "padding": (1, 0), "groups": 2}, (5, 6)),
    (2, {"kernel_size": 3, "padding": 2, "padding_mode": "reflect"}, (5, 4)),
    (2, {"kernel_size": 3, "stride": 2, "padding": 1, "padding_mode": "replicate"}, (5, 4)),
    (3, {"kernel_size": 2, "dilation": 2}, (4, 5, 3)),
]


@pytest.mark.parametrize(("axes", "options", "sizes"), CONVOLUTIONS)
def test_convolutions(getkey, axes, options, sizes):
    theirs = getattr(torch.nn, f"Conv{axes}d")(4, 6, **options)
    layer = getattr(nn, f"Conv{axes}d")(4, 6, **options, key=getkey())
    ours = _with(layer, as_array(theirs.weight), as_array(theirs.bias))
    _compare(ours, theirs, (4, *sizes))


TRANSPOSED = [
    (1, {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1}, (5,)),
    (1, {"kernel_size": 2, "stride": 3, "dilation": 2}, (4,)),
    (2, {"kernel_size": (3, 2), "stride": (2, 1), "padding": (2, 0), "groups": 2}, (4, 3)),
    (3, {"kernel_size": 2, "stride": 2}, (2, 3, 2)),
]


@pytest.mark.parametrize(("axes", "options", "sizes"), TRANSPOSED)
def test_transposed_convolutions(getkey, axes, options, sizes):
    theirs = getattr(torch.nn, f"ConvTranspose{axes}d")(4, 6, **options)
    layer = getattr(nn, f"ConvTranspose{axes}d")(4, 6, **options, key=getkey())
    weight = from_torch(as_array(theirs.weight), options.get("groups", 1))
    _compare(_with(layer, weight, as_array(theirs.bias)), theirs, (4, *sizes))


@pytest.mark.parametrize(
    ("axes", "size", "stride", "padding", "sizes"),
    [(1, 3, 2, 1, (7,)), (2, (3, 2), (2, 1), (1, 0), (6, 5)), (3, 2, 2, 0, (4, 5, 2))],
)
@pytest.mark.parametrize("kind", ["AvgPool", "MaxPool"])
def test_pools(kind, axes, size, stride, padding, sizes):
    theirs = getattr(torch.nn, f"{kind}{axes}d")(size, stride, padding)
    _compare(getattr(nn, f"{kind}{axes}d")(size, stride, padding), theirs, (2, *sizes))


@pytest.mark.parametrize(
    ("size", "stride", "padding", "length"),
    [(2, 2, 0, 5), (2, 3, 0, 3), (2, 3, 1, 4), (3, 2, 1, 6), (3, 4, 1, 5)],
)
def test_the_ceil_mode_of_maxima(size, stride, padding, length):
    theirs = torch.nn.MaxPool1d(size, stride, padding, ceil_mode=True)
    _compare(nn.MaxPool1d(size, stride, padding, use_ceil=True), theirs, (2, length))


@pytest.mark.parametrize("kind", ["AdaptiveAvgPool2d", "AdaptiveMaxPool2d"])
def test_adaptive_pools_where_the_sizes_divide(kind):
    _compare(getattr(nn, kind)((2, 1)), getattr(torch.nn, kind)((2, 1)), (2, 6, 5))
