"""`Dropout`."""

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.errors import EclipticWarning, LayerArgumentError, MissingKeyError

X = jnp.arange(1.0, 101.0)


@pytest.mark.parametrize("p", [0.1, 0.25, 0.3, 0.5, 0.77, 0.9, 1.0])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_outputs_are_those_of_equinox(getkey, p, dtype):
    key, x = getkey(), X.astype(dtype)
    ours = nn.Dropout(p)(x, key=key)
    assert ours.dtype == dtype
    np.testing.assert_array_equal(ours, equinox.nn.Dropout(p)(x, key=key))


def test_elements_are_dropped_or_scaled(getkey):
    y = nn.Dropout(0.75)(X, key=getkey())
    kept = y != 0
    assert 10 < int(kept.sum()) < 40
    np.testing.assert_allclose(y[kept], 4 * X[kept], rtol=1e-6)


def test_both_fields_are_leaves():
    assert jax.tree.leaves(nn.Dropout(0.25, inference=True)) == [0.25, True]


def test_inference_returns_the_input():
    assert nn.Dropout(inference=True)(X) is X
    assert nn.Dropout()(X, inference=True) is X
    assert nn.Dropout(0)(X) is X
    assert nn.Dropout(0.0)(X) is X


def test_the_argument_replaces_the_field(getkey):
    assert nn.Dropout(inference=True)(X, key=getkey(), inference=False) is not X


@pytest.mark.parametrize("options", [{}, {"inference": False}])
def test_a_missing_key_is_said_to_be_missing(options):
    with pytest.raises(MissingKeyError, match="`Dropout` requires a key .*inference_mode"):
        nn.Dropout(inference=bool(options))(X, **options)


def test_a_missing_key_is_a_runtime_error():
    with pytest.raises(RuntimeError):
        nn.Dropout()(X)


@pytest.mark.parametrize("p", [-0.1, 1.5, 2])
def test_what_is_no_probability_is_refused(p):
    with pytest.raises(LayerArgumentError, match=rf"`Dropout` got p={p}, but .* between 0 and 1"):
        nn.Dropout(p)


def test_the_old_name_in_the_constructor_warns():
    with pytest.warns(EclipticWarning, match=r"`Dropout\(deterministic=\.\.\.\)` is deprecated"):
        layer = nn.Dropout(deterministic=True)
    assert layer.inference is True
    assert layer.deterministic is True


def test_the_old_name_in_a_call_warns():
    with pytest.warns(EclipticWarning, match=r"`Dropout\(\)\(deterministic=\.\.\.\)` is deprecat"):
        assert nn.Dropout()(X, deterministic=True) is X


def test_a_traced_flag_chooses_at_run_time(getkey):
    key = getkey()
    call = jax.jit(lambda flag: nn.Dropout()(X, key=key, inference=flag))
    np.testing.assert_array_equal(call(True), X)
    np.testing.assert_array_equal(call(False), nn.Dropout()(X, key=key))


def test_a_probability_may_be_an_array_of_another_dtype(getkey):
    x, key = X.astype(jnp.bfloat16), getkey()
    y = nn.Dropout(jnp.asarray(0.5, jnp.float32))(x, key=key)
    np.testing.assert_array_equal(y, nn.Dropout(0.5)(x, key=key))


@pytest.mark.parametrize("p", [1, 1.0])
def test_with_probability_one_nothing_is_left(getkey, p):
    np.testing.assert_array_equal(nn.Dropout(p)(X, key=getkey()), jnp.zeros_like(X))


def test_gradients_are_finite_when_everything_is_dropped(getkey):
    gradient = jax.grad(lambda x: nn.Dropout(1.0)(x, key=getkey()).sum())(X)
    np.testing.assert_array_equal(gradient, jnp.zeros_like(X))
