"""Finalisation: what is left are operations of JAX, wherever they stand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive  # noqa: TID251 - as authors of libraries do
from jax.interpreters import mlir  # noqa: TID251
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from ecliptic.errors import RuleError
from ecliptic.primitive import (
    filter_primitive_bind,
    filter_primitive_def,
    finalise_eval_jaxpr,
    finalise_fn,
    finalise_jaxpr,
    finalise_jaxpr_as_fn,
    finalise_make_jaxpr,
    primitive_finalisations,
    register_impl_finalisation,
    unvmap_any,
    unvmap_max,
)
from ecliptic.transform import filter_closure_convert

X = jnp.array([1.0, 3.0])
TABLE = np.arange(2.0, dtype=np.float32)


def _single(name, impl):
    primitive = Primitive(name)
    primitive.def_impl(impl)
    primitive.def_abstract_eval(lambda x: x)
    mlir.register_lowering(primitive, mlir.lower_fun(impl, multiple_results=False))
    register_impl_finalisation(primitive)
    return primitive.bind


double = _single("my_double", lambda x: x + x)
nested = _single("my_nested", lambda x: jax.jit(double)(x) * jnp.asarray(TABLE))


def _jvp_rule():
    @jax.custom_jvp
    def f(x):
        return double(x)

    f.defjvp(lambda primals, tangents: (double(*primals), 5 * tangents[0]))
    return f


def _vjp_rule():
    @jax.custom_vjp
    def f(x):
        return double(x)

    f.defvjp(lambda x: (double(x), None), lambda _, ct: (7 * ct,))
    return f


def _scan(x):
    return jax.lax.scan(lambda c, a: (double(c) + a, nested(c)), x, jnp.ones((3, 2)))[1][-1]


def _while(x):
    return jax.lax.while_loop(lambda c: jnp.sum(double(c)) < 50, lambda c: double(c), x)


def _sharded(x):
    mesh = jax.make_mesh((2,), ("i",), axis_types=(AxisType.Auto,), devices=jax.devices()[:2])
    f = lambda x: double(x) + jax.lax.psum(x, "i")
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i")))(x)


PLACES = {
    "plain": lambda x: double(x),
    "itself of others": nested,
    "jit": jax.jit(nested),
    "scan": _scan,
    "while": _while,
    "cond": lambda x: jax.lax.cond(x[0] > 0, double, jnp.sin, x),
    "switch": lambda x: jax.lax.switch(1, [jnp.sin, lambda x: double(nested(x))], x),
    "checkpoint": jax.checkpoint(nested),
    "custom_jvp": _jvp_rule(),
    "custom_vjp": _vjp_rule(),
    "linear solve": lambda x: jax.lax.custom_linear_solve(
        double, x, lambda _, b: b / 2, symmetric=True
    ),
    "shard_map": _sharded,
    "vmap": jax.vmap(lambda x: x + unvmap_max(jnp.asarray(2))),
}


@pytest.mark.parametrize("place", PLACES)
def test_nothing_else_is_left_anywhere(place):
    f = PLACES[place]
    program = finalise_make_jaxpr(f)(X)
    for name in ("my_", "unvmap"):
        assert name in str(jax.make_jaxpr(f)(X)) or name not in ("my_",) or place == "vmap"
        assert name not in str(program)
    np.testing.assert_allclose(jax.jit(finalise_fn(f))(X), jax.jit(f)(X))


@pytest.mark.parametrize(("place", "slope"), [("custom_jvp", 5), ("custom_vjp", 7)])
def test_own_derivatives_stay(place, slope):
    gradient = jax.grad(lambda x: finalise_fn(PLACES[place])(x).sum())(X)
    assert np.array_equal(gradient, [slope, slope])


def test_a_program_with_nothing_to_replace_is_returned_itself():
    program = jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, a: (c + a, a), 0.0, x))(X)
    assert finalise_jaxpr(program) is program


def test_it_is_final():
    program = finalise_make_jaxpr(_scan)(X)
    assert finalise_jaxpr(program) is program


def test_a_program_keeps_its_types():
    program = jax.make_jaxpr(lambda x: double(x) * 2)(1.0)
    finalised = finalise_jaxpr(program)
    assert finalised.in_avals == program.in_avals
    assert finalised.out_avals == program.out_avals


def test_programs_among_the_operands_of_filtered_primitives_are_finalised():
    call = Primitive("call")
    call.multiple_results = True
    call.def_abstract_eval(filter_primitive_def(lambda program, x: x))
    held = jax.make_jaxpr(double)(X)
    program = finalise_make_jaxpr(lambda x: filter_primitive_bind(call, held, x))(X)
    assert program.eqns[0].primitive is call
    assert "my_double" not in str(program)


def test_programs_apart_from_their_constants_are_finalised():
    call = Primitive("call")
    call.multiple_results = True
    call.def_abstract_eval(filter_primitive_def(lambda f, x: x))
    call.def_impl(filter_primitive_def(lambda f, x: f(x)))
    held = filter_closure_convert(lambda x: double(x) + TABLE, X)
    program = finalise_make_jaxpr(lambda x: filter_primitive_bind(call, held, x))(X)
    assert program.eqns[0].primitive is call
    assert "my_double" not in str(program)
    assert np.array_equal(finalise_jaxpr_as_fn(program)(X)[0], 2 * X + TABLE)


def test_a_rule_may_use_the_operation_itself():
    primitive = Primitive("turned")
    primitive.def_abstract_eval(lambda x, *, sign: x)
    primitive_finalisations[primitive] = lambda x, *, sign: -primitive.bind(x, sign=1)
    program = finalise_make_jaxpr(lambda x: primitive.bind(x, sign=-1))(X)
    assert [(e.primitive.name, e.params.get("sign")) for e in program.eqns] == [
        ("turned", 1), ("neg", None),
    ]  # fmt: skip


def test_a_function_takes_and_returns_any_trees():
    f = finalise_fn(lambda x, name, *, scale: {"out": double(x["a"]) * scale, "name": name})
    out = f({"a": X}, "n", scale=2)
    assert out["name"] == "n"
    assert np.array_equal(out["out"], 4 * X)


def test_programs_are_evaluated_with_their_constants():
    program = jax.make_jaxpr(lambda x: double(x) + TABLE)(X)
    expected = 2 * X + TABLE
    assert np.array_equal(finalise_jaxpr_as_fn(program)(X)[0], expected)
    out = finalise_eval_jaxpr(program.jaxpr, program.consts, X)
    assert np.array_equal(out[0], expected)


def test_the_shape_of_the_output_can_be_had():
    program, shape = finalise_make_jaxpr(lambda x: {"a": unvmap_any(x > 2)}, return_shape=True)(X)
    assert [e.primitive.name for e in program.eqns] == ["gt", "reduce_or"]
    assert shape["a"].shape == ()


def test_a_program_without_a_place_for_constants_is_refused():
    from ecliptic.primitive import _finalise

    program = jax.make_jaxpr(nested)(X)
    if type(program) is type(program.jaxpr):
        # From JAX 0.12 on each program has a place for them.
        made = _finalise._program(program.jaxpr, type("Eqn", (), {"primitive": "strange"}))
        assert len(made.consts) == 1
        return
    with pytest.raises(RuleError, match="`strange` cannot be finalised.*no place for these"):
        _finalise._program(program.jaxpr, type("Eqn", (), {"primitive": "strange"}))
