"""`filter_shard`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

import ecliptic as ec
from ecliptic.errors import ArgumentError, ArgumentTypeError, StructureError
from ecliptic.transform import filter_shard

SPEC = PartitionSpec("x")
KINDS = pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=str)


def mesh_of(kind=AxisType.Auto):
    return jax.make_mesh((4,), ("x",), axis_types=(kind,))


def is_cut(array, times=4):
    return len({shard.index[0].start for shard in array.addressable_shards}) == times


@KINDS
@pytest.mark.parametrize(
    "array",
    [
        jnp.ones(8),
        jnp.ones(8, jnp.bfloat16),
        np.ones(8, np.float32),
        jax.random.split(jax.random.key(0), 8),
    ],
    ids=lambda a: f"{type(a).__name__}-{a.dtype}",
)
def test_arrays_are_moved_and_the_rest_stays(kind, array):
    out = filter_shard(
        {"x": array, "s": "s", "f": len, "n": None, "i": 1.0}, NamedSharding(mesh_of(kind), SPEC)
    )
    assert is_cut(out["x"])
    assert (out["s"], out["f"], out["n"], out["i"]) == ("s", len, None, 1.0)


@KINDS
def test_inside_jit(kind):
    there = NamedSharding(mesh_of(kind), SPEC)
    x = jax.device_put(jnp.arange(8.0), NamedSharding(there.mesh, PartitionSpec()))
    out = ec.filter_jit(lambda x, s: filter_shard((2 * x, s), there))(x, "s")
    assert is_cut(out[0])
    assert out[1] == "s"


def test_inside_jit_it_is_a_constraint():
    there = NamedSharding(mesh_of(), SPEC)
    jaxpr = jax.make_jaxpr(lambda x: filter_shard([x, np.ones(8), "s"], there)[:2])(jnp.ones(8))
    names = [equation.primitive.name for equation in jaxpr.eqns]
    assert names == ["sharding_constraint", "sharding_constraint"]


def test_a_device():
    device = jax.devices()[2]
    out = filter_shard([jnp.ones(3), "s"], device)
    assert out[0].devices() == {device}
    assert jax.jit(lambda x: filter_shard([x, "s"], jax.devices()[0])[0])(jnp.ones(3)).shape == (3,)


def test_a_prefix_tree():
    there = NamedSharding(mesh_of(), SPEC)
    x = {"a": [jnp.ones(8), jnp.ones(4)], "b": jnp.ones(3), "c": jnp.ones(5), "s": "s"}
    out = filter_shard(x, {"a": there, "b": jax.devices()[1], "c": None, "s": None})
    assert is_cut(out["a"][0])
    assert is_cut(out["a"][1])
    assert out["b"].devices() == {jax.devices()[1]}
    assert out["c"] is x["c"]


@KINDS
@pytest.mark.parametrize("under", [lambda f: f, jax.jit], ids=["alone", "jit"])
def test_a_partition_for_the_mesh_that_is_set(kind, under):
    with jax.set_mesh(mesh_of(kind)):
        assert is_cut(under(lambda x: filter_shard([x, "s"], SPEC)[0])(jnp.ones(8)))


def test_a_module():
    linear = eqx.nn.Linear(4, 8, key=jax.random.key(0))
    out = filter_shard(linear, NamedSharding(mesh_of(), SPEC))
    assert is_cut(out.weight)
    assert out.in_features == 4


def test_under_grad_and_vmap():
    there = NamedSharding(mesh_of(), SPEC)
    assert (
        jax.grad(lambda x: filter_shard([x, "s"], there)[0].sum())(jnp.ones(8)).tolist() == [1] * 8
    )
    assert jax.vmap(lambda x: filter_shard(x, there))(jnp.ones((2, 8))).shape == (2, 8)


def test_a_committed_array_moves_to_another_device():
    there = jax.device_put(jnp.ones(3), jax.devices()[3])
    out = filter_shard(there, SingleDeviceSharding(jax.devices()[1]))
    assert out.devices() == {jax.devices()[1]}


def test_a_wrong_prefix_is_refused():
    there = NamedSharding(mesh_of(), SPEC)
    with pytest.raises(
        StructureError, match="`device_or_shardings` must be a tree prefix.*at `tree`"
    ):
        filter_shard({"a": jnp.ones(8)}, [there])


def test_something_else_is_refused_by_path():
    with pytest.raises(
        ArgumentTypeError, match=r"`device_or_shardings\['a'\]` must be .*got 'cpu'"
    ):
        filter_shard({"a": jnp.ones(8)}, {"a": "cpu"})


def test_a_partition_without_a_mesh_is_refused():
    with pytest.raises(
        ArgumentError, match=r"is the partition P\w*\('x',\).*no mesh.*`jax.set_mesh"
    ):
        filter_shard(jnp.ones(8), SPEC)
