"""Borrowed names around programs and traces."""

import gc
import weakref

import jax
import jax.numpy as jnp

from ecliptic import _jax
from ecliptic._jax._constants import without_constants
from ecliptic._jax._varying import vary_alike


def test_eval_jaxpr_takes_other_constants():
    constant = jnp.arange(2.0)
    closed = jax.make_jaxpr(lambda x: x * constant)(jnp.ones(2))
    (out,) = _jax.eval_jaxpr(closed.jaxpr, [jnp.full(2, 3.0)], jnp.full(2, 2.0))
    assert out.tolist() == [6, 6]


def test_a_program_without_constants_is_evaluated_with_any_and_keeps_none():
    constant = jnp.arange(2.0)
    program = without_constants(jax.make_jaxpr(lambda x: x * constant)(jnp.ones(2)))
    (out,) = _jax.eval_jaxpr(program, [constant + 3], jnp.full(2, 2.0))
    assert out.tolist() == [6, 8]
    alive = weakref.ref(constant)
    del constant
    gc.collect()
    assert alive() is None


def test_trace_state_clean_is_true_outside_of_traces_alone():
    found = []

    def f(x):
        found.append(_jax.trace_state_clean())
        return x

    f(1.0)
    jax.jit(f)(1.0)
    jax.grad(f)(1.0)
    jax.vmap(f)(jnp.ones(2))
    assert found == [True, False, False, False]


def test_arrays_vary_alike_inside_shard_map():
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec

    def f(x, y):
        x, y = vary_alike([x, y])
        # `mul_p` itself does not make its arguments alike, as `jnp.multiply` does.
        return jax.lax.mul_p.bind(x, y)

    mapped = jax.shard_map(f, mesh=mesh, in_specs=(spec("x"), spec()), out_specs=spec("x"))
    assert mapped(jnp.arange(8.0), jnp.full(2, 2.0)).tolist() == list(range(0, 16, 2))


def test_outside_of_shard_map_arrays_stay_the_same():
    arrays = [jnp.ones(2), jnp.ones(3)]
    assert vary_alike(arrays) is arrays


def test_trace_context_changes_with_options_and_named_axes():
    outside, inside = _jax.trace_context(), []
    assert hash(outside) == hash(_jax.trace_context())
    with jax.enable_x64(True):
        inside.append(_jax.trace_context())
    jax.vmap(lambda x: inside.append(_jax.trace_context()), axis_name="i")(jnp.ones(2))
    assert outside == _jax.trace_context()
    assert outside not in inside
