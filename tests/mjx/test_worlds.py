"""Worlds of MJX's warp implementation, mapped. Kernels compile for a minute the first time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError

pytest.importorskip("warp", reason="needs mujoco-mjx[warp]")

from mujoco import mjx

from tests.support.mjx import BALL, DataWarp, assert_same, per_world, warp_data

WORLDS = 4


@pytest.fixture(scope="module")
def ball():
    return mjx.put_model(BALL, impl="warp")


@pytest.fixture(scope="module")
def make_state(ball):
    def make_state(i):
        data = warp_data(BALL)
        return mjx.forward(ball, data.replace(qvel=data.qvel.at[0].set(1.0 * i)))

    return make_state


@pytest.fixture(scope="module")
def worlds(make_state):
    return jax.vmap(make_state)(jnp.arange(4.0))


@pytest.fixture(scope="module")
def step(ball):
    return lambda data: mjx.step(ball, data)


@pytest.fixture(scope="module")
def expected(step, worlds):
    return jax.vmap(step)(worlds)


# --------------------------------------------------------------------------- the founding program


def test_worlds_are_made(make_state, worlds):
    made = ec.filter_vmap(make_state)(jnp.arange(4.0))
    assert made.qpos.shape == (WORLDS, 7)
    assert made._impl.contact__dist.shape == (100,)
    assert_same(made, worlds)


def options(worlds):
    """Every way to say that all worlds are mapped; the first is the founding program's."""
    spec = per_world(worlds)
    return {
        "a specification with is_leaf by hand": {"in_axes": (spec,), "out_axes": spec},
        "default axes": {},
        "without is_leaf": {"in_axes": jax.tree.map(lambda _: 0, (worlds,))},
        "ints": {"in_axes": 0, "out_axes": 0},
        "if_array": {"in_axes": (ec.if_array(0),), "out_axes": ec.if_array(0)},
        "is_leaf as an option": {"is_leaf": lambda x: isinstance(x, DataWarp)},
    }


@pytest.mark.parametrize(
    "way",
    [
        "a specification with is_leaf by hand",
        "default axes",
        "without is_leaf",
        "ints",
        "if_array",
        "is_leaf as an option",
    ],
)
def test_four_worlds_take_a_step(way, worlds, step, expected):
    out = ec.filter_vmap(step, **options(worlds)[way])(worlds)
    assert out._impl.contact__dist.shape == (100,)
    assert_same(out, expected)


def test_the_worlds_differ_and_move(worlds, expected):
    assert len(set(expected.qpos[:, 0].tolist())) == WORLDS
    assert (expected.qpos[:, 2] < worlds.qpos[:, 2]).all()


def test_compiled(worlds, step):
    spec = per_world(worlds)
    out = ec.filter_jit(ec.filter_vmap(step, in_axes=(spec,), out_axes=spec))(worlds)
    assert_same(out, jax.jit(jax.vmap(step))(worlds))


def test_an_axis_specification_of_jax_serves_both(worlds, step, expected):
    spec = per_world(worlds)
    assert_same(jax.vmap(step, in_axes=(spec,), out_axes=spec)(worlds), expected)


def test_each_world_is_what_a_loop_makes_of_it(make_state, step, expected):
    for i in range(WORLDS):
        alone = step(make_state(jnp.float32(i)))
        np.testing.assert_allclose(alone.qpos, expected.qpos[i], rtol=1e-5, atol=1e-6)


def test_one_world_serves_all_elements(ball, make_state):
    start = make_state(0.0)

    def push(data, velocity):
        return mjx.step(ball, data.replace(qvel=data.qvel.at[0].set(velocity)))

    velocities = jnp.arange(4.0)
    out = ec.filter_vmap(push, in_axes=(None, 0))(start, velocities)
    assert_same(out, jax.vmap(push, in_axes=(None, 0))(start, velocities))


def test_nested(make_state, step):
    grid = jnp.arange(6.0).reshape(2, 3)
    worlds = ec.filter_vmap(ec.filter_vmap(make_state))(grid)
    out = ec.filter_vmap(ec.filter_vmap(step))(worlds)
    assert out.qpos.shape == (2, 3, 7)
    assert_same(out, jax.vmap(jax.vmap(step))(worlds))


def test_many_steps_are_one_scan(worlds, step):
    def advance(data, _):
        data = ec.filter_vmap(step)(data)
        return data, data.qpos

    def advance_by_hand(data, _):
        data = jax.vmap(step)(data)
        return data, data.qpos

    out, heights = ec.filter_scan(advance, worlds, length=10)
    expected, expected_heights = jax.jit(
        lambda data: jax.lax.scan(advance_by_hand, data, length=10)
    )(worlds)
    assert_same(heights, expected_heights)
    assert_same(out, expected)


def test_a_reset_by_a_plain_where_is_refused_and_by_the_owners_is_done(worlds):
    done = jnp.arange(4) > 1

    def plain(data, done):
        return jax.tree.map(lambda x: jnp.where(done, jnp.zeros_like(x), x), data)

    with pytest.raises(ArgumentError, match=r"At `out\._impl`.*`Data\.where`"):
        ec.filter_vmap(plain)(worlds, done)

    def owners(data, start, done):
        return data.where(done, start)

    start = jax.tree.map(lambda x: x, worlds).replace(time=worlds.time + 9)
    out = ec.filter_vmap(owners)(worlds, start, done)
    assert out.time.tolist() == jnp.where(done, start.time, worlds.time).tolist()
    assert out._impl.contact__dist.shape == (100,)
