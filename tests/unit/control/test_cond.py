"""`filter_cond` and `filter_switch`."""

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError, CarryError


def double(model, x):
    return {"y": model.net(x) * 2, "model": model, "s": "s", "f": len, "n": None}


def same(model, x):
    return {"y": model.net(x), "model": model, "s": "s", "f": len, "n": None}


class Holder(ec.Module):
    net: ec.nn.MLP
    name: str = "n"


@pytest.fixture
def model():
    return Holder(ec.nn.MLP(2, 2, 4, 1, key=jax.random.key(0)))


@pytest.mark.parametrize("wrap", [lambda f: f, ec.filter_jit])
@pytest.mark.parametrize("pred", [True, False, jnp.array(True), jnp.array(False)])
def test_cond_with_leaves_of_any_kind(model, pred, wrap):
    x = jnp.ones(2)
    out = wrap(lambda p, m, x: ec.filter_cond(p, double, same, m, x))(pred, model, x)
    assert jnp.allclose(out["y"], model.net(x) * (2 if pred else 1))
    assert ec.tree_equal(out["model"], model)
    assert (out["s"], out["f"], out["n"]) == ("s", len, None)


def test_both_branches_are_traced_even_if_the_predicate_is_known():
    traced = []
    ec.filter_cond(True, lambda: traced.append(1), lambda: traced.append(2))
    assert traced == [1, 2]


def test_the_operand_keyword():
    assert float(ec.filter_cond(True, lambda x: x + 1, lambda x: x, operand=jnp.array(1.0))) == 2
    assert (
        float(ec.filter_switch(0, [lambda x: x[0](x[1])], operand=(jnp.square, jnp.array(3.0))))
        == 9
    )
    with pytest.raises(ArgumentError, match=r"by position, and `operand=` too"):
        ec.filter_cond(True, lambda x: x, lambda x: x, 1, operand=2)


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 7, jnp.array(1)])
def test_switch_clamps_as_jax_does(index):
    branches = [lambda x, i=i: {"v": x * i, "s": "s"} for i in range(3)]
    out = ec.filter_switch(index, branches, jnp.array(5))
    assert int(out["v"]) == int(jax.lax.switch(index, [lambda x, i=i: x * i for i in range(3)], 5))
    assert out["s"] == "s"


@pytest.mark.parametrize(
    ("one", "other"), [(1, 2), (1.0, 2.0), (True, False), (1, jnp.array(3)), (jnp.array(2.0), 3.0)]
)
@pytest.mark.parametrize("pred", [True, False])
def test_numbers_that_differ_become_arrays(one, other, pred):
    out = ec.filter_cond(pred, lambda: {"v": one}, lambda: {"v": other})
    expected = jax.lax.cond(pred, lambda: one, lambda: other)
    assert isinstance(out["v"], jax.Array)
    assert out["v"] == expected
    assert out["v"].dtype == expected.dtype


def test_numbers_that_agree_stay_numbers():
    out = ec.filter_cond(jnp.array(True), lambda: (3, 2.5, True), lambda: (3, 2.5, True))
    assert out == (3, 2.5, True)
    assert [type(x) for x in out] == [int, float, bool]


def test_differences_say_which_branch():
    with pytest.raises(CarryError) as info:
        ec.filter_cond(
            True,
            lambda: {"a": jnp.ones(2), "b": "x", "c": jnp.ones(1), "d": 1},
            lambda: {"a": jnp.ones(3), "b": "y", "c": jnp.ones(1, int), "d": 2},
        )
    text = str(info.value)
    assert "`filter_cond`: `true_fun` and `false_fun` returned outputs that differ:" in text
    assert "output['a']: f32[2] from `true_fun`, f32[3] from `false_fun`: the shapes differ" in text
    assert "output['b']: 'x' from `true_fun`, 'y' from `false_fun`; it is no array" in text
    assert "output['c']: f32[1] from `true_fun`, i32[1] from `false_fun`: the dtypes" in text
    assert "output['d']" not in text
    with pytest.raises(
        CarryError, match=r"(?s)branch 0 and branch 2 .*output\[1\]: nothing from branch 0"
    ):
        ec.filter_switch(0, [lambda: (1,), lambda: (1,), lambda: (1, 2)])


def test_numbers_of_different_types_are_told_apart_as_by_jax():
    with pytest.raises(CarryError, match="the dtypes differ"):
        ec.filter_cond(True, lambda: 1, lambda: 2.0)


def test_no_branches():
    with pytest.raises(ArgumentError, match="at least one function"):
        ec.filter_switch(0, [])


def test_a_batched_predicate(model):
    xs = jnp.arange(6.0).reshape(3, 2)
    preds = jnp.array([True, False, True])
    for vmap in (jax.vmap, ec.filter_vmap):
        out = vmap(lambda p, x: ec.filter_cond(p, double, same, model, x)["y"])(preds, xs)
        assert jnp.allclose(out, jax.vmap(model.net)(xs) * jnp.array([2, 1, 2.0])[:, None])


def apply(f, x):
    return f(x), "s"


def skip(f, x):
    return x, "s"


@pytest.mark.parametrize(
    "transform", [jax.grad, ec.filter_grad, jax.jacfwd, jax.checkpoint, jax.hessian]
)
def test_under_transformations(transform):
    def f(x):
        return ec.filter_cond(x > 1, apply, skip, jnp.square, x)[0]

    for x, chosen in ((0.5, lambda x: x), (3.0, jnp.square)):
        assert jnp.allclose(transform(f)(jnp.array(x)), transform(chosen)(jnp.array(x)))


def test_it_is_not_traced_again():
    traces = []

    def one(x, s):
        traces.append(1)
        return x + 1, s

    def two(x, s):
        traces.append(2)
        return x, s

    for i in range(4):
        ec.filter_cond(i % 2 == 0, one, two, jnp.array(1.0 * i), "s")
    assert traces == [1, 2]


def test_static_outputs_belong_to_the_shape_they_were_traced_for():
    def one(x):
        return x.shape, x

    for size in (1, 2, 1, 2):
        assert ec.filter_cond(True, one, one, jnp.ones(size))[0] == (size,)


def test_without_compilation_only_the_chosen_branch_runs():
    with jax.disable_jit():
        out = ec.filter_cond(jnp.array(False), lambda: 1 / 0, lambda: (jnp.ones(2), "s"))
    assert out[1] == "s"


def test_no_tracer_leaks():
    with jax.checking_leaks():
        f = ec.filter_jit(lambda p, *args: ec.filter_cond(p, apply, skip, *args))
        f(jnp.array(True), jnp.square, jnp.ones(2))
