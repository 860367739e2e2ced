"""`filter_custom_vjp`."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError, ArgumentTypeError, RuleError, StructureError
from ecliptic.transform import (
    filter_custom_vjp,
    filter_grad,
    filter_jit,
    filter_vjp,
    filter_vmap,
)

X, Y = jnp.array([0.5, -1.0]), jnp.array([1.0, 3.0])
ONE, TWO = jnp.array(1.0), jnp.array(2.0)


def product():
    """A product whose rules say ten times the truth, and what they were given."""
    seen = {"fwd": [], "bwd": []}

    @filter_custom_vjp
    def fun(v, y, *, name=None):
        "Multiplies."
        return v["a"] * y, v["b"] + 0, name, jnp.arange(2)

    @fun.def_fwd
    def fwd(perturbed, v, y, *, name=None):
        seen["fwd"].append(perturbed)
        return fun(v, y, name=name), {"y": y, "text": "residual", "f": jnp.tanh, "n": None}

    @fun.def_bwd
    def bwd(residuals, grad_out, perturbed, v, y, *, name=None):
        seen["bwd"].append((residuals, grad_out, perturbed, name))
        grad = grad_out[0]
        return {
            "a": None if grad is None else 10 * grad * residuals["y"],
            "b": grad_out[1],
            "s": None,
            "i": None,
        }

    return fun, seen


def tree(a, b=TWO):
    return {"a": a, "b": b, "s": "text", "i": jnp.array(1)}


# ------------------------------------------------------------------------------------ values


def test_a_call_returns_what_the_function_returns():
    out = product()[0](tree(ONE), TWO, name="out")
    assert [float(x) for x in out[:2]] == [2, 2]
    assert out[2] == "out"


def test_the_rules_make_the_cotangent():
    fun, _ = product()
    grad = filter_grad(lambda v: sum(fun(v, TWO)[:2]))(tree(ONE))
    assert (float(grad["a"]), float(grad["b"])) == (20, 1)
    assert (grad["s"], grad["i"]) == (None, None)


def test_perturbed_says_of_each_leaf_whether_it_is_differentiated():
    fun, seen = product()
    jax.grad(lambda a: fun(tree(a), TWO)[0])(ONE)
    assert seen["fwd"] == [{"a": True, "b": False, "s": False, "i": False}]
    assert seen["bwd"][0][2] == seen["fwd"][0]


def test_residuals_are_any_tree():
    fun, seen = product()
    jax.grad(lambda a: fun(tree(a), TWO)[0])(ONE)
    residuals = seen["bwd"][0][0]
    assert residuals == {"y": TWO, "text": "residual", "f": jnp.tanh, "n": None}


def test_grad_out_is_none_for_what_is_not_used_or_has_no_derivative():
    fun, seen = product()
    jax.grad(lambda a: fun(tree(a), TWO, name="out")[0])(ONE)
    assert seen["bwd"][0][1] == (ONE, None, None, None)
    filter_grad(lambda v: fun(v, TWO)[1])(tree(ONE))
    assert seen["bwd"][1][1] == (None, ONE, None, None)


def test_keyword_arguments_reach_function_and_rules():
    fun, seen = product()
    jax.grad(lambda a: fun(tree(a), y=TWO, name="out")[0])(ONE)
    assert seen["bwd"][0][3] == "out"


def test_the_first_argument_may_be_given_by_name():
    fun, _ = product()
    assert float(jax.grad(lambda a: fun(y=TWO, v=tree(a))[0])(ONE)) == 20


@pytest.mark.parametrize(
    "wrap",
    [jax.jit, jax.checkpoint, filter_jit, lambda f: lambda a: jax.jit(jax.jit(f))(a)],
    ids=["jit", "checkpoint", "filter_jit", "jit-jit"],
)
def test_the_rules_hold_under_transformations(wrap):
    fun, seen = product()
    assert float(jax.grad(wrap(lambda a: fun(tree(a), TWO)[0]))(ONE)) == 20
    assert seen["bwd"][-1][2]["b"] is False


def test_the_rules_hold_in_and_around_vmap():
    fun, _ = product()

    def apply(a):
        return fun(tree(a), TWO)[0]

    np.testing.assert_array_equal(jax.vmap(jax.grad(apply))(X), [20, 20])
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.grad(apply)))(X), [20, 20])
    np.testing.assert_array_equal(filter_vmap(filter_grad(apply))(X), [20, 20])


@pytest.mark.parametrize("used", [0, 1])
def test_the_gradient_of_a_vmap_of_which_one_output_is_used(used):
    fun, seen = product()

    def apply(x):
        return jax.vmap(lambda a: fun(tree(a, a), TWO)[used])(x).sum()

    np.testing.assert_array_equal(jax.grad(apply)(X), [[20, 20], [1, 1]][used])
    assert seen["bwd"][0][1][1 - used] is None


def test_the_rules_hold_in_scan():
    fun, _ = product()

    def apply(a):
        return jax.lax.scan(lambda c, y: (fun(tree(c), y)[0], None), a, Y)[0]

    assert float(jax.grad(apply)(ONE)) == 300
    assert float(jax.jit(jax.grad(apply))(ONE)) == 300


def test_the_backward_rule_is_itself_differentiated_in_reverse():
    @filter_custom_vjp
    def cube(x):
        return x**3

    cube.def_fwd(lambda perturbed, x: (cube(x), None))
    cube.def_bwd(lambda residuals, grad_out, perturbed, x: grad_out * 3 * x**2)
    assert float(jax.grad(jax.grad(cube))(TWO)) == 12


def test_forward_over_reverse_works_if_the_forward_rule_is_differentiable():
    @filter_custom_vjp
    def cube(x, name):
        return x**3

    cube.def_fwd(lambda perturbed, x, name: (x**3, (x, name)))
    cube.def_bwd(lambda residuals, grad_out, perturbed, x, name: grad_out * 3 * residuals[0] ** 2)
    assert float(jax.hessian(lambda x: cube(x, "name"))(TWO)) == 12
    np.testing.assert_allclose(
        jax.jit(jax.hessian(lambda x: cube(x, "s").sum()))(X), jnp.diag(6 * X)
    )


def test_forward_mode_is_refused_by_jax():
    fun, _ = product()
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda a: fun(tree(a), TWO)[0], (ONE,), (ONE,))


def test_modules_go_in_and_out():
    class Scale(ec.Module):
        factor: jax.Array
        activation: object

    @filter_custom_vjp
    def fun(model, x):
        return Scale(model.factor * x, model.activation)

    fun.def_fwd(lambda perturbed, model, x: (fun(model, x), x))

    @fun.def_bwd
    def _(x, grad_out, perturbed, model, _x):
        assert perturbed.factor
        assert not perturbed.activation
        assert grad_out.activation is None
        return Scale(7 * grad_out.factor * x, None)

    model = Scale(ONE, jnp.tanh)
    assert fun(model, TWO).activation is jnp.tanh
    assert float(filter_grad(lambda m: fun(m, TWO).factor)(model).factor) == 14


def constant(grad):
    """The identity, with a backward rule that returns `grad`."""
    fun = filter_custom_vjp(lambda v: v)
    fun.def_fwd(lambda perturbed, v: (v, None))
    fun.def_bwd(lambda residuals, grad_out, perturbed, v: grad)
    return lambda v: filter_vjp(fun, v)[1](jax.tree.map(lambda x: x if ec.is_inexact_array(x)
                                                        else None, v))[0]  # fmt: skip


def test_none_is_a_cotangent_of_zero_at_a_leaf_and_above():
    assert jax.tree.map(float, constant({"a": None, "b": ONE})({"a": ONE, "b": ONE})) == {
        "a": 0,
        "b": 1,
    }
    assert jax.tree.map(float, constant(None)({"a": ONE, "b": ONE})) == {"a": 0, "b": 0}


def test_a_cotangent_of_what_has_none_is_dropped():
    assert constant({"a": ONE, "s": "text"})({"a": ONE, "s": "text"})["s"] is None


@pytest.mark.parametrize("grad", [3.0, 3, np.float32(3), jnp.array(3), jnp.array(3, jnp.bfloat16)])
def test_a_cotangent_of_another_precision_is_cast(grad):
    found = constant(grad)(TWO)
    assert found.dtype == jnp.float32
    assert float(found) == 3


def test_a_python_number_and_a_numpy_array_are_differentiated():
    fun = filter_custom_vjp(lambda x: x * x)
    fun.def_fwd(lambda perturbed, x: (x * x, perturbed))
    fun.def_bwd(lambda residuals, grad_out, perturbed, x: 3.0 if residuals and perturbed else None)
    assert float(jax.grad(fun)(2.0)) == 3
    assert float(jax.grad(fun)(np.float32(2))) == 3


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_dtypes_are_kept(dtype):
    fun = filter_custom_vjp(lambda x: x * x)
    fun.def_fwd(lambda perturbed, x: (x * x, None))
    fun.def_bwd(lambda residuals, grad_out, perturbed, x: grad_out * 3)
    assert jax.grad(fun)(jnp.ones((), dtype)).dtype == dtype


def test_keys_and_integers_are_arguments_and_residuals():
    key = jax.random.key(0)
    fun = filter_custom_vjp(lambda v, i: v[0] * i.astype(jnp.float32))
    fun.def_fwd(lambda perturbed, v, i: (fun(v, i), (v[1], i)))
    fun.def_bwd(lambda res, g, perturbed, v, i: (g * jax.random.key_data(res[0]).size, None))
    assert float(jax.jit(jax.grad(lambda x: fun((x, key), jnp.array(3))))(ONE)) == 2


@pytest.mark.parametrize("value", ["text", None, jnp.tanh, 3, ()], ids=repr)
def test_without_arrays_the_function_is_just_called(value):
    fun = filter_custom_vjp(lambda x: x)
    fun.def_fwd(lambda *args: None)
    fun.def_bwd(lambda *args: None)
    assert fun(value) == value


# ------------------------------------------------------------------- what is not differentiated


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda fun, a: fun(tree(ONE), a), "y"),
        (lambda fun, a: fun(tree(a), {"k": [ONE, a]}), r"y\['k'\]\[1\]"),
        (lambda fun, a: fun(tree(a), TWO, name=(a,)), r"name\[0\]"),
    ],
)
def test_a_differentiated_argument_after_the_first_is_an_error_by_path(call, path):
    fun = filter_custom_vjp(lambda v, y, *, name=None: v["a"])
    fun.def_fwd(lambda *args, **kwargs: None)
    fun.def_bwd(lambda *args, **kwargs: None)
    with pytest.raises(RuleError, match=f"says nothing of `{path}`.*the first argument only"):
        jax.grad(lambda a: call(fun, a))(ONE)


def test_differentiated_arrays_of_the_function_itself_are_an_error_by_path():
    class Scale(ec.Module):
        factor: jax.Array

        def __call__(self, x):
            return self.factor * x

    def apply(factor):
        fun = filter_custom_vjp(Scale(factor))
        fun.def_fwd(lambda perturbed, x: (x, None))
        fun.def_bwd(lambda residuals, grad_out, perturbed, x: grad_out)
        return fun(ONE)

    assert float(apply(TWO)) == 2
    with pytest.raises(RuleError, match=r"says nothing of `.*Scale.factor`"):
        jax.grad(apply)(TWO)


# --------------------------------------------------------------------------- the older rules


def test_defvjp_is_deprecated_and_gives_zeros():
    fun = filter_custom_vjp(lambda v, y: (v * y, v, jnp.arange(2)))
    seen = []

    def bwd(residuals, grad_out, v, y):
        seen.append((residuals, grad_out))
        return grad_out[0] * 3

    with pytest.warns(DeprecationWarning, match="use `def_fwd` and `def_bwd`"):
        fun.defvjp(lambda v, y: (fun(v, y), (y, "text")), bwd)
    assert float(jax.grad(lambda v: fun(v, TWO)[0])(ONE)) == 3
    ((residuals, grad_out),) = seen
    assert residuals == (TWO, "text")
    assert float(grad_out[1]) == 0
    assert grad_out[2] is None


# ------------------------------------------------------------------------------- the wrapper


def test_it_is_a_module_that_looks_like_the_function():
    fun, _ = product()
    assert isinstance(fun, ec.Module)
    assert isinstance(fun, filter_custom_vjp)
    assert (fun.__name__, fun.__doc__) == ("fun", "Multiplies.")
    assert inspect.signature(fun) == inspect.signature(fun.__wrapped__)


def test_it_has_the_signature_and_docstring_of_a_decorator_itself():
    assert list(inspect.signature(filter_custom_vjp).parameters) == ["fn"]
    assert "Gives a function" in filter_custom_vjp.__doc__


def test_rule_decorators_return_the_rule():
    def rule(*args):
        return None

    fun = filter_custom_vjp(lambda x: x)
    assert fun.def_fwd(rule) is rule
    assert fun.def_bwd(rule) is rule


def test_it_decorates_methods():
    class Scale(ec.Module):
        factor: jax.Array

        @filter_custom_vjp
        def scaled(self, x):
            return self.factor * x

        @scaled.def_fwd
        def _(perturbed, self, x):
            return self.scaled(x), None

        @scaled.def_bwd
        def _(residuals, grad_out, perturbed, self, x):
            return Scale(9 * grad_out)

        @filter_custom_vjp
        @classmethod
        def doubled(cls, x):
            return 2 * x

        doubled.def_fwd(lambda perturbed, x: (2 * x, None))
        doubled.def_bwd(lambda residuals, grad_out, perturbed, x: 9 * grad_out)

    scale = Scale(TWO)
    assert float(scale.scaled(ONE)) == 2
    assert float(filter_grad(lambda s: s.scaled(ONE))(scale).factor) == 9
    assert float(jax.grad(Scale.doubled)(ONE)) == 9


def test_it_leaks_nothing():
    fun = filter_custom_vjp(lambda v, y: v["a"] * y)
    fun.def_fwd(lambda perturbed, v, y: (fun(v, y), (y, "text")))
    fun.def_bwd(lambda res, g, perturbed, v, y: {"a": 10 * g * y, "b": None, "s": None, "i": None})
    with jax.checking_leaks():
        assert float(jax.jit(jax.grad(lambda a: fun(tree(a), TWO)))(ONE)) == 20


# --------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("missing", ["def_fwd", "def_bwd"])
def test_a_call_without_a_rule_says_which(missing):
    fun = filter_custom_vjp(jnp.sin)
    if missing == "def_bwd":
        fun.def_fwd(lambda perturbed, x: (x, None))
    with pytest.raises(RuleError, match=f"`{missing}` was not called yet"):
        fun(ONE)


def test_a_call_without_the_first_argument_says_so():
    fun, _ = product()
    with pytest.raises(ArgumentTypeError, match="first argument of .* is missing"):
        fun(y=TWO)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((X, X, X), r"must return a pair, `\(out, residuals\)`; it returned a tuple of length 3"),
        (((X,), None), "a tree of another structure"),
        ((jnp.ones(3), None), r"`out` it returned an array of shape \(3,\)"),
    ],
)
def test_a_forward_rule_that_returns_something_else_is_an_error(answer, words):
    fun = filter_custom_vjp(lambda x: x * 2)
    fun.def_fwd(lambda perturbed, x: answer)
    fun.def_bwd(lambda residuals, grad_out, perturbed, x: grad_out)
    with pytest.raises(RuleError, match=words):
        jax.vjp(jax.jit(fun), X)


def test_another_structure_of_the_cotangent_is_named_by_path():
    with pytest.raises(StructureError, match=r"nothing is given at `grad\['b'\]`"):
        constant({"a": ONE})({"a": ONE, "b": ONE})


def test_another_shape_of_the_cotangent_is_named_by_path():
    with pytest.raises(ArgumentError, match=r"shape \(3,\) .* cotangent at `grad\['a'\]`"):
        constant({"a": jnp.ones(3)})({"a": ONE})


@pytest.mark.parametrize("grad", ["text", jnp.array(1j), jnp.tanh], ids=repr)
def test_a_cotangent_that_cannot_be_one_is_named_by_path(grad):
    with pytest.raises(ArgumentTypeError, match=r"as the cotangent at `grad\['a'\]`"):
        constant({"a": grad})({"a": ONE})


def test_what_cannot_be_called_is_an_error():
    with pytest.raises(ArgumentTypeError, match="`filter_custom_vjp` needs a callable"):
        filter_custom_vjp(3)
    for name in ("def_fwd", "def_bwd"):
        with pytest.raises(ArgumentTypeError, match=f"`{name}` needs a callable"):
            getattr(filter_custom_vjp(jnp.sin), name)(3)
