"""`SpectralNorm`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.errors import LayerArgumentError
from ecliptic.transform import filter_jit
from ecliptic.tree import tree_at

KEY, X = jax.random.key(1), jnp.arange(3.0)


def make(steps=1, library=nn, layer=None, name="weight"):
    layer = library.Linear(3, 2, key=jax.random.key(0)) if layer is None else layer
    return library.make_with_state(library.SpectralNorm)(layer, name, steps, key=KEY)


def normalised(layer, state):
    """The weight that the layer is called with, column by column."""
    layer = tree_at(lambda layer: layer.layer.bias, layer, jnp.zeros(2))
    call = filter_jit(lambda x: layer(x, state, inference=True)[0])
    return jnp.stack([call(x) for x in jnp.eye(3)], axis=1)


def test_the_largest_singular_value_is_one():
    layer, state = make(20)
    _, state = layer(X, state)
    values = jnp.linalg.svd(normalised(layer, state), compute_uv=False)
    np.testing.assert_allclose(values[0], 1, rtol=1e-5)
    assert values[1] < 1


def test_the_vectors_follow_a_weight_that_changes():
    layer, state = make()
    layer = tree_at(lambda layer: layer.layer.weight, layer, jnp.array([[0, 1, 0], [4, 0, 0.0]]))
    for _ in range(20):
        _, state = layer(X, state)
    np.testing.assert_allclose(
        normalised(layer, state), [[0, 0.25, 0], [1, 0, 0]], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("steps", [1, 3])
def test_outputs_states_and_gradients_are_those_of_equinox(steps):
    import equinox

    results = []
    for library in (nn, equinox.nn):
        layer, state = make(steps, library)
        where = lambda layer: layer.layer.weight

        @jax.jit
        def run(weight, layer=layer, state=state, where=where):
            def loss(weight):
                y, after = tree_at(where, layer, weight)(X, jax.tree.map(lambda x: x, state))
                return jnp.sum(y**2), (y, after)

            return jax.value_and_grad(loss, has_aux=True)(weight)

        weight = layer.layer.weight + jnp.array([[1.0, 0, 0], [0, 0, 0.5]])
        results.append((layer.uv_index.init, state, run(weight)))
    for one, other in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_in_inference_the_state_stays():
    layer, state = make()
    y, after = nn.inference_mode(layer)(X, state)
    assert after is state
    z, after = layer(X, state, inference=True)
    assert after is state
    np.testing.assert_array_equal(y, z)


def test_the_mode_may_be_traced():
    layer, state = make()

    @jax.jit
    def run(state, inference):
        return tree_at(lambda layer: layer.inference, layer, inference)(X, state)[1]

    before, (u, _) = state.get(layer.uv_index)[0], run(state, True).get(layer.uv_index)
    np.testing.assert_array_equal(u, before)
    changed, _ = run(state, False).get(layer.uv_index)
    assert not np.array_equal(changed, before)


def test_no_gradient_flows_through_the_iteration():
    layer, state = make()
    gradient = jax.grad(
        lambda weight: jnp.sum(
            tree_at(lambda layer: layer.layer.weight, layer, weight)(
                X, jax.tree.map(lambda x: x, state)
            )[1].get(layer.uv_index)[0]
        )
    )(layer.layer.weight)
    np.testing.assert_array_equal(gradient, jnp.zeros((2, 3)))


def test_axes_after_the_first_count_as_one():
    layer, state = make(layer=nn.Conv1d(2, 3, 2, key=KEY))
    assert [leaf.shape for leaf in state.get(layer.uv_index)] == [(3,), (4,)]
    assert layer(jnp.ones((2, 5)), state)[0].shape == (3, 4)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.complex64])
def test_other_dtypes(dtype):
    layer, state = make(10, layer=nn.Linear(3, 2, dtype=dtype, key=KEY))
    y, state = layer(X.astype(dtype), state)
    assert y.dtype == dtype
    wide = jnp.float32 if dtype == jnp.bfloat16 else dtype
    assert {leaf.dtype for leaf in jax.tree.leaves(state)} == {jnp.dtype(wide)}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bias", r"`Linear.bias` has shape \(2,\): the weight must be at least two-dimensional"),
        ("other", "weight_name='other', but `Linear.other` is no array of floating-point numbers"),
        ("in_features", "`Linear.in_features` is no array of floating-point numbers: it is 3"),
    ],
)
def test_what_is_no_matrix_is_refused(name, message):
    with pytest.raises(LayerArgumentError, match=message):
        make(name=name)


def test_the_number_of_steps_is_a_size():
    with pytest.raises(LayerArgumentError, match="num_power_iterations=-1"):
        make(-1)
