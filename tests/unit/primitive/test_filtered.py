"""Filtered primitives: each rule, over trees with leaves that are no arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive  # noqa: TID251 - as authors of libraries do
from jax.interpreters import ad, batching, mlir  # noqa: TID251

from ecliptic import _jax
from ecliptic.errors import ArgumentError, RuleError
from ecliptic.primitive import (
    filter_primitive_batching,
    filter_primitive_bind,
    filter_primitive_def,
    filter_primitive_jvp,
    filter_primitive_transpose,
    finalise_make_jaxpr,
    register_impl_finalisation,
)

seen = {}


@pytest.fixture(scope="module")
def weigh():
    """Of a dictionary of `x` and `y` and a factor: `factor * x * y` and a label."""
    primitive = Primitive("weigh")
    primitive.multiple_results = True

    def call(tree, factor, label):
        return filter_primitive_bind(primitive, tree, factor, label)

    @filter_primitive_def
    def impl(tree, factor, label):
        return {"out": factor * tree["x"] * tree["y"], "label": label, "none": None}

    @filter_primitive_def
    def abstract(tree, factor, label):
        assert type(tree["x"]) is _jax.ShapedArray
        return {"out": tree["x"], "label": label, "none": None}

    @filter_primitive_jvp
    def jvp(primals, tangents):
        seen["tangents"] = jax.tree.map(
            lambda x: x is not None, tangents[0], is_leaf=lambda x: x is None
        )
        seen["rest"] = tangents[1:]
        (tree, factor, label), t = primals, tangents[0]
        t_out = 0
        for name, other in (("x", "y"), ("y", "x")):
            if t[name] is not None:
                t_out += call({name: t[name], other: tree[other]}, factor, label)["out"]
        return call(*primals), {"out": t_out, "label": None, "none": None}

    @filter_primitive_transpose
    def transpose(inputs, cts):
        tree, factor, _ = inputs
        seen["cts"] = cts
        name, other = ("x", "y") if _jax.is_undefined_primal(tree["x"]) else ("y", "x")
        assert not _jax.is_undefined_primal(tree[other])
        ct = factor * cts["out"] * tree[other]
        return [{name: ct, other: None}, None, None]

    @filter_primitive_batching
    def batch(inputs, axes):
        seen["axes"] = axes
        tree, factor, label = inputs
        x, y = (
            jnp.moveaxis(tree[n], axes[0][n], 0) if axes[0][n] is not None else tree[n][None]
            for n in "xy"
        )
        out = call({"x": x + 0 * y, "y": y + 0 * x}, factor, label)
        return out, {"out": 0, "label": None, "none": None}

    primitive.def_impl(impl)
    primitive.def_abstract_eval(abstract)
    mlir.register_lowering(primitive, mlir.lower_fun(impl, multiple_results=True))
    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose
    batching.primitive_batchers[primitive] = batch
    register_impl_finalisation(primitive)
    return call


X, Y = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])


def test_any_leaves_go_in_and_come_out(weigh):
    out = weigh({"x": X, "y": Y}, 2, "a")
    assert out["label"] == "a"
    assert out["none"] is None
    assert np.array_equal(out["out"], 2 * X * Y)


def test_it_compiles_and_its_static_output_is_there_while_it_is_traced(weigh):
    labels = []

    @jax.jit
    def run(x):
        out = weigh({"x": x, "y": Y}, 2, "a")
        labels.append(out["label"])
        return out["out"]

    assert np.array_equal(run(X), 2 * X * Y)
    assert labels == ["a"]


def test_static_leaves_are_parameters_and_programs_among_them_are_found(weigh):
    program = jax.make_jaxpr(jnp.sin)(1.0)
    jaxpr = jax.make_jaxpr(lambda x: weigh({"x": x, "y": x}, 2, program)["out"])(X)
    static = jaxpr.eqns[0].params["static"]
    assert type(static) is tuple
    assert any(leaf is program for leaf in static)
    assert any(leaf == 2 for leaf in static)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint], ids=str)
def test_it_is_differentiated_both_ways(weigh, wrap):
    f = wrap(lambda x, y: weigh({"x": x, "y": y}, 2, "a")["out"])
    assert np.array_equal(jax.jvp(f, (X, Y), (X, Y))[1], 4 * X * Y)
    gx, gy = jax.grad(lambda x, y: f(x, y).sum(), (0, 1))(X, Y)
    assert np.array_equal(gx, 2 * Y)
    assert np.array_equal(gy, 2 * X)


def test_tangents_that_are_zero_are_none(weigh):
    jax.jvp(lambda x: weigh({"x": x, "y": Y}, 2, "a")["out"], (X,), (X,))
    assert seen["tangents"] == {"x": True, "y": False}
    assert seen["rest"] == (None, None)


def test_a_python_number_that_is_differentiated_is_an_array_to_the_rules(weigh):
    assert jax.grad(lambda x: weigh({"x": x, "y": x}, 2, "a")["out"])(3.0) == 12


def test_cotangents_have_the_structure_of_the_output(weigh):
    jax.grad(lambda x: weigh({"x": x, "y": Y}, 2, "a")["out"].sum())(X)
    assert seen["cts"]["label"] is None
    assert seen["cts"]["out"].shape == (2,)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 0), (1, None)])
def test_it_is_batched(weigh, axes):
    args = [jnp.arange(4.0).reshape(2, 2) + 1 if a is not None else Y for a in axes]
    f = lambda x, y: weigh({"x": x, "y": y}, 2, "a")["out"]
    expected = jax.vmap(lambda x, y: 2 * x * y, axes)(*args)
    assert np.array_equal(jax.vmap(f, axes)(*args), expected)
    assert seen["axes"] == ({"x": axes[0], "y": axes[1]}, None, None)
    assert np.array_equal(jax.jit(jax.vmap(f, axes))(*args), expected)
    assert np.array_equal(jax.vmap(jax.jit(f), axes)(*args), expected)


def test_it_runs_inside_of_a_scan(weigh):
    def step(carry, x):
        return weigh({"x": carry, "y": x}, 2, "a")["out"], None

    gradient = jax.grad(lambda c: jax.lax.scan(step, c, Y)[0])(1.0)
    assert gradient == 4 * 3 * 4


def test_it_is_finalised(weigh):
    program = finalise_make_jaxpr(lambda x: weigh({"x": x, "y": x}, 2, "a")["out"])(X)
    assert {eqn.primitive.name for eqn in program.eqns} == {"mul"}


def _primitive(**rules):
    primitive = Primitive("other")
    primitive.multiple_results = True
    primitive.def_impl(filter_primitive_def(lambda x: (x, x, "a")))
    primitive.def_abstract_eval(filter_primitive_def(lambda x: (x, x, "a")))
    for name, rule in rules.items():
        registry = {"jvp": ad.primitive_jvps, "transpose": ad.primitive_transposes}
        registry.get(name, batching.primitive_batchers)[primitive] = rule
    return lambda x: filter_primitive_bind(primitive, x)


def test_none_stands_for_the_tangents_of_a_part():
    rule = filter_primitive_jvp(lambda p, t: ((p[0], p[0], "a"), None))
    tangents = jax.jvp(lambda x: _primitive(jvp=rule)(x)[:2], (X,), (X,))[1]
    assert all(np.array_equal(t, [0, 0]) for t in tangents)


def test_one_axis_stands_for_a_part():
    rule = filter_primitive_batching(lambda inputs, axes: ((*inputs, *inputs, "a"), axes[0]))
    out = jax.vmap(lambda x: _primitive(batch=rule)(x)[:2], in_axes=1)(jnp.eye(2))
    assert np.array_equal(out[1], np.eye(2))


@pytest.mark.parametrize("materialise", [False, True])
def test_cotangents_that_are_zero_are_none_or_zeros(materialise):
    def jvp(primals, tangents):
        return (primals[0], primals[0], "a"), bound(*tangents)[:2] + (None,)

    @filter_primitive_transpose(materialise_zeros=materialise)
    def transpose(inputs, cts):
        seen["one"] = cts[1]
        assert cts[2] is None
        return (cts[0],)

    bound = _primitive(jvp=filter_primitive_jvp(jvp), transpose=transpose)
    assert np.array_equal(jax.grad(lambda x: bound(x)[0].sum())(X), [1, 1])
    assert np.array_equal(seen["one"], [0, 0]) if materialise else seen["one"] is None


def test_a_single_result_is_refused():
    with pytest.raises(ArgumentError, match="needs a primitive with several results.*`single`"):
        filter_primitive_bind(Primitive("single"), X)


def test_rules_without_adapters_are_refused():
    primitive = Primitive("flat")
    primitive.multiple_results = True
    primitive.def_impl(lambda x, **params: [x])
    with pytest.raises(RuleError, match="`flat` was bound.*Make all of its rules with these"):
        filter_primitive_bind(primitive, X)


@pytest.mark.parametrize("rule", ["jvp", "batch"])
def test_a_rule_that_returns_no_pair_is_refused(rule):
    adapt = {"jvp": filter_primitive_jvp, "batch": filter_primitive_batching}[rule]
    bound = _primitive(**{rule: adapt(lambda *args: 3)})
    run = {"jvp": lambda f: jax.jvp(f, (X,), (X,)), "batch": lambda f: jax.vmap(f)(X)}[rule]
    with pytest.raises(RuleError, match="must return a pair.*it returned a `int`"):
        run(lambda x: bound(x)[:2])


def test_tangents_of_another_structure_are_refused():
    rule = filter_primitive_jvp(lambda p, t: ((p[0], p[0], "a"), (t[0],)))
    with pytest.raises(RuleError, match="The tangents .* need to have the structure"):
        jax.jvp(lambda x: _primitive(jvp=rule)(x)[:2], (X,), (X,))
