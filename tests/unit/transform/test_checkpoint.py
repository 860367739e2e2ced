"""`filter_checkpoint`."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic import nn
from ecliptic.errors import ArgumentError, ArgumentTypeError
from ecliptic.transform import filter_checkpoint, filter_make_jaxpr


class Scale(ec.Module):
    factor: jax.Array
    name: str

    def __call__(self, x):
        return jnp.sin(self.factor * x), self.name

    @filter_checkpoint
    def method(self, x):
        return jnp.sin(self.factor * x)


def everything(x, s, *, k=None):
    return {"x": 2 * x, "s": s, "f": len, "n": None, "k": k}


def test_any_tree_in_and_out():
    out = filter_checkpoint(everything)(jnp.ones(2), "s", k=(jnp.ones(1, jnp.bfloat16), len))
    assert out["x"].tolist() == [2, 2]
    assert (out["s"], out["f"], out["n"], out["k"][1]) == ("s", len, None, len)
    assert out["k"][0].dtype == jnp.bfloat16


def test_keys_and_numpy_arrays():
    out = filter_checkpoint(lambda k, x: (jax.random.normal(k, x.shape), x))(
        jax.random.key(0), np.ones(3, np.float32)
    )
    assert out[0].tolist() == jax.random.normal(jax.random.key(0), (3,)).tolist()
    assert out[1].tolist() == [1, 1, 1]


def test_only_the_inputs_are_stored():
    def f(x):
        return jnp.sin(jnp.sin(jnp.sin(x)))

    def stored(f):
        _, pullback = jax.vjp(f, jnp.ones(3))
        return len(jax.tree.leaves(pullback))

    assert stored(f) == 3
    assert stored(filter_checkpoint(f)) < 3


def test_a_policy_says_what_is_stored():
    policies = []

    def policy(primitive, *_, **__):
        policies.append(primitive.name)
        return True

    jax.grad(filter_checkpoint(jnp.sin, policy=policy))(1.0)
    assert "sin" in policies or "cos" in policies


def test_the_gradient_is_that_of_the_function():
    scale = Scale(jnp.arange(3.0), "a")
    x = jnp.ones(3)
    slope = ec.filter_grad(lambda m: filter_checkpoint(m)(x)[0].sum())(scale)
    wanted = ec.filter_grad(lambda m: m(x)[0].sum())(scale)
    assert slope.factor.tolist() == wanted.factor.tolist()


def test_arrays_of_the_function_are_inputs():
    scale = Scale(jnp.arange(3.0), "a")
    jaxpr, _, _ = filter_make_jaxpr(lambda m, x: filter_checkpoint(m)(x))(scale, jnp.ones(3))
    (equation,) = jaxpr.eqns
    assert len(equation.invars) == 2


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_prevent_cse_is_passed_on(prevent_cse):
    f = filter_checkpoint(jnp.sin, prevent_cse=prevent_cse)
    (equation,) = jax.make_jaxpr(f)(1.0).eqns
    assert equation.params["prevent_cse"] in (prevent_cse, (prevent_cse,))


def test_prevent_cse_by_argument():
    f = filter_checkpoint(lambda m, x: m["a"] * m["b"] * jnp.sin(x), prevent_cse=(True, False))
    jaxpr = jax.make_jaxpr(lambda a, b, x: f({"a": a, "b": b, "s": "s"}, x))(1.0, 1.0, 1.0)
    assert jaxpr.eqns[0].params["prevent_cse"] == (True, True, False)


def test_prevent_cse_of_a_wrong_length_is_refused():
    f = filter_checkpoint(lambda x: x, prevent_cse=(True, False))
    with pytest.raises(ArgumentError, match=r"`prevent_cse` has 2 entries.*with 1 positional"):
        f(jnp.ones(2))


@pytest.mark.parametrize(
    "under", [jax.jit, jax.vmap, ec.filter_jit, lambda f: jax.grad(lambda x: f(x).sum())]
)
def test_nested(under):
    def f(x):
        return filter_checkpoint(lambda x, s: (jnp.sin(x), s))(x, "s")[0]

    assert under(f)(jnp.ones(3)).tolist() == under(jnp.sin)(jnp.ones(3)).tolist()


def test_in_the_body_of_a_scan():
    body = filter_checkpoint(lambda c, x: (c + jnp.sin(x), x), prevent_cse=False)
    total = jax.grad(lambda xs: jax.lax.scan(body, 0.0, xs)[0])(jnp.zeros(3))
    assert total.tolist() == [1, 1, 1]


def test_as_a_decorator_with_options_and_on_methods():
    @filter_checkpoint(prevent_cse=False)
    def f(x):
        return 2 * x

    assert f(1.0) == 2
    scale = Scale(jnp.ones(2), "a")
    assert scale.method(jnp.zeros(2)).tolist() == [0, 0]
    slope = ec.filter_grad(lambda m: m.method(jnp.ones(2)).sum())(scale)
    assert slope.factor.tolist() == jnp.cos(jnp.ones(2)).tolist()


def test_it_is_a_tree_that_looks_like_the_function():
    scale = Scale(jnp.ones(2), "a")
    assert jax.tree.leaves(filter_checkpoint(scale)) == [scale.factor, "a"]
    made = filter_checkpoint(everything)
    assert (made.__name__, made.__wrapped__) == ("everything", everything)
    assert inspect.signature(made) == inspect.signature(everything)
    assert made == filter_checkpoint(everything)
    assert made != filter_checkpoint(everything, prevent_cse=False)


def test_an_equinox_module():
    model = eqx.nn.MLP(2, 2, 4, 1, key=jax.random.key(0))
    assert filter_checkpoint(model)(jnp.ones(2)).tolist() == model(jnp.ones(2)).tolist()


def test_a_model_of_layers():
    model = nn.MLP(2, 2, 4, 1, key=jax.random.key(0))
    plain, again = (
        ec.filter_grad(lambda m, wrap: wrap(m)(jnp.ones(2)).sum())(model, wrap)
        for wrap in (lambda f: f, filter_checkpoint)
    )
    assert ec.tree_equal(plain, again, rtol=1e-5)


def test_options_that_filtering_replaces_are_refused():
    with pytest.raises(ArgumentError, match="does not take `static_argnums`.*static already"):
        filter_checkpoint(everything, static_argnums=0)


def test_unknown_options_are_refused():
    with pytest.raises(ArgumentTypeError, match="got the option `foo`"):
        filter_checkpoint(everything, foo=1)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(ArgumentTypeError, match="`filter_checkpoint` needs a callable.*got 3"):
        filter_checkpoint(3)
