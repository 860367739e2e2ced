"""`BatchNorm` and `SpectralNorm` compared with PyTorch's layers of the same names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from ecliptic import nn
from ecliptic.tree import tree_at

BATCHES = np.random.default_rng(0).normal(1, 3, (4, 8, 3, 2)).astype(np.float32)
COTANGENT = np.random.default_rng(1).normal(size=BATCHES.shape[1:]).astype(np.float32)
PER_CHANNEL = BATCHES.shape[1] * BATCHES.shape[3]


def ours(momentum, affine):
    norm, state = nn.make_with_state(nn.BatchNorm)(
        3, "batch", momentum=1 - momentum, channelwise_affine=affine, mode="batch"
    )
    if affine:
        where = lambda norm: (norm.weight, norm.bias)
        norm = tree_at(where, norm, (jnp.array([0.5, 1, 2]), jnp.array([1.0, 0, -1])))
    return norm, state


def theirs(momentum, affine):
    norm = torch.nn.BatchNorm1d(3, momentum=momentum, affine=affine)
    if affine:
        norm.weight.data = torch.tensor([0.5, 1, 2])
        norm.bias.data = torch.tensor([1.0, 0, -1])
    return norm


def call(norm, x, state):
    return jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)


@pytest.mark.parametrize("momentum", [0.1, 0.5])
@pytest.mark.parametrize("affine", [True, False])
def test_training_agrees_in_outputs_and_gradients(momentum, affine):
    (norm, state), other = ours(momentum, affine), theirs(momentum, affine)

    @jax.jit
    def step(x, state):
        y, pull, state = jax.vjp(lambda x: call(norm, x, state), x, has_aux=True)
        return y, pull(COTANGENT)[0], state

    for batch in BATCHES:
        y, slope, state = step(batch, state)
        x = torch.tensor(batch, requires_grad=True)
        expected = other(x)
        expected.backward(torch.tensor(COTANGENT))
        np.testing.assert_allclose(y, expected.detach(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(slope, x.grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("momentum", [0.1, 0.5])
def test_the_running_averages_agree_but_for_the_bias_of_the_variance(momentum):
    (norm, state), other = ours(momentum, False), theirs(momentum, False)
    for batch in BATCHES:
        _, state = call(norm, batch, state)
        other(torch.tensor(batch))
    mean, variance = state.get(norm.batch_state_index)
    np.testing.assert_allclose(mean, other.running_mean, rtol=1e-5)
    # Both start at 1, which is no estimate and has no bias.
    started = (1 - momentum) ** len(BATCHES)
    unbiased = (variance - started) * PER_CHANNEL / (PER_CHANNEL - 1) + started
    np.testing.assert_allclose(unbiased, other.running_var, rtol=1e-5)


def test_inference_agrees_with_the_averages_of_a_pretrained_layer():
    (norm, state), other = ours(0.1, True), theirs(0.1, True)
    for batch in BATCHES:
        other(torch.tensor(batch))
    averages = jnp.asarray(other.running_mean.numpy()), jnp.asarray(other.running_var.numpy())
    state = state.set(norm.batch_state_index, averages).set(norm.batch_counter, 10**6)
    y, _ = call(nn.inference_mode(norm), BATCHES[0], state)
    expected = other.eval()(torch.tensor(BATCHES[0])).detach()
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_inference_before_training_agrees():
    (norm, state), other = ours(0.1, True), theirs(0.1, True)
    y, _ = call(nn.inference_mode(norm), BATCHES[0], state)
    expected = other.eval()(torch.tensor(BATCHES[0])).detach()
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_the_spectral_norm_of_a_matrix_is_that_of_pytorch():
    linear = nn.Linear(4, 3, key=jax.random.key(0))
    layer, state = nn.make_with_state(nn.SpectralNorm)(linear, "weight", 30, key=jax.random.key(1))
    other = torch.nn.Linear(4, 3)
    other.weight.data = torch.tensor(np.asarray(linear.weight))
    other.bias.data = torch.tensor(np.asarray(linear.bias))
    other = torch.nn.utils.parametrizations.spectral_norm(other, n_power_iterations=30)
    x = np.arange(4, dtype=np.float32)
    y, _ = layer(x, state)
    np.testing.assert_allclose(y, other(torch.tensor(x)).detach(), rtol=1e-4, atol=1e-5)
