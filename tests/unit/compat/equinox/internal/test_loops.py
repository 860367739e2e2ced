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


def _triangular(x, y, z):
    """A loop of which `z` feeds `y`, `y` feeds `x`, and only `y` is used afterwards."""
    body = lambda carry: (carry[0] + carry[1], carry[1] + carry[2], 2 * carry[2], carry[3] + 1)
    init = (x, y, z, jnp.array(0))
    cond = lambda carry: carry[3] < 3
    return eqxi.while_loop(cond, body, init, kind="checkpointed", max_steps=3)[1]


@pytest.mark.parametrize("testing", [True, False])
def test_what_is_differentiated_is_printed_where_tests_ask_for_it(monkeypatch, capsys, testing):
    monkeypatch.setattr(typing, "TESTING", testing, raising=False)
    gradient = jax.grad(_triangular, (0, 1, 2))(1.0, 1.0, 1.0)
    assert [float(x) for x in gradient] == [0, 1, 7]
    lines = capsys.readouterr().out.splitlines()
    assert lines == testing * [
        "perturb_val (False, False, False, (True, True, True, False))",
        "symbolic_zero_gradient (True, True, True, (True, False, False, True))",
    ]
