"""Programs that users of MJX write: rollouts, domain randomisation, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError

pytest.importorskip("warp", reason="needs mujoco-mjx[warp]")

from mujoco import mjx

from tests.support.mjx import PENDULUM, assert_close, assert_same, warp_data

WORLDS = 4
STEPS = 5


@pytest.fixture(scope="module", autouse=True)
def lenient_promotion():
    """MJX relies on it."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


# -------------------------------------------------------------------------------------- a rollout


class Rollout(ec.Module):
    """What a user writes: a state with arrays, an object of MJX, a network and a string."""

    data: object
    policy: ec.nn.MLP
    name: str

    def step(self, model):
        action = self.policy(jnp.concatenate([self.data.qpos, self.data.qvel]))
        data = mjx.step(model, self.data.replace(ctrl=action))
        return ec.tree_at(lambda state: state.data, self, data)


@pytest.fixture(scope="module")
def policy():
    return ec.nn.MLP(2, 1, 8, 1, key=jax.random.key(0))


def rolled_out(model, data, policy, qpos, steps=STEPS):
    """The same by plain JAX, world after world in a batch."""
    arrays, static = ec.partition(policy, ec.is_array)

    def run(qpos):
        def advance(data, _):
            network = ec.combine(arrays, static)
            action = network(jnp.concatenate([data.qpos, data.qvel]))
            data = mjx.step(model, data.replace(ctrl=action))
            return data, data.qpos

        return jax.lax.scan(advance, data.replace(qpos=qpos), length=steps)[1]

    return jax.jit(jax.vmap(run))(qpos)


def starts():
    return jnp.linspace(-1.0, 1.0, WORLDS)[:, None]


@pytest.mark.parametrize("impl", ["warp", "jax"])
def test_a_rollout_with_a_policy_network_in_a_map_of_scans(impl, policy):
    model = mjx.put_model(PENDULUM, impl=impl)
    data = warp_data(PENDULUM) if impl == "warp" else mjx.make_data(PENDULUM, impl=impl)

    @ec.filter_jit
    @ec.filter_vmap(in_axes=(None, None, 0))
    def run(data, policy, qpos):
        def advance(state, _):
            state = state.step(model)
            return state, state.data.qpos

        state = Rollout(data.replace(qpos=qpos), policy, "pendulum")
        return ec.filter_scan(advance, state, length=STEPS)

    last, positions = run(data, policy, starts())
    assert last.name == "pendulum"
    assert last.policy.activation is policy.activation
    assert_close(positions, rolled_out(model, data, policy, starts()))


def test_a_rollout_with_a_policy_network_in_a_scan_of_maps(policy):
    model, data = mjx.put_model(PENDULUM, impl="warp"), warp_data(PENDULUM)

    def start(qpos):
        return Rollout(data.replace(qpos=qpos), policy, "pendulum")

    states = ec.filter_vmap(start)(starts())
    step = ec.filter_vmap(lambda state: state.step(model))

    def advance(state, _):
        state = step(state)
        return state, state.data.qpos

    last, positions = ec.filter_scan(advance, states, length=STEPS)
    assert last.name == "pendulum"
    assert_close(positions.swapaxes(0, 1), rolled_out(model, data, policy, starts()))


def test_an_ensemble_of_policies_times_worlds():
    model, data = mjx.put_model(PENDULUM, impl="warp"), warp_data(PENDULUM)

    def act(policy, qpos):
        state = Rollout(data.replace(qpos=qpos), policy, "pendulum")
        return state.step(model).data.qvel

    keys = jax.random.split(jax.random.key(1), 3)
    policies = ec.filter_vmap(lambda key: ec.nn.MLP(2, 1, 8, 1, key=key))(keys)
    every_start = ec.filter_vmap(act, in_axes=(None, 0))
    every_policy = ec.filter_vmap(every_start, in_axes=(ec.if_array(0), None))
    velocities = every_policy(policies, starts())
    assert velocities.shape == (3, WORLDS, 1)
    for i, key in enumerate(keys):
        policy = ec.nn.MLP(2, 1, 8, 1, key=key)
        for j, qpos in enumerate(starts()):
            np.testing.assert_allclose(velocities[i, j], act(policy, qpos), rtol=1e-4, atol=1e-5)


# -------------------------------------------------------------------------- domain randomisation


def masses_of(model):
    """A specification of a model whose masses alone are batched."""
    return jax.tree.map(lambda _: None, model).replace(body_mass=0)


@pytest.mark.parametrize("impl", ["warp", "jax"])
def test_a_batch_of_models_is_made_by_out_axes_and_used_by_in_axes(impl):
    model = mjx.put_model(PENDULUM, impl=impl)
    data = warp_data(PENDULUM) if impl == "warp" else mjx.make_data(PENDULUM, impl=impl)
    data = data.replace(ctrl=data.ctrl + 1.0)
    spec = masses_of(model)

    def randomise(key):
        scale = jax.random.uniform(key, (), minval=0.5, maxval=2.0)
        return model.replace(body_mass=model.body_mass * scale)

    keys = jax.random.split(jax.random.key(0), WORLDS)
    models = ec.filter_vmap(randomise, out_axes=spec)(keys)
    assert models.body_mass.shape == (WORLDS, model.nbody)
    assert models.body_pos.shape == model.body_pos.shape

    def advance(model, data):
        return mjx.step(model, data).qvel

    velocities = ec.filter_jit(ec.filter_vmap(advance, in_axes=(spec, None)))(models, data)
    by_jax = jax.jit(jax.vmap(advance, in_axes=(spec, None)))(models, data)
    assert_same(velocities, by_jax)
    assert len(set(velocities[:, 0].tolist())) == WORLDS


def test_a_model_that_is_batched_in_part_needs_a_specification():
    model = mjx.put_model(PENDULUM, impl="warp")
    models = model.replace(body_mass=jnp.tile(model.body_mass, (WORLDS, 1)))
    with pytest.raises(ArgumentError, match=r"`model\.\S+`"):
        ec.filter_vmap(lambda model: model.body_mass)(models)


# --------------------------------------------------------------------------------------- gradients


@pytest.fixture(scope="module")
def differentiable():
    # Forward mode and reverse mode both need a solver with a fixed number of iterations.
    return mjx.put_model(PENDULUM, impl="jax"), mjx.make_data(PENDULUM, impl="jax")


def height(state, model, steps=2):
    def advance(state, _):
        return state.step(model), None

    last, _ = ec.filter_scan(advance, state, length=steps)
    return jnp.sum(last.data.qpos**2 + 0.1 * last.data.qvel**2)


def test_gradients_of_a_policy_through_the_simulation(differentiable, policy):
    model, data = differentiable

    @ec.filter_jit
    @ec.filter_grad
    def gradient(policy, qpos):
        return height(Rollout(data.replace(qpos=qpos), policy, "pendulum"), model)

    qpos = starts()[0]
    grads = gradient(policy, qpos)

    arrays, static = ec.partition(policy, ec.is_inexact_array)

    @jax.jit
    @jax.grad
    def by_hand(arrays):
        network = ec.combine(arrays, static)
        state = data.replace(qpos=qpos)
        for _ in range(2):
            action = network(jnp.concatenate([state.qpos, state.qvel]))
            state = mjx.step(model, state.replace(ctrl=action))
        return jnp.sum(state.qpos**2 + 0.1 * state.qvel**2)

    expected = by_hand(arrays)
    assert grads.activation is None
    assert any(jnp.any(leaf != 0) for leaf in jax.tree.leaves(grads))
    assert_close(jax.tree.leaves(grads), jax.tree.leaves(expected))


def test_gradients_of_a_model_and_of_data(differentiable, policy):
    model, data = differentiable
    data = data.replace(qpos=starts()[0])

    @ec.filter_jit
    @ec.filter_grad
    def gradient(both):
        model, data = both
        return height(Rollout(data, policy, "pendulum"), model, steps=2)

    of_model, of_data = gradient((model, data))
    eps = 1e-2

    def at(shift):
        state = Rollout(data.replace(qpos=data.qpos + shift), policy, "pendulum")
        return ec.filter_jit(lambda state: height(state, model, steps=2))(state)

    slope = (at(eps) - at(-eps)) / (2 * eps)
    np.testing.assert_allclose(of_data.qpos[0], slope, rtol=1e-2)
    assert jnp.any(of_model.body_mass != 0)


def test_gradients_in_a_map_over_worlds(differentiable, policy):
    model, data = differentiable

    def loss(policy, qpos):
        return height(Rollout(data.replace(qpos=qpos), policy, "pendulum"), model, steps=1)

    each = ec.filter_jit(ec.filter_vmap(ec.filter_grad(loss), in_axes=(None, 0)))
    grads = each(policy, starts())
    assert grads.layers[0].weight.shape == (WORLDS, 8, 2)

    def mean(policy, qpos):
        return jnp.mean(ec.filter_vmap(loss, in_axes=(None, 0))(policy, qpos))

    whole = ec.filter_jit(ec.filter_grad(mean))(policy, starts())
    assert_close([jnp.mean(leaf, 0) for leaf in jax.tree.leaves(grads)], jax.tree.leaves(whole))


def test_forward_mode_through_the_simulation(differentiable, policy):
    model, data = differentiable

    def loss(qpos):
        return height(Rollout(data.replace(qpos=qpos), policy, "pendulum"), model, steps=2)

    qpos = starts()[0]
    _, slope = ec.filter_jit(ec.filter_jvp)(loss, (qpos,), (jnp.ones(1),))
    np.testing.assert_allclose(slope, ec.filter_jit(ec.filter_grad(loss))(qpos)[0], rtol=1e-4)
