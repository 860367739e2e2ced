"""`filter_vjp`."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError, ArgumentTypeError, StructureError
from ecliptic.transform import filter_jit, filter_vjp

X, DX = jnp.array([0.5, -1.0]), jnp.array([1.0, 3.0])


class Affine(ec.Module):
    weight: jax.Array
    activation: object
    count: jax.Array

    def __call__(self, x):
        return self.activation(self.weight * x), "text", self.count


def affine():
    return Affine(jnp.array([1.0, 2.0]), jnp.sin, jnp.array(3))


def test_it_equals_the_one_of_jax_on_arrays():
    def fun(x, y):
        return jnp.sin(x) * y, x + y

    out, pull = filter_vjp(fun, X, DX)
    expected, expected_pull = jax.vjp(fun, X, DX)
    jax.tree.map(np.testing.assert_allclose, out, expected)
    jax.tree.map(np.testing.assert_allclose, pull((DX, X)), expected_pull((DX, X)))


def test_each_argument_has_a_cotangent_with_none_for_what_is_not_differentiated():
    model = affine()
    out, pull = filter_vjp(lambda m, x, s: (m(x), s), model, X, "s")
    assert out[0][1:] == ("text", 3)
    assert out[1] == "s"
    of_model, of_x, of_s = pull(((DX, None, None), None))
    np.testing.assert_allclose(of_model.weight, jnp.cos(model.weight * X) * X * DX, rtol=1e-6)
    np.testing.assert_allclose(of_x, jnp.cos(model.weight * X) * model.weight * DX, rtol=1e-6)
    assert (of_model.activation, of_model.count, of_s) == (None, None, None)


def test_none_is_a_cotangent_of_zero_at_a_leaf_and_above():
    _, pull = filter_vjp(lambda x: {"a": x * 2, "b": (x * 3, x)}, X)
    np.testing.assert_array_equal(pull({"a": DX, "b": None})[0], DX * 2)
    np.testing.assert_array_equal(pull({"a": None, "b": (DX, None)})[0], DX * 3)
    np.testing.assert_array_equal(pull(None)[0], [0, 0])


def test_a_float0_cotangent_is_none():
    _, pull = filter_vjp(lambda x: (x, jnp.arange(2)), X)
    np.testing.assert_array_equal(pull((DX, np.zeros(2, jax.dtypes.float0)))[0], DX)


def test_keyword_arguments_are_handed_on():
    out, pull = filter_vjp(lambda x, *, k: x * k, X, k=DX)
    np.testing.assert_array_equal(out, X * DX)
    np.testing.assert_array_equal(pull(DX)[0], DX * DX)


def test_has_aux_returns_anything_besides():
    out, pull, aux = filter_vjp(lambda x: (x * 2, ("aux", x, jnp.tanh)), X, has_aux=True)
    np.testing.assert_array_equal(out, X * 2)
    np.testing.assert_array_equal(pull(DX)[0], DX * 2)
    assert aux[0] == "aux"
    assert aux[2] is jnp.tanh
    np.testing.assert_array_equal(aux[1], X)


def test_the_pullback_is_a_tree_that_goes_through_jit_both_ways():
    @filter_jit
    def forward(x):
        return filter_vjp(lambda x: (jnp.sin(x), "text"), x)

    (_, text), pull = forward(X)
    assert text == "text"
    assert isinstance(pull, ec.Module)
    np.testing.assert_allclose(filter_jit(lambda p, g: p((g, None)))(pull, DX)[0], jnp.cos(X) * DX)
    np.testing.assert_allclose(jax.jit(lambda p, g: p((g, None)))(pull, DX)[0], jnp.cos(X) * DX)


def test_a_pullback_that_comes_twice_from_one_program_is_traced_once_in_another():
    @filter_jit
    def forward(x):
        return filter_vjp(jnp.sin, x)[1]

    traces = []

    @filter_jit
    def back(pull, g):
        traces.append(1)
        return pull(g)

    back(forward(X), DX)
    back(forward(DX), X)
    assert len(traces) == 1


def test_it_is_differentiated_again():
    def slope(x):
        return filter_vjp(lambda x: (jnp.sin(x), "text"), x)[1]((jnp.ones_like(x), None))[0]

    np.testing.assert_allclose(jax.jvp(slope, (X,), (DX,))[1], -jnp.sin(X) * DX, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: slope(x).sum())(X), -jnp.sin(X), rtol=1e-6)


def test_the_pullback_is_mapped():
    _, pull = filter_vjp(lambda x: (x * X, None), X)
    np.testing.assert_array_equal(jax.vmap(lambda g: pull((g, None))[0])(jnp.eye(2)), jnp.diag(X))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_cotangents_keep_the_dtype(dtype):
    out, pull = filter_vjp(lambda x: x * x, jnp.ones(2, dtype))
    assert pull(out)[0].dtype == dtype


def test_numpy_arrays_are_differentiated_and_keys_are_not():
    key = jax.random.key(0)
    out, pull = filter_vjp(lambda x, k: (x * 2, k), np.ones(2, np.float32), key)
    assert out[1] == key
    of_x, of_key = pull((DX, None))
    np.testing.assert_array_equal(of_x, DX * 2)
    assert of_key is None


def test_complex_cotangents_follow_jax():
    z = jnp.array([1 + 2j, 3.0])
    (expected,) = jax.vjp(lambda z: z * z, z)[1](z)
    np.testing.assert_allclose(filter_vjp(lambda z: z * z, z)[1](z)[0], expected)


def test_nothing_to_differentiate_gives_none():
    out, pull = filter_vjp(lambda i, s: (i * 2, s), jnp.arange(2), "text")
    np.testing.assert_array_equal(out[0], [0, 2])
    assert pull((None, None)) == (None, None)


def test_it_holds_no_argument_that_it_does_not_need():
    class Held:
        pass

    held = Held()
    seen = weakref.ref(held)
    _, pull = filter_vjp(lambda h, x: x * 2, held, X)
    del held
    gc.collect()
    assert seen() is None
    np.testing.assert_array_equal(pull(DX)[1], DX * 2)


# --------------------------------------------------------------------------------- mistakes


def pullback():
    return filter_vjp(lambda x: {"a": x, "text": "text", "count": jnp.arange(2)}, X)[1]


def test_another_shape_is_named_by_path():
    with pytest.raises(ArgumentError, match=r"`cotangent\['a'\]` has shape \(\), but .* \(2,\)"):
        pullback()({"a": 1.0, "text": None, "count": None})


def test_another_dtype_is_named_by_path():
    with pytest.raises(ArgumentTypeError, match=r"`cotangent\['a'\]` has dtype float16.*float32"):
        pullback()({"a": DX.astype(jnp.float16), "text": None, "count": None})


@pytest.mark.parametrize(("name", "value"), [("text", "text"), ("count", jnp.arange(2))])
def test_a_cotangent_of_what_has_none_is_named_by_path(name, value):
    given = {"a": DX, "text": None, "count": None} | {name: value}
    with pytest.raises(ArgumentTypeError, match=rf"`cotangent\['{name}'\]` must be None"):
        pullback()(given)


def test_another_structure_is_named_by_path():
    with pytest.raises(StructureError, match=r"`out` has no leaf at `cotangent`; .*\['a'\]"):
        pullback()(DX)


def test_has_aux_must_be_a_boolean():
    with pytest.raises(ArgumentError, match="`has_aux` must be True or False; got 1"):
        filter_vjp(lambda x: x, X, has_aux=1)


def test_no_pair_with_has_aux_is_an_error():
    with pytest.raises(ArgumentTypeError, match="must return a pair.*an array of shape"):
        filter_vjp(lambda x: x, X, has_aux=True)


def test_what_cannot_be_called_is_an_error():
    with pytest.raises(ArgumentTypeError, match="`filter_vjp` needs a callable"):
        filter_vjp(X, X)
