"""Neighbours among floating numbers, of every type."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic.errors import ArgumentError
from ecliptic.primitive import nextafter, prevbefore

DTYPES = [
    jnp.float32, jnp.float16, jnp.bfloat16, jnp.float8_e5m2, jnp.float8_e4m3fn,
    jnp.float8_e4m3fnuz, jnp.float8_e4m3,
]  # fmt: skip
WITHOUT_INFINITY = {jnp.float8_e4m3fn, jnp.float8_e4m3fnuz}


def _in_order(dtype):
    """Numbers of a small type in order, subnormal ones left out."""
    info = jnp.finfo(dtype)
    patterns = np.arange(2**info.bits, dtype=f"uint{info.bits}").view(dtype)
    with np.errstate(invalid="ignore"):
        values = patterns.astype(np.float64)
    kept = ~np.isnan(values) & ((values == 0) | (np.abs(values) >= float(info.smallest_normal)))
    return np.unique(values[kept] + 0.0)


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=lambda d: d.__name__)
def test_all_numbers_of_a_type(dtype):
    numbers = _in_order(dtype)
    up = np.asarray(nextafter(jnp.asarray(numbers.astype(dtype)))).astype(np.float64)
    down = np.asarray(prevbefore(jnp.asarray(numbers.astype(dtype)))).astype(np.float64)
    # (From minus infinity nothing leads back, nor from infinity.)
    inside = np.isfinite(numbers)
    assert np.array_equal(up[inside][:-1], numbers[inside][1:])
    assert np.array_equal(down[inside][1:], numbers[inside][:-1])
    assert up[-1] == numbers[-1]
    assert down[0] == numbers[0]
    if dtype not in WITHOUT_INFINITY:
        assert up[inside][-1] == np.inf


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.vmap])
def test_single_precision_numbers_agree_with_numpy(wrap):
    x = np.array([1, -1, 1e-30, 3e38, -2.5, 0.1], np.float32)
    assert np.array_equal(wrap(nextafter)(x), np.nextafter(x, np.float32(np.inf)))
    assert np.array_equal(wrap(prevbefore)(x), np.nextafter(x, np.float32(-np.inf)))


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=lambda d: d.__name__)
def test_numbers_that_are_special(dtype):
    info = jnp.finfo(dtype)
    tiny = float(info.smallest_normal)
    small = float(info.smallest_subnormal)
    big = float(info.max)
    given = [0.0, -0.0, small, -small, tiny, -tiny, np.inf, -np.inf, np.nan, big]
    x = jnp.asarray(np.array(given).astype(dtype))
    after = [tiny, tiny, tiny, tiny, None, 0, np.inf, -big, np.nan, np.inf]
    before = [-tiny, -tiny, -tiny, -tiny, 0, None, big, -np.inf, np.nan, None]
    for move, expected in ((nextafter, after), (prevbefore, before)):
        got = np.asarray(move(x)).astype(np.float64)
        for value, wanted in zip(got, expected, strict=True):
            assert wanted is None or np.array_equal(value, wanted, equal_nan=True)


def test_double_precision():
    with jax.enable_x64(True):
        x = np.array([1.0, -1e-300, 0.1])
        assert np.array_equal(nextafter(x), np.nextafter(x, np.inf))
        assert prevbefore(x).dtype == np.float64


@pytest.mark.parametrize("move", [nextafter, prevbefore])
def test_the_derivative_is_that_of_the_identity(move):
    assert jax.grad(move)(0.0) == 1
    assert jax.jvp(jax.jit(move), (2.0,), (3.0,))[1] == 3
    assert jax.grad(jax.grad(lambda x: move(x) ** 2))(2.0) == 2


@pytest.mark.parametrize("move", [nextafter, prevbefore])
def test_other_numbers_are_refused(move):
    with pytest.raises(ArgumentError, match=f"`{move.__name__}` needs floating.*int32"):
        move(np.arange(2, dtype=np.int32))
