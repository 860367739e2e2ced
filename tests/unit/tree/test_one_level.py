import pytest

from ecliptic.errors import StructureError
from ecliptic.tree import tree_flatten_one_level
from tests.unit.tree.nodes import Affine


@pytest.mark.parametrize(
    ("tree", "children"),
    [
        ([1, (2, 3), None], [1, (2, 3), None]),
        ({"b": [1], "a": 2}, [2, [1]]),
        (Affine([1], 2), [[1], 2]),
        (1, [1]),
        (None, []),
        ((), []),
        ([None], [None]),
    ],
)
def test_gives_the_immediate_children(tree, children):
    assert tree_flatten_one_level(tree)[0] == children


@pytest.mark.parametrize("tree", [[1, (2, 3), None], {"a": [1]}, Affine([1], 2), 1, None])
def test_the_structure_builds_the_node_again(tree):
    children, structure = tree_flatten_one_level(tree)
    assert structure.unflatten(children) == tree


def test_one_child_in_two_places_is_two_children():
    child = [1]
    assert tree_flatten_one_level([child, child])[0] == [[1], [1]]


def test_a_node_within_itself_is_an_error():
    cycle: list = []
    cycle.append(cycle)
    with pytest.raises(StructureError, match="a list is among its own children"):
        tree_flatten_one_level(cycle)
