"""`filter_custom_jvp`."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError, ArgumentTypeError, RuleError, StructureError
from ecliptic.transform import (
    filter_custom_jvp,
    filter_grad,
    filter_jit,
    filter_jvp,
    filter_linearize,
    filter_vmap,
)

X, Y = jnp.array([0.5, -1.0]), jnp.array([1.0, 3.0])
ONE, TWO = jnp.array(1.0), jnp.array(2.0)


def product():
    """A product whose rule says ten times the truth, and what it was given."""
    seen = []

    @filter_custom_jvp
    def fun(x, y, *, name=None):
        "Multiplies."
        return x["a"] * y, x["a"] + 0, y + 0, name, jnp.arange(2)

    @fun.def_jvp
    def rule(primals, tangents, *, name=None):
        seen.append(tangents)
        (x, y), (dx, dy) = primals, tangents
        terms = [] if dx["a"] is None else [10 * dx["a"] * y]
        terms += [] if dy is None else [10 * x["a"] * dy]
        return fun(x, y, name=name), (sum(terms), dx["a"], dy, None, None)

    return fun, seen


def tree(a):
    return {"a": a, "i": jnp.array(1), "s": "text", "f": jnp.tanh, "n": None}


def no_tangents(a):
    return {"a": a, "i": None, "s": None, "f": None, "n": None}


# ------------------------------------------------------------------------------------ values


def test_a_call_returns_what_the_function_returns():
    out = product()[0](tree(ONE), TWO, name="out")
    assert [float(x) for x in out[:3]] == [2, 1, 2]
    assert out[3] == "out"


def test_the_rule_makes_the_tangent():
    fun, _ = product()
    _, slopes = filter_jvp(fun, (tree(ONE), TWO), (no_tangents(ONE), ONE))
    assert float(slopes[0]) == 30


def test_tangents_are_none_for_what_does_not_change_or_has_no_derivative():
    fun, seen = product()
    _, slopes = filter_jvp(fun, (tree(ONE), TWO), (no_tangents(ONE), None))
    assert seen == [(no_tangents(ONE), None)]
    assert slopes[2:] == (None, None, None)


def test_a_tangent_that_is_none_stays_symbolic_when_nested():
    fun, seen = product()

    def inner(a):
        return filter_jvp(fun, (tree(a), TWO), (no_tangents(ONE), None))[1]

    slopes, second = filter_jvp(inner, (ONE,), (ONE,))
    assert all(dy is None for _, dy in seen)
    assert slopes[2] is None
    assert second[1] is None


@pytest.mark.parametrize(
    "wrap",
    [jax.jit, jax.checkpoint, filter_jit, lambda f: lambda a: jax.jit(jax.jit(f))(a)],
    ids=["jit", "checkpoint", "filter_jit", "jit-jit"],
)
def test_the_rule_holds_under_transformations(wrap):
    fun, seen = product()
    assert float(jax.grad(wrap(lambda a: fun(tree(a), TWO)[0]))(ONE)) == 20
    assert seen[-1][1] is None


def test_the_rule_holds_in_and_around_vmap():
    fun, seen = product()

    def apply(a):
        return fun(tree(a), TWO)[0]

    np.testing.assert_array_equal(jax.vmap(jax.grad(apply))(X), [20, 20])
    np.testing.assert_array_equal(jax.grad(lambda x: jax.vmap(apply)(x).sum())(X), [20, 20])
    np.testing.assert_array_equal(filter_vmap(filter_grad(apply))(X), [20, 20])
    assert all(dy is None for _, dy in seen)


def test_the_rule_holds_in_scan():
    fun, _ = product()

    def apply(a):
        return jax.lax.scan(lambda c, _: (fun(tree(c), TWO)[0], None), a, None, length=2)[0]

    assert float(jax.grad(apply)(ONE)) == 400
    assert float(jax.jit(jax.grad(apply))(ONE)) == 400


def test_the_rule_is_itself_differentiated():
    @filter_custom_jvp
    def square(x):
        return x * x

    @square.def_jvp
    def _(primals, tangents):
        (x,), (dx,) = primals, tangents
        return square(x), 2 * x * dx

    assert float(jax.grad(jax.grad(lambda x: square(x) * x))(TWO)) == 12
    np.testing.assert_allclose(jax.hessian(lambda x: square(x).sum())(X), 2 * jnp.eye(2))
    assert float(filter_linearize(square, TWO)[1](ONE)) == 4


def test_the_rule_may_leave_out_the_tangent_of_an_output():
    @filter_custom_jvp
    def fun(x):
        return x, (x, x)

    @fun.def_jvp
    def _(primals, tangents):
        return fun(*primals), (tangents[0], None)

    assert filter_jvp(fun, (ONE,), (ONE,))[1] == (ONE, (None, None))
    assert float(jax.grad(lambda x: sum(fun(x)[1]))(ONE)) == 0


def test_modules_go_in_and_out():
    class Scale(ec.Module):
        factor: jax.Array
        activation: object

    @filter_custom_jvp
    def fun(model, x):
        return Scale(model.factor * x, model.activation)

    @fun.def_jvp
    def _(primals, tangents):
        (model, x), (dmodel, dx) = primals, tangents
        assert dx is None
        assert dmodel.activation is None
        return fun(model, x), Scale(7 * dmodel.factor, None)

    model = Scale(ONE, jnp.tanh)
    assert fun(model, TWO).activation is jnp.tanh
    assert float(filter_grad(lambda m: fun(m, TWO).factor)(model).factor) == 7


@pytest.mark.parametrize("value", ["text", None, jnp.tanh, 3, (), jnp.arange(2)], ids=repr)
def test_without_derivatives_anything_goes_through(value):
    out = filter_custom_jvp(lambda x: x)
    out.def_jvp(lambda primals, tangents: None)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)) if ec.is_array(a)
                                     else a is b, out(value), value))  # fmt: skip


def test_keys_and_integers_are_arguments():
    @filter_custom_jvp
    def noisy(x, key, i):
        return x + jax.random.normal(key) * i.astype(jnp.float32), key

    @noisy.def_jvp
    def _(primals, tangents):
        assert tangents[1:] == (None, None)
        return noisy(*primals), (tangents[0] * 5, None)

    assert float(jax.grad(lambda x: noisy(x, jax.random.key(0), jnp.array(2))[0])(ONE)) == 5


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_dtypes_are_kept(dtype):
    @filter_custom_jvp
    def fun(x):
        return x * x

    fun.def_jvp(lambda primals, tangents: (fun(*primals), tangents[0] * 3))
    assert jax.grad(fun)(jnp.ones((), dtype)).dtype == dtype


def test_a_python_number_and_a_numpy_array_are_differentiated():
    fun = filter_custom_jvp(lambda x: x * x)
    fun.def_jvp(lambda primals, tangents: (fun(*primals), tangents[0] * 3))
    assert float(jax.grad(fun)(2.0)) == 3
    assert float(jax.grad(fun)(np.float32(2))) == 3


def test_a_rule_may_return_a_python_number_as_the_output():
    fun = filter_custom_jvp(lambda x: x * 0 + 1)
    fun.def_jvp(lambda primals, tangents: (1.0, tangents[0] * 3))
    assert float(jax.grad(fun)(TWO)) == 3
    assert float(jax.jit(jax.grad(fun))(TWO)) == 3


# ------------------------------------------------------------------------- keyword arguments


def test_keyword_arguments_reach_function_and_rule():
    fun, _ = product()
    out, _ = filter_jvp(fun, (tree(ONE), TWO), (no_tangents(ONE), None), name="out")
    assert out[3] == "out"
    assert fun(tree(ONE), TWO, name=X)[3] is not None


def test_a_differentiated_keyword_argument_is_an_error_by_name():
    fun = filter_custom_jvp(lambda x, *, scale: x * scale["s"])
    fun.def_jvp(lambda primals, tangents, *, scale: None)
    with pytest.raises(RuleError, match=r"says nothing of `scale\['s'\]`.*by position"):
        jax.grad(lambda s: fun(ONE, scale={"a": ONE, "s": s}))(ONE)


def test_differentiated_arrays_of_the_function_itself_are_an_error_by_path():
    class Scale(ec.Module):
        factor: jax.Array

        def __call__(self, x):
            return self.factor * x

    def apply(factor):
        fun = filter_custom_jvp(Scale(factor))
        fun.def_jvp(lambda primals, tangents: (fun(*primals), tangents[0]))
        return fun(ONE)

    assert float(apply(TWO)) == 2
    assert float(jax.jit(apply)(TWO)) == 2
    with pytest.raises(RuleError, match=r"says nothing of `.*Scale.factor`"):
        jax.grad(apply)(TWO)


# --------------------------------------------------------------------------- other decorators


def test_defjvps_adds_the_tangents_of_all_arguments():
    @filter_custom_jvp
    def fun(x, y, z):
        return x * y, "text"

    fun.defjvps(
        lambda dx, out, x, y, z: (dx * y, None),
        lambda dy, out, x, y, z: (out[0] / y * dy, None),
        None,
    )
    _, (slope, text) = filter_jvp(fun, (ONE, TWO, "z"), (ONE, ONE, None))
    assert float(slope) == 3
    assert text is None
    assert float(filter_jvp(fun, (ONE, TWO, "z"), (None, ONE, None))[1][0]) == 1


def test_defjvps_counts_the_arguments():
    fun = filter_custom_jvp(lambda x, y: x)
    fun.defjvps(lambda dx, out, x: dx)
    with pytest.raises(RuleError, match="rules for 1 positional arguments .* called with 2"):
        jax.grad(fun)(ONE, TWO)


def test_defjvp_is_deprecated_and_gives_zeros():
    fun = filter_custom_jvp(lambda x, y, i: x * y)
    seen = []

    def rule(primals, tangents):
        seen.append(tangents)
        return fun(*primals), tangents[0] * 3

    with pytest.warns(DeprecationWarning, match="use `def_jvp`"):
        fun.defjvp(rule)
    assert float(jax.grad(fun)(ONE, TWO, jnp.array(1))) == 3
    assert float(seen[0][1]) == 0
    assert seen[0][2] is None


# ------------------------------------------------------------------------------- the wrapper


def test_it_is_a_module_that_looks_like_the_function():
    fun, _ = product()
    assert isinstance(fun, ec.Module)
    assert isinstance(fun, filter_custom_jvp)
    assert (fun.__name__, fun.__doc__) == ("fun", "Multiplies.")
    assert inspect.signature(fun) == inspect.signature(fun.__wrapped__)


def test_it_has_the_signature_and_docstring_of_a_decorator_itself():
    assert list(inspect.signature(filter_custom_jvp).parameters) == ["fn"]
    assert "Gives a function" in filter_custom_jvp.__doc__


def test_a_rule_decorator_returns_the_rule():
    def rule(primals, tangents):
        return None

    assert filter_custom_jvp(lambda x: x).def_jvp(rule) is rule


def test_a_rule_that_is_set_later_counts_for_copies_of_the_tree():
    fun = filter_custom_jvp(lambda x: x)
    copy = jax.tree.map(lambda leaf: leaf, fun)
    fun.def_jvp(lambda primals, tangents: (fun(*primals), tangents[0] * 3))
    assert float(jax.grad(copy)(ONE)) == 3


def test_it_decorates_methods():
    class Scale(ec.Module):
        factor: jax.Array

        @filter_custom_jvp
        def scaled(self, x):
            return self.factor * x

        @scaled.def_jvp
        def _(primals, tangents):
            (self, x), (dself, dx) = primals, tangents
            assert dx is None
            return self.scaled(x), 9 * dself.factor

        @filter_custom_jvp
        @classmethod
        def doubled(cls, x):
            return 2 * x

        doubled.def_jvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 9))

    scale = Scale(TWO)
    assert float(scale.scaled(ONE)) == 2
    assert float(filter_grad(lambda s: s.scaled(ONE))(scale).factor) == 9
    assert float(jax.grad(Scale.doubled)(ONE)) == 9


def test_it_is_held_in_a_module_and_goes_through_jit():
    fun = filter_custom_jvp(jnp.sin)
    fun.def_jvp(lambda primals, tangents: (fun(*primals), tangents[0] * 3))

    class Holder(ec.Module):
        activation: object

    out = filter_jit(filter_grad(lambda x, h: h.activation(x)))(ONE, Holder(fun))
    assert float(out) == 3


def test_it_leaks_nothing():
    fun, _ = product()
    with jax.checking_leaks():
        assert float(jax.jit(jax.grad(lambda a: fun(tree(a), TWO)[0]))(ONE)) == 20


# --------------------------------------------------------------------------------- mistakes


def with_rule(rule):
    fun = filter_custom_jvp(lambda x, y: {"p": x * y, "s": "text"})
    fun.def_jvp(rule)
    return lambda: filter_jvp(fun, (X, Y), (X, None))


def test_a_call_without_rule_says_how_to_add_one():
    @filter_custom_jvp
    def fun(x):
        return x

    with pytest.raises(RuleError, match=r"`.*fun` .* has no rule yet.*def_jvp"):
        fun(ONE)


def test_a_rule_that_returns_no_pair_is_an_error():
    with pytest.raises(RuleError, match=r"must return a pair, `\(primal_out, tangent_out\)`"):
        with_rule(lambda primals, tangents: primals[0])()


def test_another_structure_of_the_tangent_is_named_by_path():
    with pytest.raises(StructureError, match=r"`tangent_out\['q'\]`"):
        with_rule(lambda p, t: ({"p": p[0], "s": "text"}, {"q": t[0]}))()


def test_another_shape_of_the_tangent_is_named_by_path():
    with pytest.raises(ArgumentError, match=r"`tangent_out\['p'\]` has shape \(3,\)"):
        with_rule(lambda p, t: ({"p": p[0], "s": "text"}, {"p": jnp.ones(3), "s": None}))()


def test_another_dtype_of_the_tangent_is_named_by_path():
    half = jnp.ones(2, jnp.float16)
    with pytest.raises(ArgumentTypeError, match=r"`tangent_out\['p'\]` has dtype float16"):
        with_rule(lambda p, t: ({"p": p[0], "s": "text"}, {"p": half, "s": None}))()


def test_a_tangent_of_what_has_none_is_named_by_path():
    with pytest.raises(ArgumentTypeError, match=r"`tangent_out\['s'\]` must be None"):
        with_rule(lambda p, t: ({"p": p[0], "s": "text"}, {"p": t[0], "s": "text"}))()


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ((X, "text"), "a tree of another structure"),
        ({"p": jnp.ones(3), "s": "text"}, r"`out\['p'\]` it returned an array of shape \(3,\)"),
        ({"p": "p", "s": "text"}, r"`out\['p'\]` it returned 'p' of type `str`"),
    ],
)
def test_a_rule_with_another_output_than_the_function_is_an_error_under_jit(out, words):
    fun = filter_custom_jvp(lambda x, y: {"p": x * y, "s": "text"})
    fun.def_jvp(lambda p, t: (out, None))
    with pytest.raises(RuleError, match=words):
        jax.jvp(jax.jit(lambda x: fun(x, Y)["p"]), (X,), (X,))


def test_what_cannot_be_called_is_an_error():
    with pytest.raises(ArgumentTypeError, match="`filter_custom_jvp` needs a callable"):
        filter_custom_jvp(3)
    for name in ("def_jvp", "defjvps"):
        with pytest.raises(ArgumentTypeError, match=f"`{name}` needs a callable"):
            getattr(filter_custom_jvp(jnp.sin), name)(3)
