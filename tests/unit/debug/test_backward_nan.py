"""`backward_nan`: what is printed on the way back, and where it stops."""

import equinox
import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.debug import backward_nan
from ecliptic.errors import RuntimeCheckError

X = jnp.arange(3.0)


def _of_array(watch):
    return jax.grad(lambda x: (watch(x) ** 2).sum())(X)


def _of_named(watch):
    return jax.grad(lambda x: (watch(x, name="here") ** 2).sum())(X)


def _of_tree(watch):
    return jax.grad(lambda x: (watch({"a": x, "b": "text", "c": jnp.arange(2)})["a"] ** 2).sum())(X)


def _of_nan(watch):
    return jax.grad(lambda x: (jnp.sqrt(watch(0 * x, terminate=False)) * 0).sum())(X)


@pytest.mark.parametrize("case", [_of_array, _of_named, _of_tree, _of_nan])
def test_it_prints_what_equinox_does(case, capsys):
    printed = []
    for module in (equinox.debug.backward_nan, backward_nan):
        case(module)
        jax.effects_barrier()
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "cotangents=" in printed[1]


def test_nothing_is_printed_on_the_way_there(capsys):
    assert backward_nan(X).tolist() == X.tolist()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("wrap", [lambda f: f, ec.filter_jit])
def test_it_stops_at_nan(wrap, capsys):
    f = wrap(jax.grad(lambda x: (jnp.sqrt(backward_nan(0 * x, name="root")) * 0).sum()))
    with pytest.raises(RuntimeCheckError, match="Encountered NaN in the derivative of `root`"):
        jax.block_until_ready(f(X))
    assert "cotangents=Array([nan, nan, nan], dtype=float32)" in capsys.readouterr().out
