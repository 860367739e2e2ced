"""`Embedding`."""

import dataclasses

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.errors import LayerArgumentError, ShapeError


@pytest.mark.parametrize("dtype", [None, jnp.bfloat16, jnp.complex64])
def test_vectors_are_those_of_equinox(getkey, dtype):
    key = getkey()
    ours, theirs = (lib.Embedding(5, 3, dtype=dtype, key=key) for lib in (nn, equinox.nn))
    assert ours.weight.dtype == theirs.weight.dtype
    np.testing.assert_array_equal(ours.weight, theirs.weight)


@pytest.mark.parametrize("index", [0, 4, -1, -5, 9, -9])
def test_an_array_is_looked_up_as_by_equinox(getkey, index):
    key, index = getkey(), jnp.asarray(index)
    ours, theirs = (lib.Embedding(5, 3, key=key) for lib in (nn, equinox.nn))
    np.testing.assert_array_equal(ours(index), theirs(index))
    np.testing.assert_array_equal(jax.vmap(ours)(index[None]), jax.vmap(theirs)(index[None]))


@pytest.mark.parametrize("index", [1, np.int8(1), np.array(1), jnp.array(1, jnp.uint8), -4])
def test_every_kind_of_integer_is_an_index(getkey, index):
    layer = nn.Embedding(5, 3, key=getkey())
    np.testing.assert_array_equal(layer(index), layer.weight[1])


def test_the_gradient_goes_to_the_row_that_was_looked_up(getkey):
    gradient = jax.grad(lambda layer: jnp.sum(layer(jnp.asarray(2))))(
        nn.Embedding(4, 3, key=getkey())
    )
    np.testing.assert_array_equal(gradient.weight, jnp.zeros((4, 3)).at[2].set(1))


def test_fields_are_in_order():
    assert [f.name for f in dataclasses.fields(nn.Embedding)] == [
        "num_embeddings",
        "embedding_size",
        "weight",
    ]


def test_vectors_can_be_given():
    layer = nn.Embedding(weight=np.ones((2, 3), np.float32))
    assert (layer.num_embeddings, layer.embedding_size) == (2, 3)
    assert isinstance(layer.weight, jax.Array)
    assert nn.Embedding(weight=layer.weight, dtype=jnp.bfloat16).weight.dtype == jnp.bfloat16


@pytest.mark.parametrize("options", [{}, {"num_embeddings": 3, "embedding_size": 2}])
def test_what_is_missing_to_draw_vectors_is_said(options):
    with pytest.raises(LayerArgumentError, match="`Embedding` got num_embeddings=.*no key"):
        nn.Embedding(**options)


@pytest.mark.parametrize(
    "options", [{"weight": jnp.ones(3)}, {"weight": jnp.ones((2, 3)), "num_embeddings": 3}]
)
def test_a_weight_of_another_shape_is_refused(options):
    with pytest.raises(ShapeError, match="weight of shape .*must have shape"):
        nn.Embedding(**options)


def test_several_indices_are_refused_with_advice(getkey):
    with pytest.raises(ShapeError, match=r"scalar index x; got x of shape \(2,\).*`jax\.vmap"):
        nn.Embedding(5, 3, key=getkey())(jnp.array([1, 2]))


@pytest.mark.parametrize("index", [True, 1.5, jnp.array(1.0)])
def test_what_is_no_integer_is_refused(getkey, index):
    with pytest.raises(LayerArgumentError, match="index of dtype .*an index is an integer"):
        nn.Embedding(5, 3, key=getkey())(index)


@pytest.mark.parametrize("index", [5, np.int64(-6)])
def test_an_index_out_of_range_is_refused_where_it_is_known(getkey, index):
    with pytest.raises(LayerArgumentError, match=r"got the index .*at least -5 and less than 5"):
        nn.Embedding(5, 3, key=getkey())(index)
