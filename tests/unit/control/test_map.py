"""`filter_map` and `filter_associative_scan`."""

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import sparse

import ecliptic as ec
from ecliptic.errors import ArgumentError, CarryError, LeafError


def apply(x):
    return {"y": x["f"](x["a"]), "s": "s", "f": x["f"]}


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7, 100])
@pytest.mark.parametrize("wrap", [lambda f: f, ec.filter_jit])
def test_map_equals_a_python_loop(batch_size, wrap):
    xs = {"a": jnp.arange(14.0).reshape(7, 2), "f": jnp.sin}
    out = wrap(lambda xs: ec.filter_map(apply, xs, batch_size=batch_size))(xs)
    assert jnp.allclose(out["y"], jnp.stack([jnp.sin(row) for row in xs["a"]]), rtol=1e-6)
    assert (out["s"], out["f"]) == ("s", jnp.sin)


def test_map_of_nothing():
    assert ec.filter_map(apply, {"a": jnp.zeros((0, 2)), "f": jnp.sin})["y"].shape == (0, 2)


def test_map_over_an_ensemble_of_modules():
    keys = jax.random.split(jax.random.key(0), 5)
    models = ec.filter_vmap(lambda key: ec.nn.MLP(2, 2, 4, 1, key=key))(keys)
    for batch_size in (None, 2):
        out = ec.filter_map(lambda m: m(jnp.ones(2)), models, batch_size=batch_size)
        expected = ec.filter_vmap(lambda m: m(jnp.ones(2)))(models)
        assert jnp.allclose(out, expected, rtol=1e-5)


def test_map_gradients():
    f = lambda a: ec.filter_map(apply, {"a": a, "f": jnp.sin}, batch_size=2)["y"].sum()
    assert jnp.allclose(jax.grad(f)(jnp.ones(3)), jnp.cos(jnp.ones(3)))


@pytest.mark.parametrize("batch_size", [0, -1])
def test_map_batch_size_must_be_positive(batch_size):
    with pytest.raises(ArgumentError, match=rf"must be positive; got {batch_size}"):
        ec.filter_map(apply, {"a": jnp.ones(2), "f": jnp.sin}, batch_size=batch_size)


def test_map_lengths():
    with pytest.raises(ArgumentError, match=r"`filter_map` scans.*xs\[0\] has 2, xs\[1\] has 3"):
        ec.filter_map(lambda x: x, (jnp.ones(2), jnp.ones(3)))
    with pytest.raises(ArgumentError, match="`filter_map` needs to know how many"):
        ec.filter_map(lambda x: x, "s")


def test_map_over_sparse_arrays():
    matrices = sparse.BCOO.fromdense(jnp.ones((4, 2, 3)), n_batch=1)
    assert ec.filter_map(lambda m: m.todense().sum(), matrices).tolist() == [6.0] * 4
    with pytest.raises(LeafError, match=r"the `BCOO` at xs\['m'\] does not allow"):
        ec.filter_map(lambda m: m, {"m": matrices}, batch_size=2)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_associative_scan_equals_jax(reverse, axis):
    x = jnp.arange(1.0, 13.0).reshape(3, 4)

    def combine(a, b):
        assert a["s"] == b["s"] == "s"
        return {"x": a["x"] * b["x"], "s": a["s"], "f": b["f"]}

    out = ec.filter_associative_scan(combine, {"x": x, "s": "s", "f": len}, reverse, axis)
    assert jnp.allclose(out["x"], jax.lax.associative_scan(jnp.multiply, x, reverse, axis))
    assert (out["s"], out["f"]) == ("s", len)


def test_associative_scan_errors():
    with pytest.raises(ArgumentError, match="at least one array"):
        ec.filter_associative_scan(lambda a, b: a, "s")
    with pytest.raises(CarryError, match=r"(?s)`filter_associative_scan`.*carry\[1\]: 's' before"):
        ec.filter_associative_scan(lambda a, b: (a[0], "t"), (jnp.ones(4), "s"))


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_an_associative_scan_of_keys(axis):
    keys = jax.random.split(jax.random.key(0), (3, 2))
    elems = {"k": keys, "n": jnp.arange(6).reshape(3, 2), "s": "s"}

    def later(a, b):
        return {"k": b["k"], "n": a["n"] + b["n"], "s": a["s"]}

    out = ec.filter_associative_scan(later, elems, axis=axis)
    assert jnp.array_equal(jax.random.key_data(out["k"]), jax.random.key_data(keys))
    assert jnp.array_equal(out["n"], jnp.cumsum(elems["n"], axis))
    first = ec.filter_associative_scan(lambda a, b: a, keys, axis=axis)
    expected = jnp.take(keys, jnp.zeros(keys.shape[axis], int), axis)
    assert jnp.array_equal(jax.random.key_data(first), jax.random.key_data(expected))
