"""`while_loop` and `scan` of `equinox.internal`."""

import typing

import jax
import jax.numpy as jnp
import pytest

from ecliptic.compat.equinox import internal as eqxi
from ecliptic.errors import ArgumentError

ANY = dict(max_steps=4, checkpoints=3, base=2)


@pytest.mark.parametrize("kind", ["lax", "checkpointed", "bounded"])
def test_options_of_other_kinds_are_ignored(kind):
    out = eqxi.while_loop(lambda x: x < 10, lambda x: 2 * x, jnp.array(1.0), kind=kind, **ANY)
    assert float(out) == 16


@pytest.mark.parametrize(("kind", "checkpoints"), [("lax", 2), ("checkpointed", "all")])
def test_a_scan_takes_all_states_and_ignores_a_number_of_them(kind, checkpoints):
    def total(x):
        step = lambda x, y: (x * y, None)
        return eqxi.scan(step, x, jnp.arange(1.0, 4), kind=kind, checkpoints=checkpoints)[0]

    assert float(jax.grad(total)(2.0)) == 6


def test_a_scan_over_nothing_cannot_keep_all_states():
    with pytest.raises(ArgumentError, match="needs a `length=`"):
        eqxi.scan(lambda x, _: (x, None), 0.0, None, kind="checkpointed", checkpoints="all")


def chain(x, y, z, w):
    """In each step what is known of `x` gets one further."""
    body = lambda c: (c[0] + 1, c[0] + c[1], c[1] + c[2], c[3])
    out = eqxi.while_loop(
        lambda c: True, body, (x, y, z, w), kind="checkpointed", max_steps=3
    )  # fmt: skip
    return out[1] + out[3]


def test_it_tells_of_derivatives_where_tests_ask_for_it(capsys, monkeypatch):
    monkeypatch.setattr(typing, "TESTING", True, raising=False)
    assert float(jax.jit(jax.grad(chain))(1.0, 1.0, 1.0, 1.0)) == 3
    assert capsys.readouterr().out.splitlines() == [
        "perturb_val (False, False, False, (True, True, True, False))",
        "symbolic_zero_gradient (True, True, True, (False, False, True, True))",
    ]
    _, tangent = jax.jvp(lambda x: jax.vmap(lambda x: chain(x, x, x, x))(x), *[(jnp.ones(2),)] * 2)
    assert tangent.tolist() == [5, 5]


def test_it_tells_nothing_otherwise(capsys):
    jax.grad(chain)(1.0, 1.0, 1.0, 1.0)
    assert capsys.readouterr().out == ""
