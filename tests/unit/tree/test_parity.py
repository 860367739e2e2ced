"""Where Equinox and Ecliptic are to agree, both are called. The differences are decisions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic.tree as ours
from tests.unit.tree.nodes import Affine, Empty, Pair

theirs = pytest.importorskip("equinox")

LEAVES = [
    jnp.ones(2), jnp.arange(2), jnp.ones(2, jnp.bfloat16), np.ones(2), np.arange(2), np.float32(1),
    np.int32(1), np.bool_(True), jax.random.key(0), jax.ShapeDtypeStruct((2,), jnp.float32),
    True, 1, 1.0, 1j, "a", None, jnp.sin, jnp.float32, [1], np.array([None]),
]  # fmt: skip
TREES = [
    1, None, [], (), [1, None, "a"], {"b": (1.0, [2]), "a": jnp.ones(2)}, Affine(1, (2, None)),
    Pair(Affine(np.ones(2), "x"), Empty()), [jnp.ones((2, 3)), np.ones(1), jax.random.key(1)],
]  # fmt: skip
PREDICATES = ["is_array", "is_array_like", "is_inexact_array", "is_inexact_array_like"]
both = pytest.mark.parametrize("name", PREDICATES)


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: type(leaf).__name__)
@both
def test_predicates(name, leaf):
    assert getattr(ours, name)(leaf) == getattr(theirs, name)(leaf)


@pytest.mark.parametrize("tree", TREES, ids=ours.tree_pformat)
@both
def test_partition_and_combine(name, tree):
    got = ours.partition(tree, getattr(ours, name))
    expected = theirs.partition(tree, getattr(theirs, name))
    assert ours.tree_equal(got, expected)
    assert ours.tree_equal(ours.combine(*got), theirs.combine(*expected))


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("tree", TREES, ids=ours.tree_pformat)
def test_filter(tree, inverse):
    got = ours.filter(tree, ours.is_array, inverse=inverse, replace=0)
    assert ours.tree_equal(got, theirs.filter(tree, theirs.is_array, inverse=inverse, replace=0))


@pytest.mark.parametrize("typematch", [False, True])
@pytest.mark.parametrize("x", LEAVES, ids=lambda leaf: type(leaf).__name__)
def test_tree_equal(x, typematch):
    for y in LEAVES:
        got = ours.tree_equal([x], [y], typematch=typematch)
        assert got == bool(theirs.tree_equal([x], [y], typematch=typematch)), (x, y)


@pytest.mark.parametrize("tree", TREES, ids=ours.tree_pformat)
def test_tree_flatten_one_level(tree):
    children, structure = ours.tree_flatten_one_level(tree)
    expected, expected_structure = theirs.tree_flatten_one_level(tree)
    assert structure == expected_structure
    assert ours.tree_equal(children, expected)


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("tree", [*TREES, LEAVES[:16], *LEAVES[17:]], ids=ours.tree_pformat)
def test_tree_pformat(tree, short):
    # Only `jnp.sin` is left out: Equinox writes the address of what `jax.jit` returns.
    got = ours.tree_pformat(tree, width=30, short_arrays=short)
    assert got == theirs.tree_pformat(tree, width=30, short_arrays=short)


@pytest.mark.parametrize(
    ("where", "tree"),
    [
        (lambda t: t.bias, Affine((), ())),
        (lambda t: t.weight, Affine(1, 1)),
        (lambda t: t.bias, Affine(Empty(), Empty())),
        (lambda t: [t["a"][0], t["b"]], {"a": [1, 2], "b": (3,)}),
        (lambda t: t, 1),
        (lambda t: t[0], [None, None]),
    ],
)
def test_tree_at(where, tree):
    how = {"replace_fn": repr, "is_leaf": lambda x: x is None}
    assert ours.tree_at(where, tree, **how) == theirs.tree_at(where, tree, **how)
