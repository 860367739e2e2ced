"""`filter_while_loop` and `filter_fori_loop`."""

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.errors import CarryError


def halve(carry):
    return {"x": carry["f"](carry["x"]), "n": carry["n"] + 1, "f": carry["f"], "s": carry["s"]}


def start(x, f=lambda x: x / 2):
    return {"x": x, "n": 0, "f": f, "s": "s"}


def above_one(carry):
    assert carry["s"] == "s"
    return carry["x"] > 1


@pytest.mark.parametrize("wrap", [lambda f: f, ec.filter_jit])
def test_while_with_leaves_of_any_kind(wrap):
    carry = start(jnp.array(20.0))
    out = wrap(lambda c: ec.filter_while_loop(above_one, halve, c))(carry)
    assert (float(out["x"]), int(out["n"]), out["s"]) == (0.625, 5, "s")
    assert out["f"] is carry["f"]


def test_while_that_never_runs():
    out = ec.filter_while_loop(above_one, halve, start(jnp.array(0.5)))
    assert (float(out["x"]), int(out["n"])) == (0.5, 0)


def test_while_with_a_batched_predicate():
    f = lambda x: ec.filter_while_loop(above_one, halve, start(x))["n"]
    xs = jnp.array([0.5, 20.0, 3.0])
    assert jax.vmap(f)(xs).tolist() == ec.filter_vmap(f)(xs).tolist() == [0, 5, 2]


def test_while_forward_mode():
    f = lambda x: ec.filter_while_loop(above_one, halve, start(x))["x"]
    assert jax.jacfwd(f)(jnp.array(20.0)) == 1 / 32


def test_while_changes_are_listed():
    with pytest.raises(CarryError) as info:
        ec.filter_while_loop(
            lambda c: c["x"] > 0, lambda c: {"x": c["x"][None], "s": "t"},
            {"x": jnp.array(1.0), "s": "s"},
        )  # fmt: skip
    assert "`filter_while_loop`: the function returned a carry" in str(info.value)
    assert "carry['x']: weak_f32[] before, weak_f32[1] after: the shapes differ" in str(info.value)
    assert "carry['s']: 's' before, 't' after" in str(info.value)


def test_while_is_not_traced_again():
    traces = []

    def body(carry):
        traces.append(1)
        return halve(carry)

    shrink = lambda x: x / 2
    for i in range(4):
        ec.filter_while_loop(above_one, body, start(jnp.array(20.0 + i), shrink))
    assert len(traces) == 2  # once more for the number that changes


@pytest.mark.parametrize(
    "bounds", [(0, 5), (2, 2), (3, 1), (jnp.array(0), jnp.array(5)), (0, jnp.array(5))]
)
@pytest.mark.parametrize("wrap", [lambda f: f, ec.filter_jit])
def test_fori_equals_jax(bounds, wrap):
    def body(i, carry):
        return {"x": carry["x"] + i * 2, "s": carry["s"]}

    out = wrap(lambda c: ec.filter_fori_loop(*bounds, body, c))({"x": jnp.array(1), "s": "s"})
    assert int(out["x"]) == int(jax.lax.fori_loop(*bounds, lambda i, x: x + i * 2, jnp.array(1)))
    assert out["s"] == "s"


def test_fori_reverse_mode_with_known_bounds():
    def f(x):
        return ec.filter_fori_loop(0, 3, lambda i, c: (c[0] * x, c[1]), (x, "s"))[0]

    assert jax.grad(f)(jnp.array(2.0)) == 4 * 8


def test_fori_unrolls():
    body = lambda i, c: (c[0] + i, c[1])
    assert int(ec.filter_fori_loop(0, 7, body, (jnp.array(0), len), unroll=3)[0]) == 21


def test_fori_changes_are_listed():
    with pytest.raises(
        CarryError, match=r"(?s)`filter_fori_loop`.*carry\[1\]: 's' before, 't' after"
    ):
        ec.filter_fori_loop(0, 3, lambda i, c: (c[0], "t"), (jnp.array(0), "s"))


def test_without_compilation():
    with jax.disable_jit():
        out = ec.filter_while_loop(above_one, halve, start(jnp.array(20.0)))
        assert int(ec.filter_fori_loop(0, 3, lambda i, c: (c[0] + i, c[1]), (0, "s"))[0]) == 3
    assert int(out["n"]) == 5
