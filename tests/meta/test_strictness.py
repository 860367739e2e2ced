"""The tests run under the strict JAX that `conftest.py` promises."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def test_mixed_dtypes_are_refused():
    with pytest.raises(ValueError, match="promotion"):
        jnp.ones(2, jnp.float32) + jnp.ones(2, jnp.int32)


def test_mixed_ranks_are_refused():
    with pytest.raises(ValueError, match="rank_promotion"):
        jnp.ones((2, 2)) + jnp.ones(2)


def test_there_are_four_cpu_devices():
    assert [d.platform for d in jax.devices()] == ["cpu"] * 4


def test_a_warning_is_an_error():
    with pytest.raises(UserWarning, match="an example"):
        warnings.warn("an example", stacklevel=1)


def test_keys_of_one_test_differ(getkey):
    first, second = (jax.random.key_data(getkey()) for _ in range(2))
    assert not np.array_equal(first, second)
