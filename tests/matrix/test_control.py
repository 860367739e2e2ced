"""Every loop and branch with every kind of tree, under every transformation."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from tests.support.constructs import CARRIED, CONSTRUCTS

EVERY = pytest.mark.parametrize("row", CONSTRUCTS, ids=lambda row: row.name)
EVERY_TREE = pytest.mark.parametrize("kind", CARRIED, ids=lambda kind: kind.name)
REVERSE = pytest.mark.parametrize(
    "row", [row for row in CONSTRUCTS if row.reverse], ids=lambda row: row.name
)


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    """Hundreds of small programs are compiled here, and each runs once."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def elements(kind):
    """Weights and inputs, of which some take one branch and some the other."""
    weights = kind.vector(0.5, 1.5), kind.vector(-1.0, 0.25)
    return weights, (kind.vector(0.75, -0.25), kind.vector(0.25, -0.75))


def start(kind):
    (weight, _), (x, _) = elements(kind)
    return kind.make(weight), x


def arrays_of(out):
    """What can be compared as numbers."""
    leaves = jax.tree.leaves(ec.filter(out, ec.is_array))
    return [jax.random.key_data(a) if jnp.issubdtype(a.dtype, jax.dtypes.prng_key) else a
            for a in leaves]  # fmt: skip


def total(out):
    return sum(jnp.sum(a.astype(jnp.float32) ** 2)
               for a in jax.tree.leaves(ec.filter(out, ec.is_inexact_array)))  # fmt: skip


def used(row, kind):
    return lambda tree, x: row.use(kind.step, tree, x)


def meant(row, kind):
    return lambda tree, x: row.python(kind.step, tree, x)


def gradient(f, tree, x):
    return ec.filter_jit(ec.filter_grad(lambda both: total(f(*both))))((tree, x))


@functools.cache
def expected(python, kind):
    return python(kind.step, *start(kind))


@functools.cache
def expected_gradient(python, kind):
    loss = lambda both: total(python(kind.step, *both))
    return ec.filter_grad(loss)(start(kind))


def tangents(kind):
    return jax.tree.map(jnp.ones_like, ec.filter(start(kind), ec.is_inexact_array))


@functools.cache
def expected_tangent(python, kind):
    loss = lambda tree, x: total(python(kind.step, tree, x))
    return ec.filter_jvp(loss, start(kind), tangents(kind))


def assert_same(found, wanted, kind):
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert ec.is_array(one) == ec.is_array(other)
        assert ec.is_array(one) or one == other
    tolerance = 0.05 if kind.dtype == jnp.bfloat16 else 1e-5
    for a, b in zip(arrays_of(found), arrays_of(wanted), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(
            np.asarray(a, np.float32), np.asarray(b, np.float32), rtol=tolerance, atol=tolerance
        )


@EVERY_TREE
@EVERY
def test_alone(row, kind):
    assert_same(used(row, kind)(*start(kind)), expected(row.python, kind), kind)


@EVERY_TREE
@EVERY
def test_under_jit(row, kind):
    found = ec.filter_jit(used(row, kind))(*start(kind))
    assert_same(found, expected(row.python, kind), kind)


@EVERY_TREE
@EVERY
def test_under_vmap(row, kind):
    weights, xs = elements(kind)
    found = ec.filter_vmap(used(row, kind), in_axes=(ec.if_array(0), 0))(
        ec.filter_vmap(kind.make)(jnp.stack(weights)), jnp.stack(xs)
    )
    each = [meant(row, kind)(kind.make(w), x) for w, x in zip(weights, xs, strict=True)]
    stack = lambda *leaves: jnp.stack(leaves) if ec.is_array(leaves[0]) else leaves[0]
    assert_same(found, jax.tree.map(stack, *each), kind)


@EVERY_TREE
@REVERSE
def test_under_grad(row, kind):
    found = gradient(used(row, kind), *start(kind))
    assert_same(found, expected_gradient(row.python, kind), kind)


@EVERY_TREE
@EVERY
def test_under_jvp(row, kind):
    loss = lambda tree, x: total(row.use(kind.step, tree, x))
    found = ec.filter_jit(ec.filter_jvp)(loss, start(kind), tangents(kind))
    assert_same(found, expected_tangent(row.python, kind), kind)


@EVERY_TREE
@REVERSE
def test_under_checkpoint(row, kind):
    found = gradient(ec.filter_checkpoint(used(row, kind)), *start(kind))
    assert_same(found, expected_gradient(row.python, kind), kind)


@EVERY_TREE
@EVERY
def test_nested(row, kind):
    found = ec.filter_jit(lambda tree, x: row.use(used(row, kind), tree, x))(*start(kind))
    assert_same(found, row.python(meant(row, kind), *start(kind)), kind)
