"""The references do the work that they stand for."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bench import _models, asynchrony, jit, training


def test_the_flat_model_has_a_weight_and_a_bias_a_layer():
    shapes = [array.shape for array in _models.flat_mlp(2, 5)]
    assert shapes == [(5, 5), (5,)] * 3


def test_the_flat_model_computes_a_multilayer_perceptron():
    arrays = [array + 0.25 for array in _models.flat_mlp(2, 5)]
    x = jax.random.normal(jax.random.key(3), (7, 5))
    w0, b0, w1, b1, w2, b2 = (np.asarray(array, np.float64) for array in arrays)
    first = np.maximum(np.asarray(x) @ w0.T + b0, 0)
    second = np.maximum(first @ w1.T + b1, 0)
    np.testing.assert_allclose(_models.flat_forward(arrays, x), second @ w2.T + b2, rtol=1e-5)


def test_the_training_reference_lowers_its_loss(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(training, "Timed", lambda thunk: thunk)
    # optax mixes dtypes in Adam, which the strict flags of the tests refuse
    monkeypatch.setattr(training, "OPTIMISER", optax.sgd(1e-2, momentum=0.9))
    advance = training._flat(8)
    losses = [advance() for _ in range(20)]
    assert losses[-1] < losses[0]


def test_the_compiled_references_return_what_they_say():
    arrays = _models.flat_mlp(1, 8)
    assert jit._scalar_of_list(arrays).shape == ()
    assert jit._whole(arrays) is arrays
    doubled = jit._doubled([arrays[0], "not an array"])
    assert jnp.array_equal(doubled[0], 2 * arrays[0])
    assert doubled[1] == "not an array"


def test_the_long_program_does_as_many_rounds_as_it_is_told():
    model = {"matrix": jnp.eye(2), "scale": asynchrony._scale}
    assert jnp.array_equal(asynchrony._work(model, jnp.int32(3)), jnp.eye(2) / 8)


def test_calls_get_different_models_with_equal_arrays():
    seen: list[list[jax.Array]] = []
    clock = jit._clock(seen.append, jit._pair([jnp.ones(2)]), None)
    clock.sample()
    first, second = seen
    assert first[0] is not second[0]
    assert jnp.array_equal(first[0], second[0])
