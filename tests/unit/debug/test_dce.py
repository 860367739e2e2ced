"""`store_dce` and `inspect_dce`: what was computed, and what was left out."""

import jax
import jax.numpy as jnp
import pytest

from ecliptic.debug import inspect_dce, store_dce
from ecliptic.errors import DebugError

X = jnp.ones(3)


def _printed(capsys, name):
    inspect_dce(name)
    return capsys.readouterr().out


def test_what_is_not_used_is_marked(capsys):
    @jax.jit
    def f(x):
        _, (used, number, _) = store_dce((x**2, (x + 1, 3, "text")), name="marked")
        return used, number

    jax.block_until_ready(f(X))
    assert _printed(capsys, "marked") == (
        "Found 1 call to `ecliptic.debug.store_dce`.\nEntry 0:\n(<DCE'd>, (f32[3], 3, 'text'))\n"
    )


def test_each_call_in_each_trace_is_an_entry(capsys):
    @jax.jit
    def f(x):
        store_dce([x, x], name="entries")
        return store_dce(x * 2, name="entries")

    jax.block_until_ready((f(X), f(jnp.ones(4))))
    assert _printed(capsys, "entries").splitlines() == [
        "Found 4 calls to `ecliptic.debug.store_dce`.",
        *("Entry 0:", "[<DCE'd>, <DCE'd>]", "Entry 1:", "f32[3]"),
        *("Entry 2:", "[<DCE'd>, <DCE'd>]", "Entry 3:", "f32[4]"),
    ]


def test_it_goes_through_derivatives_and_batches(capsys):
    f = jax.jit(jax.vmap(jax.grad(lambda x: store_dce(x, name="mapped") ** 2)))
    assert f(X).tolist() == [2.0, 2.0, 2.0]
    assert "Entry 0:\nf32[]\n" in _printed(capsys, "mapped")


def test_keys_go_through(capsys):
    key = jax.jit(lambda key: store_dce(key, name="key"))(jax.random.key(0))
    assert jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    assert "DCE" not in _printed(capsys, "key").splitlines()[-1]


def test_a_name_that_nothing_has(capsys):
    assert _printed(capsys, "nothing") == "Found 0 calls to `ecliptic.debug.store_dce`.\n"


def test_outside_of_a_trace_it_is_refused():
    with pytest.raises(DebugError, match="`ecliptic.debug.store_dce` should be used inside of JIT"):
        store_dce(X)
