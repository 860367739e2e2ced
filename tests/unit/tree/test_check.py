import jax.numpy as jnp
import pytest

from ecliptic.errors import StructureError
from ecliptic.tree import tree_check
from tests.unit.tree.nodes import Affine

ONES = jnp.ones(2)
LIST = [1]
EMPTY: list = []


@pytest.mark.parametrize(
    "tree",
    [1, None, [1, {"a": 2}], [ONES, ONES], [(), ()], [EMPTY, EMPTY], [None, None], Affine(1, 1)],
)
def test_trees_pass(tree):
    assert tree_check(tree) is None


def test_equal_nodes_pass():
    tree_check([[1], [1]])


def test_a_node_in_two_places_is_an_error_that_names_both():
    with pytest.raises(
        StructureError, match=r"same list appears at `pytree\.weight\[0\]` and at `pytree\.bias`"
    ):
        tree_check(Affine([LIST], LIST))


def test_an_immediate_cycle_is_an_error():
    cycle: list = []
    cycle.append(cycle)
    with pytest.raises(StructureError, match="a list is among its own children"):
        tree_check(cycle)


def test_a_longer_cycle_is_an_error_that_names_both_ends():
    cycle: list = [[1]]
    cycle[0].append(cycle)
    with pytest.raises(StructureError, match=r"at `pytree` contains itself, at `pytree\[0\]\[1\]`"):
        tree_check(cycle)
