"""How an operation is made known to JAX, by one that doubles an array."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import _jax
from ecliptic._jax._define import define, no_tangent

seen = {}


@pytest.fixture(scope="module")
def double():
    primitive = _jax.Primitive("double")
    primitive.multiple_results = True

    def jvp(primals, tangents):
        seen["zeros"] = [type(t) is _jax.Zero for t in tangents]
        out = primitive.bind(*primals)
        if type(tangents[0]) is _jax.Zero:
            return out, [no_tangent(x) for x in out]
        return out, primitive.bind(_jax.instantiate_zeros(tangents[0]), primals[1])

    def transpose(cotangents, x, y):
        seen["undefined"] = [_jax.is_undefined_primal(x), _jax.is_undefined_primal(y)]
        return 2 * cotangents[0], None

    def batch(data, args, dims):
        seen["axis"] = (data.size, data.name)
        return primitive.bind(*args), [dims[0]]

    define(
        primitive, lambda x, y: [2 * x], lambda x, y: [x],
        jvp=jvp, transpose=transpose, batch_axis=batch,
    )  # fmt: skip
    return lambda x, y=1.0: primitive.bind(x, jnp.asarray(y))[0]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_it_runs(double, wrap):
    assert wrap(double)(jnp.array(3.0)) == 6


def test_it_has_a_derivative_and_a_transpose(double):
    assert jax.grad(double)(jnp.array(3.0)) == 2
    assert seen["undefined"] == [True, False]
    assert seen["zeros"] == [False, True]


def test_what_is_not_differentiated_has_a_zero_of_its_own(double):
    assert jax.grad(lambda y: double(jnp.array(3.0), y) + y)(jnp.array(1.0)) == 1
    assert seen["zeros"] == [True, False]


def test_a_batching_rule_is_told_of_its_axis(double):
    assert np.array_equal(jax.vmap(double, axis_name="batch")(jnp.ones(3)), [2, 2, 2])
    assert seen["axis"] == (3, "batch")


def test_its_rules_get_arrays_in_place_of_the_numbers_in_a_program():
    primitive = _jax.Primitive("shaped")
    shapes = []

    def of(values):
        shapes.extend([value.shape for value in values])

    def run(x, y):
        of((x, y))
        return x * y

    def jvp(primals, tangents):
        of(primals)
        return primitive.bind(*primals), _jax.instantiate_zeros(tangents[0]) * primals[1]

    def batch(args, dims):
        of(args)
        return primitive.bind(*args), dims[0]

    define(primitive, run, lambda x, y: x, eager=run, jvp=jvp, batch=batch)
    program = jax.make_jaxpr(lambda x: primitive.bind(x, jnp.asarray(2.0)))(1.0)

    def evaluated(x):
        return _jax.eval_jaxpr(program.jaxpr, program.consts, x)[0]

    assert evaluated(jnp.array(3.0)) == 6
    assert jax.jit(evaluated)(3.0) == 6
    assert jax.jvp(evaluated, (3.0,), (1.0,))[1] == 2
    assert jax.vmap(evaluated)(jnp.ones(2)).tolist() == [2, 2]
    assert set(shapes) == {(), (2,)}
