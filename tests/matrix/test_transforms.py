"""Every transform with every kind of tree: alone, and under jit, vmap and grad."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic import transform
from tests.support.transforms import TRANSFORMS
from tests.support.trees import TREES

EVERY_TRANSFORM = pytest.mark.parametrize("row", TRANSFORMS, ids=lambda row: row.name)
EVERY_TREE = pytest.mark.parametrize("kind", TREES, ids=lambda kind: kind.name)


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    """A thousand small programs are compiled here, and each runs once."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def arrays_of(out):
    """What is compared: the floating-point arrays of a result."""
    return jax.tree.leaves(ec.filter(out, ec.is_inexact_array))


def total(out):
    """One number that depends on all of a result."""
    return sum(jnp.sum(array.astype(jnp.float32) ** 2) for array in arrays_of(out))


def used(row, kind):
    """The transform of the tree's function: a function of the tree and an array."""
    return lambda tree, x: arrays_of(row.use(kind.call, tree, x))


# What should come out, by plain JAX on a flat list of weights. Many rows have the same rule, so
# that the answers are remembered.


def plain(rule, kind):
    leaves, treedef = jax.tree.flatten(kind.tree)
    places = [i for i, leaf in enumerate(leaves) if ec.is_inexact_array(leaf)]

    def of_weights(weights, x):
        rebuilt = leaves.copy()
        for i, weight in zip(places, weights, strict=True):
            rebuilt[i] = weight
        return kind.call(treedef.unflatten(rebuilt), x)

    return lambda weights, x: arrays_of(rule(of_weights, weights, x))


@functools.cache
def expected(rule, kind):
    return plain(rule, kind)(arrays_of(kind.tree), kind.x)


@functools.cache
def expected_of_each(rule, kind):
    each = [plain(rule, kind)([w], x) for w, x in zip(*elements(kind), strict=True)]
    return jax.tree.map(lambda *parts: jnp.stack(parts), *each)


@functools.cache
def expected_gradient(rule, kind):
    loss = lambda weights, x: total(plain(rule, kind)(weights, x))
    return arrays_of(jax.grad(loss, (0, 1))(arrays_of(kind.tree), kind.x))


def elements(kind):
    """Three weights and three inputs to map over."""
    weights = kind.vector(0.5, 1.5), kind.vector(-1.0, 0.2), kind.vector(0.0, 2.0)
    return weights, (kind.vector(0.3, -0.7), kind.vector(0.3, -0.8), kind.vector(-0.9, 0.1))


def assert_same(found, wanted, kind):
    assert [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in wanted]
    tolerance = 0.05 if kind.dtype == jnp.bfloat16 else 1e-5
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(
            np.asarray(a, np.float32), np.asarray(b, np.float32), rtol=tolerance, atol=tolerance
        )


@EVERY_TREE
@EVERY_TRANSFORM
def test_alone(row, kind):
    found = used(row, kind)(kind.tree, kind.x)
    assert_same(found, expected(row.plain, kind), kind)


@EVERY_TREE
@EVERY_TRANSFORM
def test_under_jit(row, kind):
    found = ec.filter_jit(used(row, kind))(kind.tree, kind.x)
    assert_same(found, expected(row.plain, kind), kind)


@EVERY_TREE
@EVERY_TRANSFORM
def test_under_vmap(row, kind):
    stack = np.stack if kind.numpy else jnp.stack
    # A NumPy array cannot be made inside of a map; its tree has no axis that needs care.
    make = kind.make if kind.numpy else ec.filter_vmap(kind.make)
    weights, xs = elements(kind)
    found = ec.filter_vmap(used(row, kind))(make(stack(weights)), stack(xs))
    assert_same(found, expected_of_each(row.plain, kind), kind)


@EVERY_TREE
@EVERY_TRANSFORM
def test_under_grad(row, kind):
    loss = lambda both: total(used(row, kind)(*both))
    found = ec.filter_grad(loss)((kind.tree, kind.x))
    assert_same(arrays_of(found), expected_gradient(row.plain, kind), kind)


def test_every_transform_has_a_row():
    names = {name for name in transform.__all__ if name.startswith("filter_")}
    assert names == {row.name for row in TRANSFORMS}
