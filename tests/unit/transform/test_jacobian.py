"""`filter_jacfwd`, `filter_jacrev` and `filter_hessian`."""

import functools
import inspect
from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError, ArgumentTypeError, EclipticWarning
from ecliptic.transform import filter_hessian, filter_jacfwd, filter_jacrev, filter_jit

Pair = namedtuple("Pair", ["first", "second"])
JACOBIANS = [filter_jacfwd, filter_jacrev]
ALL = [*JACOBIANS, filter_hessian]

X, Y = jnp.array([0.5, -1.0]), jnp.array([1.0, 3.0, 2.0])
Z = jax.lax.complex(X, X)

each_jacobian = pytest.mark.parametrize("jacobian", JACOBIANS, ids=lambda f: f.__name__)
each = pytest.mark.parametrize("derive", ALL, ids=lambda f: f.__name__)


class Affine(ec.Module):
    weight: jax.Array
    bias: jax.Array
    activation: object
    name: str = "affine"

    def __call__(self, x):
        return self.activation(self.weight * x + self.bias)


def affine():
    return Affine(jnp.array([1.0, 2.0]), jnp.array(0.5), jnp.sin)


# ------------------------------------------------------------------------------------ values


@each_jacobian
def test_it_equals_the_one_of_jax_on_trees_of_arrays(jacobian):
    def fun(t):
        return {"o": t["a"] * t["b"].sum(), "p": (jnp.outer(t["b"], t["a"]), t["a"].sum())}

    tree = {"a": X, "b": Y}
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-6),
        jacobian(fun)(tree),
        jax.jacfwd(fun)(tree),
    )


def test_the_hessian_equals_the_one_of_jax_on_trees_of_arrays():
    def fun(t):
        return jnp.sin(t["a"]).sum() * (t["b"] ** 2).sum(), t["a"] * t["b"][0]

    tree = {"a": X, "b": Y}
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-5),
        filter_hessian(fun)(tree),
        jax.hessian(fun)(tree),
    )


@each_jacobian
def test_a_module_gives_a_module_of_derivatives(jacobian):
    model = affine()
    found = jacobian(lambda m, x: m(x))(model, X)
    assert isinstance(found, Affine)
    slope = jnp.cos(model.weight * X + model.bias)
    np.testing.assert_allclose(found.weight, jnp.diag(slope * X), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.bias, slope, rtol=1e-5)
    assert (found.activation, found.name) == (None, None)


def test_the_hessian_of_a_module_is_a_module_of_modules():
    hessian = filter_hessian(lambda m: (m.weight**2).sum() * m.bias)(affine())
    np.testing.assert_allclose(hessian.weight.weight, jnp.eye(2) * 2 * 0.5)
    np.testing.assert_allclose(hessian.weight.bias, 2 * affine().weight)
    np.testing.assert_allclose(hessian.bias.bias, 0)
    assert hessian.activation is None
    assert hessian.weight.name is None


@each_jacobian
def test_an_output_that_is_no_number_has_the_derivative_none(jacobian):
    found = jacobian(lambda x: Pair({"o": x, "n": None}, ("text", jnp.tanh, jax.random.key(0))))(X)
    np.testing.assert_array_equal(found.first["o"], jnp.eye(2))
    assert found.first["n"] is None
    assert found.second == (None, None, None)


@each_jacobian
def test_a_number_that_does_not_depend_on_the_argument_has_zeros(jacobian):
    found = jacobian(lambda x: (Y, 2.5, 3, jnp.arange(3), np.ones(3, np.float32)))(X)
    assert [f.shape for f in found] == [(3, 2), (2,), (2,), (3, 2), (3, 2)]
    assert not any(map(jnp.any, found))


@each_jacobian
def test_arrays_of_several_dtypes_keep_their_own(jacobian):
    tree = {"a": X, "b": X.astype(jnp.bfloat16), "i": jnp.arange(2), "n": np.ones(2, np.float16)}

    def fun(t):
        return {"a": t["a"] * 2, "b": t["b"] * 3, "n": t["n"] * 4}

    found = jacobian(fun)(tree)
    for name, factor in [("a", 2), ("b", 3), ("n", 4)]:
        assert found[name][name].dtype == tree[name].dtype
        np.testing.assert_array_equal(found[name][name].astype(jnp.float32), factor * jnp.eye(2))
    assert not found["a"]["b"].any()
    assert found["a"]["i"] is None


@each
def test_arrays_without_elements_are_differentiated(derive):
    assert derive(lambda x: x * x)(jnp.ones((0, 2))).size == 0
    assert derive(lambda x: jnp.sum(x * x))(jnp.ones(0)).size == 0


@each
def test_scalars_have_scalar_derivatives(derive):
    assert derive(lambda x: x**3)(jnp.array(2.0)).shape == ()


# ----------------------------------------------------------------------------- what and where


@each
def test_has_aux_returns_anything_besides(derive):
    found, aux = derive(lambda x: (x * x, ("aux", x, jnp.tanh)), has_aux=True)(X)
    np.testing.assert_allclose(found, derive(lambda x: x * x)(X))
    assert (aux[0], aux[2]) == ("aux", jnp.tanh)
    np.testing.assert_array_equal(aux[1], X)


def test_has_aux_may_be_given_by_position():
    assert filter_jacfwd(lambda x: (x, "aux"), True)(X)[1] == "aux"


@each
def test_keyword_arguments_are_handed_on(derive):
    found = derive(lambda x, *, k: x * k)(X, k=X)
    np.testing.assert_array_equal(found, derive(lambda x: x * X)(X))


@each
def test_the_first_argument_may_be_given_by_name(derive):
    np.testing.assert_array_equal(derive(lambda x: x * x)(x=X), derive(lambda x: x * x)(X))


@each_jacobian
def test_argnums_and_argnames_choose_the_argument(jacobian):
    def fun(x, y):
        return x[:, None] * y[None, :]

    expected = jax.jacfwd(fun, 1)(X, Y)
    np.testing.assert_allclose(jacobian(fun, argnums=1)(X, Y), expected)
    np.testing.assert_allclose(jacobian(fun, argnames="y")(X, Y), expected)
    np.testing.assert_allclose(jacobian(fun, argnames="y")(X, y=Y), expected)


@each_jacobian
def test_several_arguments_give_a_tuple_in_place_of_the_argument(jacobian):
    found = jacobian(lambda x, y: {"o": x * y[0]}, argnums=(0, 1))(X, Y)
    assert type(found["o"]) is tuple
    np.testing.assert_allclose(found["o"][0], jnp.eye(2) * Y[0])
    np.testing.assert_allclose(found["o"][1], X[:, None] * jnp.array([[1.0, 0, 0]]))


@each_jacobian
def test_wrt_chooses_a_part_of_the_argument(jacobian):
    for wrt in (lambda m: m.bias, lambda leaf: ec.is_array(leaf) and leaf.ndim == 0):
        found = jacobian(lambda m, x: m(x), wrt=wrt)(affine(), X)
        assert found.weight is None
        assert found.bias.shape == (2,)


def test_wrt_and_argnums_choose_in_the_hessian_both_times():
    hessian = filter_hessian(lambda x, m: m(x).sum(), argnums=1, wrt=lambda m: m.bias)(X, affine())
    assert hessian.weight is None
    assert hessian.bias.weight is None
    assert hessian.bias.bias.shape == ()


@each_jacobian
def test_holomorphic_functions_have_complex_derivatives(jacobian):
    z = jnp.array([1 + 2j, 3.0])
    found = jacobian(lambda z: z * z, holomorphic=True)(z)
    np.testing.assert_allclose(found, jnp.diag(2 * z))


def test_the_hessian_of_a_holomorphic_function_is_complex():
    found = filter_hessian(lambda z: (z**3).sum(), holomorphic=True)(jnp.array([1 + 2j]))
    np.testing.assert_allclose(found, [[6 + 12j]])


def test_forward_mode_takes_real_numbers_to_complex_ones():
    found = filter_jacfwd(lambda x: jax.lax.complex(x, 2 * x))(X)
    np.testing.assert_array_equal(found, np.eye(2) * (1 + 2j))


# ------------------------------------------------------------------------------- the wrapper


@each
def test_it_is_a_module_that_looks_like_the_function(derive):
    def fun(x, *, k=1.0):
        "Squares."
        return x * x

    wrapped = derive(fun)
    assert isinstance(wrapped, ec.Module)
    assert (wrapped.__name__, wrapped.__doc__) == ("fun", "Squares.")
    assert inspect.signature(wrapped) == inspect.signature(fun)
    assert inspect.unwrap(wrapped) is fun


@each
def test_it_decorates_with_options_and_without(derive):
    @derive
    def plain(x):
        return x * x

    @derive(has_aux=True)
    def with_aux(x):
        return x * x, "aux"

    np.testing.assert_array_equal(plain(X), with_aux(X)[0])


@each_jacobian
def test_it_decorates_a_method(jacobian):
    class Scale(ec.Module):
        factor: jax.Array
        name: str

        @jacobian
        def scaled(self, x):
            return self.factor * x

        @jacobian
        @classmethod
        def doubled(cls, x):
            return 2 * x

    found = Scale(jnp.array(2.0), "two").scaled(X)
    np.testing.assert_array_equal(found.factor, X)
    assert found.name is None
    np.testing.assert_array_equal(Scale.doubled(X), 2 * jnp.eye(2))


@each
def test_a_callable_module_is_wrapped_and_its_arrays_are_leaves(derive):
    wrapped = derive(affine())
    assert len(jax.tree.leaves(ec.filter(wrapped, ec.is_array))) == 2
    np.testing.assert_allclose(wrapped(X), derive(lambda x: affine()(x))(X))


@each
def test_it_works_under_jit_vmap_and_grad(derive):
    def total(x):
        return derive(lambda x: (x**3, "text"))(x)[0].sum()

    np.testing.assert_allclose(filter_jit(total)(X), total(X), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(total)(jnp.stack([X, X])), [total(X)] * 2, rtol=1e-6)
    assert jax.grad(total)(X).shape == (2,)


def test_a_function_without_a_transpose_has_a_jacobian_in_forward_mode():
    def power(x):
        return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]

    np.testing.assert_allclose(filter_jacfwd(power)(X), jnp.diag(4 * X**3))


# --------------------------------------------------------------------------------- mistakes


@each
def test_nothing_to_differentiate_is_reported_once_and_gives_none(derive):
    def unused(i, x):
        return x

    unused.__qualname__ += derive.__name__
    with pytest.warns(EclipticWarning, match="with respect to `i` is empty"):
        assert derive(unused)(jnp.arange(2), X) is None
    assert derive(unused)(jnp.arange(2), X) is None


def test_complex_arguments_need_holomorphic_in_forward_mode():
    with pytest.raises(ArgumentTypeError, match=r"`filter_jacfwd` needs real .*`t\['z'\]`"):
        filter_jacfwd(lambda t: t["z"])({"z": Z})


def test_complex_outputs_need_holomorphic_in_reverse_mode():
    with pytest.raises(ArgumentTypeError, match=r"`filter_jacrev` needs real .*`out\['z'\]`"):
        filter_jacrev(lambda x: {"z": jax.lax.complex(x, x)})(X)


@each_jacobian
def test_holomorphic_needs_complex_arguments(jacobian):
    with pytest.raises(ArgumentTypeError, match="`holomorphic=True` is for complex.*`x`.*float32"):
        jacobian(lambda x: jax.lax.complex(x, x), holomorphic=True)(X)


@each_jacobian
def test_holomorphic_needs_complex_outputs(jacobian):
    with pytest.raises(ArgumentTypeError, match="the output of .* at `out` has dtype float32"):
        jacobian(jnp.abs, holomorphic=True)(Z)


@each
def test_no_pair_with_has_aux_is_an_error(derive):
    with pytest.raises(ArgumentTypeError, match="must return a pair"):
        derive(lambda x: x, has_aux=True)(X)


@each
def test_has_aux_must_be_a_boolean(derive):
    with pytest.raises(ArgumentError, match="`has_aux` must be True or False"):
        derive(lambda x: x, X)


@each
def test_what_cannot_be_called_is_an_error(derive):
    with pytest.raises(ArgumentTypeError, match=f"`{derive.__name__}` needs a callable"):
        derive(3)


@each
def test_a_missing_argument_is_an_error(derive):
    with pytest.raises(ArgumentTypeError, match="is missing"):
        derive(lambda x: x)()
