"""`filter_make_jaxpr`."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic import _jax, nn
from ecliptic.errors import ArgumentTypeError
from ecliptic.transform import filter_make_jaxpr

Struct = jax.ShapeDtypeStruct


def test_it_returns_program_structs_and_static_output():
    jaxpr, structs, static = filter_make_jaxpr(
        lambda x, s: {"x": 2 * x, "s": s, "f": len, "n": None}
    )(jnp.ones(3), "s")
    assert str(jaxpr) == str(jax.make_jaxpr(lambda x: 2 * x)(jnp.ones(3)))
    assert structs == {"x": Struct((3,), jnp.float32), "s": None, "f": None, "n": None}
    assert static == {"x": None, "s": "s", "f": len, "n": None}


def test_an_output_of_arrays_has_no_static_part():
    _, structs, static = filter_make_jaxpr(lambda x: [x, {"a": x}])(jnp.ones(3))
    assert structs == [Struct((3,), jnp.float32), {"a": Struct((3,), jnp.float32)}]
    assert static == [None, {"a": None}]


def test_the_program_takes_and_returns_arrays_in_the_order_of_flattening():
    jaxpr, _, _ = filter_make_jaxpr(lambda b, *, a: (a - 1, "s", b))(jnp.ones(2), a=jnp.ones(3))
    out = _jax.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, jnp.ones(2), jnp.ones(3))
    assert [x.tolist() for x in out] == [[0, 0, 0], [1, 1]]


def test_arrays_of_the_function_are_constants_of_the_program():
    model = nn.Linear(2, 3, key=jax.random.key(0))
    jaxpr, _, _ = filter_make_jaxpr(model)(jnp.ones(2))
    assert len(jaxpr.consts) == 2
    assert {id(c) for c in jaxpr.consts} == {id(model.weight), id(model.bias)}


@pytest.mark.parametrize(
    "array",
    [Struct((2,), jnp.bfloat16), np.ones(2, np.float32), jax.random.key(0), jnp.asarray(1.0)],
    ids=lambda a: type(a).__name__,
)
def test_each_kind_of_array_is_an_argument(array):
    jaxpr, structs, _ = filter_make_jaxpr(lambda x, s: (x, s))(array, "s")
    wanted, of_jax = jax.make_jaxpr(lambda x: x, return_shape=True)(array)
    assert jaxpr.in_avals == wanted.in_avals
    assert structs[0] == of_jax


def test_an_equinox_module_gives_the_same_program_as_with_equinox():
    model = eqx.nn.MLP(2, 2, 4, 1, key=jax.random.key(0))
    ours, structs, _ = filter_make_jaxpr(model)(jnp.ones(2))
    theirs, of_theirs, _ = eqx.filter_make_jaxpr(model)(jnp.ones(2))
    assert str(ours) == str(theirs)
    assert structs == of_theirs


def test_nested_in_jit_and_over_a_transformed_function():
    @jax.jit
    def f(x):
        jaxpr, _, _ = filter_make_jaxpr(ec.filter_grad(lambda y: (y * x).sum()))(x)
        return _jax.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, x)[0]

    assert f(jnp.arange(3.0)).tolist() == [0, 1, 2]


def test_it_looks_like_the_function():
    def f(x, *, flag=True):
        """Text."""

    made = filter_make_jaxpr(f)
    assert (made.__name__, made.__doc__, made.__wrapped__) == ("f", "Text.", f)
    assert inspect.signature(made) == inspect.signature(f)


def test_methods_and_trees():
    class A(ec.Module):
        w: jax.Array

        @filter_make_jaxpr
        def method(self, x):
            return self.w * x

        def __call__(self, x):
            return x

    a = A(jnp.ones(2))
    assert len(a.method(jnp.ones(2))[0].in_avals) == 2
    assert jax.tree.leaves(filter_make_jaxpr(a)) == [a.w]


def test_what_cannot_be_called_is_refused():
    with pytest.raises(ArgumentTypeError, match="`filter_make_jaxpr` needs a callable.*got 3"):
        filter_make_jaxpr(3)
