"""Functions that are compiled once, and called from programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.barrier import noinline
from ecliptic.errors import ArgumentTypeError, RuleError, StaticError
from ecliptic.primitive import finalise_make_jaxpr

X = jnp.array([0.5, 2.0])
A = jnp.arange(6.0).reshape(3, 2)


def plain(x, y):
    return {"out": jnp.sin(x) * y, "sum": jnp.sum(x * x), "count": jnp.asarray(3)}


boxed = noinline(plain)


def same(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), one, other)


def _loss(f):
    def loss(x, y):
        out = f(x, y)
        return jnp.sum(out["out"] ** 2) + out["sum"]

    return loss


PROGRAMS = {
    "values": lambda f: f(X, X),
    "tangents": lambda f: jax.jvp(lambda x: f(x, X)["out"], (X,), (X,)),
    "gradients": lambda f: jax.grad(_loss(f), (0, 1))(X, X),
    "batch": lambda f: jax.vmap(f, (0, None))(A, X),
    "batch along another axis": lambda f: jax.vmap(f, (1, None))(A.T, X),
    "gradients of a batch": lambda f: jax.grad(
        lambda a, x: jnp.sum(jax.vmap(_loss(f), (0, None))(a, x)), (0, 1)
    )(A, X),
    "batch of gradients": lambda f: jax.vmap(jax.grad(_loss(f)), (0, None))(A, X),
    "second derivatives": lambda f: jax.hessian(_loss(f))(X, X),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(_loss(f)))(X, X),
    "scan": lambda f: jax.lax.scan(lambda c, a: (f(c, a)["out"], None), X, A)[0],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_does_what_the_function_does(program):
    expected = PROGRAMS[program](plain)
    same(jax.jit(lambda: PROGRAMS[program](boxed))(), expected)
    same(PROGRAMS[program](boxed), expected)


def test_it_is_traced_for_its_shapes_and_once_compiled():
    traces = []

    @noinline
    def f(x):
        traces.append(1)
        return x * 2

    assert jax.jit(lambda x: f(x) + f(x) + f(f(x)))(1.0) == 8
    assert len(traces) == 2


def test_any_trees_go_in_and_come_out():
    f = noinline(lambda g, x, *, k: (g(x["a"]) * k, "name", g))
    out = jax.jit(lambda x: f(jnp.sin, {"a": x}, k=2)[0])(X)
    same(out, 2 * np.sin(X))
    values = []
    jax.jit(lambda x: values.append(f(jnp.sin, {"a": x}, k=2)[1:]))(X)
    assert values == [("name", jnp.sin)]


def test_numbers_of_other_types_are_other_arguments():
    f = noinline(lambda x, k: x / k if type(k) is float else x + k)
    assert np.array_equal(jax.jit(lambda x: f(x, 2.0) + f(x, 2))(X), X / 2 + X + 2)


def test_keys_pass():
    key = jax.random.key(0)
    f = noinline(lambda key: jax.random.split(key))
    out = jax.jit(f)(key)
    assert np.array_equal(jax.random.key_data(out), jax.random.key_data(jax.random.split(key)))


def test_the_weights_of_a_module_are_differentiated():
    layer = ec.nn.Linear(2, 3, key=jax.random.key(0))
    loss = lambda m: jnp.sum(m(X) ** 2)
    got = ec.filter_grad(loss)(noinline(layer)).__wrapped__
    same(got.weight, ec.filter_grad(loss)(layer).weight)


def test_it_looks_like_the_function():
    def scale(x: int) -> str:
        "Doubles."

    def form(x: float) -> int:
        "Keeps the shape."

    one, other = noinline(scale), noinline(lambda x: x, form)
    assert (one.__name__, one.__doc__, one.__annotations__["x"]) == ("scale", "Doubles.", int)
    # What it stands for may be another one in each call.
    assert (other.__name__, other.__doc__) == ("form", "Keeps the shape.")
    assert other.__annotations__ == {"x": float, "return": int}


def test_it_makes_a_method():
    class Scale(ec.Module):
        by: jax.Array

        @noinline
        def __call__(self, x):
            return self.by * x

    assert np.array_equal(jax.jit(lambda m, x: m(x))(Scale(X), X), X * X)


def test_outside_of_any_trace_the_function_is_called():
    assert noinline(lambda x: x if x > 0 else -x)(-2) == 2


def test_functions_with_the_same_abstract_one_share_a_program():
    traces = []

    def abstract(leaves, x, y):
        return jnp.broadcast_arrays(x, y)[0]

    add, times = noinline(lambda x, y: x + y, abstract), noinline(lambda x, y: x * y, abstract)

    @jax.jit
    def call(f, x, y):
        traces.append(1)
        return f(x, y)

    assert call(add, 2.0, 3.0) == 5
    assert call(times, 2.0, 3.0) == 6
    assert len(traces) == 1
    assert jax.grad(lambda x: call(times, x, 3.0))(2.0) == 3


def test_the_arrays_of_such_a_function_are_differentiated():
    layer = ec.nn.Linear(2, 2, key=jax.random.key(0))
    f = noinline(layer, lambda leaves, x: x)
    got = jax.grad(lambda x: jnp.sum(jax.jit(lambda x: f(x))(x)))(X)
    same(got, jax.grad(lambda x: jnp.sum(layer(x)))(X))


def test_nothing_is_left_of_it_in_a_final_program():
    program = finalise_make_jaxpr(jax.vmap(boxed, (0, None)))(A, X)
    assert "noinline" not in str(program)
    assert "callback" not in str(program)


def test_a_function_behind_a_number_stays_a_callback_in_a_final_program():
    f = noinline(lambda x: 2 * x, lambda leaves, x: x)
    program = finalise_make_jaxpr(lambda f, x: f(x))(f, X)
    assert "noinline" not in str(program)
    assert "pure_callback" in str(program)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(ArgumentTypeError, match="`noinline` needs a callable.*got 3"):
        noinline(3)


def test_a_leaf_without_a_hash_is_refused():
    class Unhashable:
        __hash__ = None  # pyright: ignore

    with pytest.raises(StaticError, match="have to be hashable.*Unhashable"):
        jax.jit(lambda x: noinline(lambda x, s: x)(x, Unhashable()))(X)


def test_a_traced_value_that_is_no_argument_is_refused():
    with pytest.raises(RuleError, match="uses a traced value that is none of its arguments"):
        jax.jit(lambda w: noinline(lambda x: x * w)(X))(3.0)


def test_results_that_the_abstract_function_does_not_say_are_refused():
    f = noinline(lambda x: x[None], lambda leaves, x: x)
    with pytest.raises(Exception, match=r"returned arrays .*float32\[1, 2\].*says .*float32\[2\]"):
        jax.block_until_ready(jax.jit(lambda x: f(x))(X))


def test_a_batch_of_functions_is_refused():
    f = noinline(lambda x: 2 * x, lambda leaves, x: x)
    many = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), f)
    with pytest.raises(RuleError, match="a batch of functions.*`jax.lax.map`"):
        jax.vmap(lambda f: f(X))(many)


def test_a_python_number_is_differentiated():
    assert jax.grad(noinline(lambda x: x * x))(3.0) == 6
