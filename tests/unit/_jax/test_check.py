"""Calls of the host from compiled programs: what it is called with, and what is borrowed for it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from ecliptic import _jax
from ecliptic._jax._check import tell, unknown_true


class Recorded:
    """A report that notes what it is called with."""

    def __init__(self):
        self.calls = []
        self.times_compiled = 0

    def fail(self, bad, index, mapped):
        self.calls.append((bad.tolist(), index.tolist(), mapped))

    def compiled(self, *, several):
        self.times_compiled += 1
        self.several = several
        return self.fail


@pytest.mark.parametrize("how", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_the_host_is_called_where_a_boolean_is_true(how):
    report = Recorded()
    run = how(lambda bad: tell(bad, np.int32(3), report))
    assert bool(run(jnp.array([False, False])))
    assert report.calls == []
    run(jnp.array([False, True])).block_until_ready()
    assert report.calls == [([False, True], 3, 0)]


@pytest.mark.parametrize("how", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_mapped_axes_come_first_and_the_outermost_first(how):
    report = Recorded()
    inner = jax.vmap(lambda bad, i: tell(bad, i, report), in_axes=(1, None), out_axes=None)
    bad = jnp.zeros((2, 4, 3), bool).at[1, 3, 2].set(True)
    how(jax.vmap(inner, out_axes=None))(bad, jnp.arange(2)).block_until_ready()
    expected = np.moveaxis(np.asarray(bad), 1, 2)
    assert report.calls == [(expected.tolist(), [[0, 0, 0], [1, 1, 1]], 2)]


def test_a_call_without_a_use_is_left_out():
    report = Recorded()
    jax.jit(lambda bad: (tell(bad, np.int32(0), report), bad)[1])(True).block_until_ready()
    assert report.calls == []


def test_the_report_is_told_when_it_is_compiled():
    report = Recorded()
    run = jax.jit(lambda bad: tell(bad, np.int32(0), report))
    run.trace(True)
    assert report.times_compiled == 0
    run.lower(True)
    assert report.times_compiled == 1


def test_it_has_no_derivative():
    report = Recorded()
    loss = lambda x: jnp.where(tell(x > 2, np.int32(0), report), 3 * x, 0)
    assert float(jax.grad(loss)(1.0)) == 3


def test_a_true_of_which_the_compiler_does_not_know():
    assert bool(jax.jit(unknown_true)())


def test_on_several_devices_each_calls_with_all_booleans():
    report = Recorded()
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    bad = jax.device_put(jnp.array([False, True] * 2), jax.NamedSharding(mesh, PartitionSpec("x")))
    jax.jit(lambda bad: tell(bad, np.int32(0), report))(bad).block_until_ready()
    assert report.calls == [([False, True] * 2, 0, 0)] * 4
    assert report.several


def test_in_a_shard_map_each_device_calls_the_host():
    report = Recorded()
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec("x"))
    def run(x):
        return jax.lax.select(tell(x > 1, np.int32(0), report), x, jnp.zeros_like(x))

    run(jnp.arange(4.0)).block_until_ready()
    assert sorted(report.calls) == [([True], 0, 0)] * 2


def test_callback_op_sharding_says_nothing_for_one_device():
    # What tells how a call of the host is laid out takes the context of axes first.
    assert _jax.callback_op_sharding(None, None, []) is None
