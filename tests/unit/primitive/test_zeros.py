"""Zeros in place of `None`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import _jax
from ecliptic.primitive import materialise_zeros

FLOAT0 = jax.dtypes.float0


@pytest.mark.parametrize(
    ("primal", "dtype"),
    [
        (jnp.ones(2), np.float32), (np.ones(2, np.float16), np.float16), (1.5, np.float32),
        (jnp.ones(2, jnp.complex64), np.complex64), (jnp.arange(2), FLOAT0), (True, FLOAT0),
        (jax.random.key(0), FLOAT0),
    ],
)  # fmt: skip
def test_zeros_have_the_dtype_of_tangents(primal, dtype):
    zeros = materialise_zeros(primal, None)
    assert zeros.dtype == dtype
    assert zeros.shape == jnp.shape(primal)
    assert dtype == FLOAT0 or not np.any(zeros)


def test_a_tangent_stays():
    tangent = jnp.ones(2)
    assert materialise_zeros(tangent, tangent) is tangent


def test_a_zero_of_jax_becomes_an_array():
    x = jnp.ones(2)
    zeros = materialise_zeros(x, _jax.Zero(jax.typeof(x)))
    assert np.array_equal(zeros, [0, 0])


@pytest.mark.parametrize("leaf", ["a", None, jnp.sin, jax.ShapeDtypeStruct((2,), jnp.float32)])
def test_what_is_no_array_has_no_tangent(leaf):
    assert materialise_zeros(leaf, None) is None


@pytest.mark.parametrize(
    "aval", [jax.ShapeDtypeStruct((2,), jnp.float32), jax.typeof(np.ones(2, np.float32))]
)
def test_descriptions_can_be_allowed(aval):
    assert np.array_equal(materialise_zeros(aval, None, allow_struct=True), [0, 0])
