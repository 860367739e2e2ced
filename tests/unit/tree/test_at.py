import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic.errors import SelectionError
from ecliptic.tree import is_array, tree_at
from tests.unit.tree.nodes import Affine, Empty, NeverConstructed, OnlyNumbers, Pair

ONES = jnp.ones(2)
TUPLE = (1,)
LIST = [1, 2]


def _is_none(x):
    return x is None


def test_replaces_one_node():
    assert tree_at(lambda t: t.weight, Affine(1, [2, 3]), replace=4) == Affine(4, [2, 3])


def test_leaves_the_argument_alone():
    tree = {"a": [1]}
    tree_at(lambda t: t["a"][0], tree, 2)
    assert tree == {"a": [1]}


@pytest.mark.parametrize("sequence", [list, tuple])
def test_replaces_a_sequence_of_nodes(sequence):
    tree = Affine(1, [2, 3])
    result = tree_at(lambda t: sequence([t.bias[1], t.weight]), tree, replace=(4, 5))
    assert result == Affine(5, [2, 4])


def test_replace_fn_maps_each_node():
    tree = Affine(1, [2, 3])
    result = tree_at(lambda t: (t.weight, t.bias), tree, replace_fn=lambda node: (node,))
    assert result == Affine((1,), ([2, 3],))


def test_a_tuple_that_is_a_node_is_one_node():
    assert tree_at(lambda t: t.weight, Affine((1, 2), 3), replace=(4, 5, 6)) == Affine((4, 5, 6), 3)


def test_the_whole_tree_can_be_replaced():
    assert tree_at(lambda t: t, [1, 2], 3) == 3


def test_a_leaf_can_become_none_or_a_subtree():
    assert tree_at(lambda t: (t[0], t[1]), [1, 2], (None, [3])) == [None, [3]]


def test_no_nodes_and_no_replacements_change_nothing():
    assert tree_at(lambda t: [], [1, 2], []) == [1, 2]


@pytest.mark.parametrize(
    ("one", "other"),
    [((), ()), (TUPLE, TUPLE), (Empty(), Empty()), (7, 7), ("a", "a"), (True, True), (LIST, LIST)]
    + [(0.5, 0.5)],
    ids=["()", "(1,)", "empty NamedTuple", "int", "str", "bool", "list", "float"],
)
def test_equal_things_in_two_places_are_told_apart(one, other):
    assert tree_at(lambda t: t.bias, Affine(one, other), "new") == Affine(one, "new")
    assert tree_at(lambda t: t.weight, Affine(one, other), "new") == Affine("new", other)


def test_one_array_in_two_places_is_told_apart():
    result = tree_at(lambda t: t.bias, Affine(ONES, ONES), 0)
    assert result.weight is ONES
    assert result.bias == 0


def test_a_node_within_a_shared_node_is_told_apart():
    assert tree_at(lambda t: t[1][0], [LIST, LIST], 3) == [[1, 2], [3, 2]]


def test_untouched_empty_tuples_stay_plain_tuples():
    result = tree_at(lambda t: t[0], [1, (), [()]], 2)
    assert [type(result[1]), type(result[2][0])] == [tuple, tuple]
    assert jax.tree.structure(result) == jax.tree.structure([1, (), [()]])


@pytest.mark.parametrize("value", [(), (1,), Empty(), [1, 2], 3, None, Affine(1, ()), Pair((), 2)])
def test_replace_fn_sees_the_real_value(value):
    seen = []
    tree_at(lambda t: t["x"], {"x": value, "y": 1}, replace_fn=seen.append, is_leaf=_is_none)
    assert seen == [value]
    assert type(seen[0]) is type(value)


def test_replace_fn_can_take_the_length_of_an_empty_tuple():
    assert tree_at(lambda t: t.bias, Affine((), ()), replace_fn=len) == Affine((), 0)


def test_none_is_replaced_with_is_leaf():
    assert tree_at(lambda t: t.bias, Affine(None, None), 1, is_leaf=_is_none) == Affine(None, 1)


def test_is_leaf_nodes_can_be_picked():
    is_list = lambda x: isinstance(x, list)
    assert tree_at(lambda t: t[1], ([1], [1]), 2, is_leaf=is_list) == ([1], 2)


def test_no_constructor_runs():
    tree = NeverConstructed.make(NeverConstructed.make(1))
    result = tree_at(lambda t: t.value.value, tree, 2)
    assert result.value.value == 2


def test_static_parts_stay_the_same():
    name = "a name"
    assert tree_at(lambda t: t.weight, Affine(1, 2, name), 3).name is name


def test_works_under_jit():
    result = jax.jit(lambda x: tree_at(lambda t: t["a"], {"a": x, "b": x}, x + 1))(1.0)
    assert result == {"a": 2.0, "b": 1.0}


def test_a_structural_search_can_pick_nodes():
    tree = [Affine(1, 2), {"x": Affine(3, 4)}, 5]
    is_affine = lambda x: isinstance(x, Affine)

    def weights(t):
        return [node.weight for node in jax.tree.leaves(t, is_leaf=is_affine) if is_affine(node)]

    assert tree_at(weights, tree, replace=[0, 0]) == [Affine(0, 2), {"x": Affine(0, 4)}, 5]


def test_where_may_look_at_leaves_if_its_pick_is_unique():
    tree = [np.zeros(2), np.zeros((2, 2)), "a"]
    matrices = lambda t: [x for x in jax.tree.leaves(t) if is_array(x) and x.ndim == 2]
    result = tree_at(matrices, tree, replace=["matrix"])
    assert result[1:] == ["matrix", "a"]
    assert result[0] is tree[0]


def test_where_may_read_attributes_of_leaves():
    tree = Affine(np.zeros(2), np.zeros(3))
    result = tree_at(lambda t: t.weight if t.weight.shape == (2,) else t.bias, tree, 1)
    assert result.weight == 1


def test_where_may_ask_whether_leaves_have_attributes():
    tree = Affine(np.zeros(2), [1])
    result = tree_at(lambda t: t.weight if hasattr(t.weight, "shape") else t.bias, tree, 1)
    assert result.weight == 1


@pytest.mark.parametrize(
    "where",
    [lambda t: t[0] if t[0] == 1 else t[1], lambda t: t[0] if t[0] else t[1]],
    ids=["comparison", "truth"],
)
def test_where_may_not_pick_by_value_what_may_appear_twice(where):
    with pytest.raises(SelectionError, match="looks at the leaves, and picks 1 .*unclear which"):
        tree_at(where, [1, 1], 2)


def test_where_may_not_pick_by_value_an_array_in_two_places():
    with pytest.raises(SelectionError, match="looks at the leaves"):
        tree_at(lambda t: t[0] if t[0].ndim else t[1], [ONES, ONES], 2)


def test_classes_that_refuse_placeholders_work_if_the_pick_is_unique():
    tree = [OnlyNumbers(1.0), np.zeros(2)]
    result = tree_at(lambda t: t[1], tree, "new")
    assert result[0].value == 1.0
    assert result[1] == "new"


def test_neither_replace_nor_replace_fn_is_an_error():
    with pytest.raises(SelectionError, match="either `replace` or `replace_fn`, and got neither"):
        tree_at(lambda t: t[0], [1])


def test_both_replace_and_replace_fn_are_an_error():
    with pytest.raises(SelectionError, match="either `replace` or `replace_fn`, and got both"):
        tree_at(lambda t: t[0], [1], replace=1, replace_fn=lambda x: x)


def test_the_only_none_is_replaced():
    assert tree_at(lambda t: t.bias, Affine(1, None), 2) == Affine(1, 2)
    assert tree_at(lambda t: [t.bias], Affine(1, None), replace_fn=lambda _: 3) == Affine(1, 3)


@pytest.mark.parametrize("where", [lambda t: t.bias, lambda t: [t.weight, t.bias]])
def test_one_of_several_nones_without_is_leaf_is_an_error_that_shows_is_leaf(where):
    with pytest.raises(SelectionError, match=r"picked None.*is_leaf=lambda x: x is None"):
        tree_at(where, Affine(None, None), [2, 2])


def test_a_static_field_is_an_error_that_says_so_and_shows_replace():
    message = (
        r"static field `tree\[0\]\.name` of Affine.*dataclasses\.replace\(tree\[0\], name=\.\.\.\)"
    )
    with pytest.raises(SelectionError, match=message):
        tree_at(lambda t: t[0].name, [Affine(1, 2, name="some name")], "new")


def test_a_pick_outside_the_tree_is_a_type_error_too():
    with pytest.raises(TypeError, match="picked 3 .*which is no node of the PyTree"):
        tree_at(lambda t: 3, Affine(1, 2), 4)


@pytest.mark.parametrize(
    "where",
    [lambda t: t["x"] + 1, lambda t: t["y"] * 1, lambda t: {"x": t["x"]}, lambda t: [[t["x"]]]],
    ids=["sum", "number", "dictionary", "nested list"],
)
def test_a_computed_pick_is_an_error(where):
    with pytest.raises(SelectionError, match="no node of the PyTree.*not something that it comp"):
        tree_at(where, {"x": np.ones(2), "y": 1e300}, replace=[1])


def test_a_computed_small_number_is_not_taken_for_a_leaf():
    with pytest.raises(SelectionError, match="looks at the leaves"):
        tree_at(lambda t: t["n"] + 0, {"n": 3}, 4)


@pytest.mark.parametrize("picks", [lambda t: (t[0], t[0][1]), lambda t: (t[0][1], t[0])])
def test_a_node_within_another_pick_is_an_error(picks):
    with pytest.raises(SelectionError, match="lies within another one"):
        tree_at(picks, [[1, 2]], ("a", "b"))


def test_the_same_node_twice_with_two_replacements_is_an_error():
    with pytest.raises(SelectionError, match="twice, with different replacements"):
        tree_at(lambda t: (t[0], t[0]), [1], ("a", "b"))


def test_the_same_node_twice_is_mapped_once():
    seen = []
    assert tree_at(lambda t: (t[0], t[0]), [1], replace_fn=lambda x: seen.append(x) or 2) == [2]
    assert seen == [1]


@pytest.mark.parametrize(("replace", "got"), [((1,), "1 replacements"), (5, "no sequence")])
def test_a_wrong_number_of_replacements_is_an_error(replace, got):
    with pytest.raises(SelectionError, match=f"sequence of 2 nodes.*{got}"):
        tree_at(lambda t: (t[0], t[1]), [1, 2], replace)


def test_an_exception_of_where_is_passed_on():
    with pytest.raises(AttributeError, match="wieght"):
        tree_at(lambda t: t.wieght, Affine(1, 2), 3)


def test_a_dictionary_key_error_is_passed_on():
    with pytest.raises(KeyError, match="missing"):
        tree_at(lambda t: t["missing"], {"a": 1}, 3)
