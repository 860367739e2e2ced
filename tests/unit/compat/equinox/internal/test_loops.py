"""`while_loop` and `scan` of `equinox.internal`."""

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
