"""`RotaryPositionalEmbedding`."""

import dataclasses

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.errors import LayerArgumentError, ShapeError

Rope = nn.RotaryPositionalEmbedding


@pytest.mark.parametrize(("size", "length", "theta"), [(2, 1, 10_000.0), (6, 7, 100), (4, 0, 10.0)])
def test_outputs_and_gradients_are_those_of_equinox(getkey, size, length, theta):
    x = jax.random.normal(getkey(), (length, size))
    results = []
    for lib in (nn, equinox.nn):
        layer = lib.RotaryPositionalEmbedding(size, theta)
        gradient = jax.grad(lambda x, layer: jnp.sum(jnp.sin(layer(x))))(x, layer)
        results.append((layer(x), gradient))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_a_product_depends_on_the_distance_alone(getkey):
    q, k = jax.random.normal(getkey(), (2, 4))
    turned = [Rope(4)(jnp.tile(x, (9, 1))) for x in (q, k)]
    products = [turned[0][i + 3] @ turned[1][i] for i in range(6)]
    np.testing.assert_allclose(products, [products[0]] * 6, rtol=1e-4)


def test_angles_of_late_positions_are_exact():
    cosines, _ = Rope.precompute_freqs_cis(2, 100_000, 10_000.0, jnp.float32)
    np.testing.assert_allclose(cosines[:, 0], np.cos(np.arange(100_000)), atol=1e-7)


@pytest.mark.parametrize("size", [3, 4])
def test_tables_are_those_of_equinox(size):
    arguments = (size, 5, 10_000.0, jnp.float32)
    theirs = equinox.nn.RotaryPositionalEmbedding.precompute_freqs_cis(*arguments)
    for one, other in zip(Rope.precompute_freqs_cis(*arguments), theirs, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4)])
def test_half_a_turn_is_two_quarters(getkey, shape):
    x = jax.random.normal(getkey(), shape)
    once = Rope.rotate_half(x)
    np.testing.assert_array_equal(once, equinox.nn.RotaryPositionalEmbedding.rotate_half(x))
    np.testing.assert_array_equal(Rope.rotate_half(once), -x)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
@pytest.mark.parametrize("tables", [None, jnp.bfloat16])
def test_the_dtype_of_the_input_is_preserved(dtype, tables):
    assert Rope(4, dtype=tables)(jnp.ones((3, 4), dtype)).dtype == dtype


def test_all_fields_are_static_and_equal_layers_are_equal():
    fields = dataclasses.fields(Rope)
    assert [(f.name, bool(f.metadata.get("static"))) for f in fields] == [
        ("embedding_size", True),
        ("theta", True),
        ("dtype", True),
    ]
    assert jax.tree.structure(Rope(4)) == jax.tree.structure(Rope(4, 10_000, "float32"))


@pytest.mark.parametrize("shape", [(4,), (3, 6)])
def test_a_sequence_of_another_size_is_refused(shape):
    with pytest.raises(ShapeError, match=r"embedding_size=4 .*\(seq_length, 4\); got x of shape"):
        Rope(4)(jnp.ones(shape))


def test_a_batch_is_refused_with_advice():
    with pytest.raises(ShapeError, match=r"got x of shape \(2, 3, 4\).* did you mean `jax\.vmap"):
        Rope(4)(jnp.ones((2, 3, 4)))


def test_an_odd_size_is_refused():
    with pytest.raises(LayerArgumentError, match="embedding_size=3.*the size must be even"):
        Rope(3)


def test_what_is_no_size_is_refused():
    with pytest.raises(LayerArgumentError, match="got embedding_size=-2, but a size is"):
        Rope(-2)
