"""`PReLU`."""

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.errors import LayerArgumentError, ShapeError


@pytest.mark.parametrize("alpha", [0.25, jnp.array([0.1, -2.0, 1.0])])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.complex64])
def test_outputs_and_gradients_are_those_of_equinox(getkey, alpha, dtype):
    x = jax.random.normal(getkey(), (2, 3), dtype)
    x = x.at[0, 0].set(0)
    results = []
    for lib in (nn, equinox.nn):
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            layer = lib.PReLU(alpha)
            loss = lambda layer, x: jnp.sum(jnp.abs(layer(x)) ** 2)
            results += [[layer(x), *jax.tree.leaves(jax.grad(loss, (0, 1))(layer, x))]]
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_the_slope_is_one_of_a_strong_type_so_that_training_does_not_trace_again():
    assert not nn.PReLU().negative_slope.weak_type
    assert nn.PReLU().negative_slope.dtype == nn.PReLU(1).negative_slope.dtype == jnp.float32


def test_no_slope_is_the_default_slope():
    assert nn.PReLU(None).negative_slope == nn.PReLU().negative_slope == 0.25


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_half_precision_is_preserved_whatever_the_slope(dtype):
    assert nn.PReLU()(jnp.ones(3, dtype)).dtype == dtype
    assert nn.PReLU(dtype=dtype).negative_slope.dtype == dtype


def test_integers_give_floating_numbers():
    np.testing.assert_array_equal(nn.PReLU()(jnp.array([-4, 4])), jnp.array([-1.0, 4.0]))


def test_channels_that_come_first_have_slopes_with_axes_behind():
    x = -jnp.ones((2, 3, 3))
    y = nn.PReLU(jnp.array([1.0, 2.0])[:, None, None])(x)
    np.testing.assert_array_equal(y, x * jnp.array([1.0, 2.0])[:, None, None])


@pytest.mark.parametrize("shape", [(), (2,), (3, 2)])
def test_slopes_that_do_not_fit_are_refused(shape):
    with pytest.raises(ShapeError, match=r"slopes of shape \(3,\).*got x of shape .*channels"):
        nn.PReLU(jnp.ones(3))(jnp.ones(shape))


def test_a_dtype_without_fractions_is_refused():
    with pytest.raises(LayerArgumentError, match="`PReLU` got dtype="):
        nn.PReLU(dtype=int)
