import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import pytest

from ecliptic.errors import LeafError, StructureError
from ecliptic.tree import hashable_combine, hashable_partition, is_array, tree_equal

TREE = {"array": jnp.arange(2), "name": "x", "pair": (1, None)}


def test_both_halves_make_the_tree_again():
    assert tree_equal(hashable_combine(*hashable_partition(TREE, is_array)), TREE)


def test_the_halves_are_those_of_equinox():
    ours, theirs = (
        split(TREE, is_array) for split in (hashable_partition, eqxi.hashable_partition)
    )
    assert tree_equal(ours[0], theirs[0])
    assert ours[1] == theirs[1]


def test_the_static_half_is_the_same_key_for_other_arrays_only():
    _, key = hashable_partition(TREE, is_array)
    cache = {key: "found"}
    assert hashable_partition({**TREE, "array": jnp.ones(3)}, is_array)[1] in cache
    assert hashable_partition({**TREE, "name": "y"}, is_array)[1] not in cache


def test_the_static_half_is_a_static_argument():
    arrays, static = hashable_partition(TREE, is_array)

    @jax.jit
    def doubled(arrays):
        tree = hashable_combine(arrays, static)
        return tree["array"] * 2

    assert doubled(arrays).tolist() == [0, 2]


def test_a_static_leaf_without_a_hash_is_refused_by_path():
    with pytest.raises(LeafError, match=r"the leaf at `pytree\['array'\]`.* has no hash. Let"):
        hashable_partition(TREE, lambda leaf: False)


def test_a_wrong_number_of_leaves_is_refused():
    _, static = hashable_partition(TREE, is_array)
    with pytest.raises(StructureError, match="got 1 dynamic leaves for a tree of 3"):
        hashable_combine([jnp.ones(2)], static)
