"""Convolutions and pools beside Equinox: the same numbers from the same key."""

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecliptic import nn

SMALL = st.integers(1, 3)
WORDS = ["SAME", "same_lower", "VALID"]


def _by_axis(draw, axes, numbers):
    return draw(st.one_of(numbers, st.tuples(*[numbers] * axes)))


@st.composite
def _arguments(draw, transposed):
    axes = draw(st.integers(1, 2))
    groups = draw(st.integers(1, 2))
    numbers = st.integers(0, 2)
    pairs = st.tuples(*[st.tuples(numbers, numbers)] * axes)
    stride = draw(st.tuples(*[SMALL] * axes))
    arguments = {
        "num_spatial_dims": axes,
        "in_channels": groups * draw(SMALL),
        "out_channels": groups * draw(SMALL),
        "kernel_size": _by_axis(draw, axes, SMALL),
        "stride": stride,
        "dilation": _by_axis(draw, axes, st.integers(1, 2)),
        "groups": groups,
        "use_bias": draw(st.booleans()),
        "padding": draw(
            st.one_of(numbers, st.tuples(*[numbers] * axes), pairs, st.sampled_from(WORDS))
        ),
    }
    if transposed:
        if draw(st.booleans()):
            arguments |= {"padding": draw(st.sampled_from(WORDS[:2])), "padding_mode": "circular"}
        else:
            arguments["output_padding"] = tuple(draw(st.integers(0, s - 1)) for s in stride)
    else:
        modes = ["ZEROS", "REFLECT", "replicate", "CIRCULAR"]
        arguments["padding_mode"] = draw(st.sampled_from(modes))
    return arguments


def _with_gradients(layer, x):
    """The output, and the gradients by weight, bias and input."""

    def loss(layer, x):
        y = layer(x)
        return jnp.sum(y**2), y

    gradients, y = jax.grad(loss, argnums=(0, 1), has_aux=True)(layer, x)
    return [y, *jax.tree.leaves(gradients)]


def _compare(ours, theirs, x):
    for mine, expected in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(mine, expected)
    # One program, for the time it takes to compile.
    one, other = jax.jit(lambda *both: [_with_gradients(layer, x) for layer in both])(ours, theirs)
    for mine, expected in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-4)


def _example(arguments, seed):
    shape = (arguments["in_channels"], *(5, 6)[: arguments["num_spatial_dims"]])
    return jax.random.normal(jax.random.key(seed), shape)


@settings(max_examples=4)
@given(_arguments(transposed=False), st.integers(0, 99))
def test_convolutions_are_those_of_equinox(arguments, seed):
    key = jax.random.key(seed)
    _compare(
        nn.Conv(**arguments, key=key),
        equinox.nn.Conv(**arguments, key=key),
        _example(arguments, seed),
    )


@settings(max_examples=4)
@given(_arguments(transposed=True), st.integers(0, 99))
def test_transposed_convolutions_are_those_of_equinox(arguments, seed):
    key = jax.random.key(seed)
    x = _example(arguments, seed)
    theirs = equinox.nn.ConvTranspose(**arguments, key=key)
    ours = nn.ConvTranspose(**arguments, key=key)
    if 0 in jax.eval_shape(theirs, x).shape:
        with pytest.raises(ValueError, match="leaves no element"):
            ours(x)
    else:
        _compare(ours, theirs, x)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.complex64])
def test_weights_of_every_dtype_are_those_of_equinox(getkey, dtype):
    key = getkey()
    ours = nn.Conv3d(2, 4, (1, 2, 3), groups=2, dtype=dtype, key=key)
    theirs = equinox.nn.Conv3d(2, 4, (1, 2, 3), groups=2, dtype=dtype, key=key)
    assert ours.weight.dtype == theirs.weight.dtype
    np.testing.assert_array_equal(ours.weight, theirs.weight)
    np.testing.assert_array_equal(ours.bias, theirs.bias)


@st.composite
def _windows(draw):
    axes = draw(st.integers(1, 2))
    kernel_size = draw(st.tuples(*[st.integers(1, 6)] * axes))
    pads = [st.tuples(*[st.integers(0, k // 2)] * 2) for k in kernel_size]
    return axes, kernel_size, draw(st.tuples(*[SMALL] * axes)), draw(st.tuples(*pads))


@settings(max_examples=4)
@given(st.sampled_from(["AvgPool", "MaxPool"]), _windows(), st.booleans(), st.integers(0, 99))
def test_pools_are_those_of_equinox(kind, window, use_ceil, seed):
    axes, *arguments = window
    ours = getattr(nn, f"{kind}{axes}d")(*arguments, use_ceil)
    theirs = getattr(equinox.nn, f"{kind}{axes}d")(*arguments, use_ceil)
    # Whole numbers from few: so of equal elements the same one has the gradient.
    x = jax.random.randint(jax.random.key(seed), (2, *(6, 7)[:axes]), 0, 4).astype(jnp.float32)
    try:
        expected = theirs(x)
    except RuntimeError:
        # A window that would start after the example: ours is left out, there it is an error.
        assert use_ceil
        assert ours(x).shape[0] == 2
        return
    np.testing.assert_allclose(ours(x), expected, rtol=1e-6)
    _compare_slopes(ours, theirs, x)


def _compare_slopes(ours, theirs, x):
    scale = jnp.arange(1.0, 1.0 + ours(x).size).reshape(ours(x).shape)

    @jax.jit
    def slopes(x):
        return [jax.grad(lambda x, p=p: jnp.sum(scale * p(x)))(x) for p in (ours, theirs)]

    np.testing.assert_allclose(*slopes(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["AdaptiveAvgPool", "AdaptiveMaxPool"])
@pytest.mark.parametrize("target", [(2, 7), (3, 5)])
def test_adaptive_pools_are_those_of_equinox(name, target):
    ours, theirs = getattr(nn, f"{name}2d")(target), getattr(equinox.nn, f"{name}2d")(target)
    x = jax.random.randint(jax.random.key(0), (2, 6, 7), 0, 4).astype(jnp.float32)
    np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-6)
    _compare_slopes(ours, theirs, x)
