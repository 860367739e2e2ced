"""Reductions over everything: axes, and those of every `jax.vmap`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from ecliptic.errors import RuleError
from ecliptic.primitive import (
    primitive_finalisations,
    unvmap_all,
    unvmap_all_p,
    unvmap_any,
    unvmap_any_p,
    unvmap_max,
    unvmap_max_p,
)

BOOLS = np.array([[False, True], [False, False], [True, True]])
TABLE = [
    pytest.param(unvmap_any, unvmap_any_p, BOOLS, True, id="any"),
    pytest.param(unvmap_all, unvmap_all_p, BOOLS, False, id="all"),
    pytest.param(unvmap_max, unvmap_max_p, np.array([[1, 5], [3, 2], [4, 0]]), 5, id="max"),
]


@pytest.mark.parametrize(("fun", "primitive", "x", "expected"), TABLE)
class TestEach:
    def test_it_reduces_all_axes(self, fun, primitive, x, expected):
        for out in (fun(x), jax.jit(fun)(x)):
            assert out == expected
            assert out.shape == ()
            assert out.dtype == jnp.asarray(x).dtype

    def test_it_reduces_a_mapped_axis_wherever_it_is(self, fun, primitive, x, expected):
        for axis in (0, 1):
            out = jax.vmap(fun, in_axes=axis, out_axes=None)(x)
            assert out.shape == ()
            assert out == expected

    def test_it_reduces_the_axes_of_nested_maps(self, fun, primitive, x, expected):
        out = jax.jit(jax.vmap(jax.vmap(fun, out_axes=None), out_axes=None))(x)
        assert out.shape == ()
        assert out == expected

    def test_it_is_one_operation(self, fun, primitive, x, expected):
        (eqn,) = jax.make_jaxpr(jax.vmap(fun, out_axes=None))(x).eqns
        assert eqn.primitive is primitive

    def test_it_becomes_a_reduction_of_jax(self, fun, primitive, x, expected):
        (eqn,) = jax.make_jaxpr(primitive_finalisations[primitive])(x).eqns
        assert eqn.primitive.name.startswith("reduce_")

    def test_a_value_that_is_not_differentiated_has_no_tangent(self, fun, primitive, x, expected):
        def chosen(y):
            return jnp.where(fun(x) == expected, y, 0.0)

        assert jax.grad(chosen)(1.0) == 1

    def test_it_takes_tangents_that_carry_nothing(self, fun, primitive, x, expected):
        zeros = np.zeros(x.shape, jax.dtypes.float0)
        out, tangent = jax.jvp(fun, (x,), (zeros,))
        assert out == expected
        assert tangent.dtype == jax.dtypes.float0

    def test_it_varies_over_the_axes_of_a_mesh(self, fun, primitive, x, expected):
        mesh = jax.make_mesh((3,), ("i",), axis_types=(AxisType.Auto,), devices=jax.devices()[:3])
        specs = {"mesh": mesh, "in_specs": P("i"), "out_specs": P("i")}
        each = jax.jit(jax.shard_map(lambda x: fun(x)[None], **specs))(x)
        assert np.array_equal(each, [fun(row) for row in x])

    def test_it_takes_arrays_whose_sharding_is_part_of_their_type(
        self, fun, primitive, x, expected
    ):
        devices = jax.devices()[:3]
        mesh = jax.make_mesh((3,), ("i",), axis_types=(AxisType.Explicit,), devices=devices)
        with jax.set_mesh(mesh):
            out = jax.jit(fun)(jax.device_put(x, NamedSharding(mesh, P("i"))))
        assert out == expected


@pytest.mark.parametrize("fun", [unvmap_any, unvmap_all])
def test_a_python_bool_will_do(fun):
    assert fun(True)


def test_the_greatest_keeps_its_dtype():
    assert unvmap_max(np.array([1, 2], np.int8)).dtype == np.int8


def test_the_greatest_has_no_derivative():
    with pytest.raises(RuleError, match="`unvmap_max` has no derivative.*stop_gradient"):
        jax.grad(unvmap_max)(1.0)
