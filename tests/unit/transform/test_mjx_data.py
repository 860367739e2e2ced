"""`filter_vmap` and `filter_scan` of MJX's `DataWarp`: a real class of another library."""

import re

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError

support = pytest.importorskip("tests.support.mjx", reason="needs mujoco-mjx")
CONTACTS, SIZE, DataWarp = support.CONTACTS, support.SIZE, support.DataWarp

WORLDS = 4


@pytest.fixture
def data():
    return support.hand_made_data(WORLDS)


def advance(data, by=1.0):
    """Changes a field of `Data`, and one of the `DataWarp` inside."""
    impl = data._impl.replace(cacc=data._impl.cacc + by)
    return data.replace(time=data.time + by, _impl=impl)


def assert_batched(data, *batch):
    """Every field has the axes that it should have, and unbatched ones their values."""
    assert type(data._impl) is DataWarp
    assert data.time.shape == batch
    assert data._impl.cacc.shape == (*batch, 3, 2)
    assert data._impl.contact__dist.tolist() == list(range(CONTACTS))
    assert data._impl.naconmax == SIZE


SPECS = {
    "default": lambda data: {},
    "ints": lambda data: {"in_axes": 0, "out_axes": 0},
    "a tuple": lambda data: {"in_axes": (0,), "out_axes": 0},
    "if_array": lambda data: {"in_axes": (ec.if_array(0),), "out_axes": ec.if_array(0)},
    "as users write it": lambda data: {
        "in_axes": (support.per_world(data),),
        "out_axes": support.per_world(data),
    },
    "below the object": lambda data: {"in_axes": jax.tree.map(lambda _: 0, (data,))},
    "by name": lambda data: {"in_axes": {"data": support.per_world(data)}},
    "with is_leaf": lambda data: {"is_leaf": lambda x: isinstance(x, DataWarp)},
}


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_batch_of_worlds_goes_in_and_out(data, spec, jit):
    mapped = ec.filter_vmap(advance, **spec(data))
    out = (ec.filter_jit(mapped) if jit else mapped)(data)
    assert_batched(out, WORLDS)
    assert ec.tree_equal(out, jax.vmap(advance)(data))


def test_each_world_is_what_a_loop_would_make_of_it(data):
    out = ec.filter_vmap(advance)(data, jnp.arange(4.0))
    for world in range(WORLDS):
        assert (out.time[world], out._impl.cacc[world, 0, 0]) == (world, world)


def test_the_function_sees_one_world(data):
    seen = []
    ec.filter_vmap(lambda data: seen.append((data.time.shape, data._impl.cacc.shape)))(data)
    assert seen == [((), (3, 2))]


def test_worlds_are_made_from_nothing():
    one = support.hand_made_data()
    out = ec.filter_vmap(lambda i: advance(one, i))(jnp.arange(4.0))
    assert_batched(out, WORLDS)
    assert out.time.tolist() == [0, 1, 2, 3]
    # Nothing else depends on the world: it is repeated, as `jax.vmap` does it.
    assert ec.tree_equal(out, jax.vmap(lambda i: advance(one, i))(jnp.arange(4.0)))
    assert out._impl.actuator_moment.shape == (WORLDS, 3, 2)


@pytest.mark.parametrize("in_axes", [(None, 0), {"data": None}, (lambda leaf: None, 0)])
def test_one_world_serves_all_elements(in_axes):
    one = support.hand_made_data()
    out = ec.filter_vmap(advance, in_axes=in_axes)(one, jnp.arange(4.0))
    assert_batched(out, WORLDS)
    both = ec.filter_vmap(lambda data, by: (data, by), in_axes=in_axes, out_axes=(None, 0))
    assert_batched(both(one, jnp.arange(4.0))[0])


class Environment(ec.Module):
    data: object
    name: str
    reward: object = jnp.square

    def step(self, by):
        return ec.tree_at(lambda env: env.data, self, advance(self.data, by))


@pytest.mark.parametrize("by_name", [False, True], ids=["default", "spec"])
def test_worlds_are_a_field_of_a_module_with_a_string(data, by_name):
    environment = Environment(data, "ball")
    spec = Environment(support.per_world(data), None, None)
    options = {"in_axes": (spec, 0), "out_axes": spec} if by_name else {}
    out = ec.filter_vmap(Environment.step, **options)(environment, jnp.arange(4.0))
    assert_batched(out.data, WORLDS)
    assert (out.name, out.reward) == ("ball", jnp.square)
    out = ec.filter_jit(ec.filter_vmap(Environment.step))(environment, jnp.arange(4.0))
    assert_batched(out.data, WORLDS)


def test_nested():
    data = support.hand_made_data(2, 3)
    by = jnp.arange(6.0).reshape(2, 3)
    out = ec.filter_vmap(ec.filter_vmap(advance))(data, by)
    assert_batched(out, 2, 3)
    assert out.time.tolist() == by.tolist()
    out = ec.filter_vmap(ec.filter_vmap(advance, in_axes=(0, None)), in_axes=(0, None))(data, 1.0)
    assert_batched(out, 2, 3)


def test_it_nests_with_the_map_of_jax():
    data = support.hand_made_data(2, 3)
    assert_batched(jax.vmap(ec.filter_vmap(advance))(data), 2, 3)
    assert_batched(ec.filter_vmap(jax.vmap(advance))(data), 2, 3)


@pytest.mark.parametrize("wrap", [lambda f: f, ec.filter_jit], ids=["eager", "jit"])
def test_a_value_of_one_world_in_a_buffer_of_all_is_refused_at_once(data, wrap):
    def reset(data, done):
        return jax.tree.map(lambda x: jnp.where(done, jnp.zeros_like(x), x), data)

    with pytest.raises(ArgumentError, match=r"At `out\._impl`: the fields.*`DataWarp`") as caught:
        wrap(ec.filter_vmap(reset))(data, jnp.arange(4) > 2)
    assert re.search(r"`contact__\w+`", str(caught.value))
    assert "`Data.where`" in str(caught.value)


def test_the_way_out_that_the_error_names(data):
    def reset(data, done):
        return advance(data).where(done, data)

    out = ec.filter_vmap(reset)(data, jnp.arange(4) > 2)
    assert_batched(out, WORLDS)
    assert out._impl.cacc[:, 0, 0].tolist() != [0.0] * 4


# ----------------------------------------------------------------------------------------- a scan


def test_worlds_are_the_carry_of_a_scan(data):
    step = ec.filter_vmap(Environment.step)

    def body(environment, by):
        return step(environment, by), environment.data.time

    last, times = ec.filter_scan(body, Environment(data, "ball"), jnp.ones((5, WORLDS)))
    assert_batched(last.data, WORLDS)
    assert last.name == "ball"
    assert last.data._impl.cacc[:, 0, 0].tolist() == [5.0] * WORLDS
    assert times[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_a_scan_in_a_map():
    def rollout(data, by):
        return ec.filter_scan(lambda data, _: (advance(data, by), data.time), data, length=5)

    last, times = ec.filter_vmap(rollout)(support.hand_made_data(WORLDS), jnp.arange(4.0))
    assert_batched(last, WORLDS)
    assert times[3].tolist() == [0, 3, 6, 9, 12]


def test_a_trajectory_is_the_output_and_the_input_of_a_scan():
    one = support.hand_made_data()
    _, trajectory = ec.filter_scan(lambda data, by: (advance(data, by),) * 2, one, jnp.arange(3.0))
    assert trajectory.time.tolist() == [0, 1, 3]
    assert trajectory._impl.cacc[:, 0, 0].tolist() == [0, 1, 3]
    assert trajectory._impl.naconmax == SIZE
    # Along time each step has buffers of its own, those of contacts too.
    assert trajectory._impl.contact__dist.shape == (3, CONTACTS)

    def body(total, data):
        assert data._impl.contact__dist.shape == (CONTACTS,)
        return total + data._impl.cacc[0, 0], data

    total, again = ec.filter_scan(body, 0.0, trajectory)
    assert total == 4
    assert ec.tree_equal(again, trajectory)
