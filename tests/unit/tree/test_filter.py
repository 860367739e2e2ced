import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic.errors import StructureError
from ecliptic.tree import combine, filter, is_array, is_array_like, partition
from tests.unit.tree.nodes import Affine

TREE = {"a": 1, "b": ["relu", (2.0, None)], "c": "tanh"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (True, TREE),
        (False, {"a": None, "b": [None, (None, None)], "c": None}),
        (is_array_like, {"a": 1, "b": [None, (2.0, None)], "c": None}),
        ({"a": False, "b": True, "c": False}, {"a": None, "b": ["relu", (2.0, None)], "c": None}),
        (
            {"a": is_array_like, "b": [True, is_array_like], "c": is_array_like},
            {"a": 1, "b": ["relu", (2.0, None)], "c": None},
        ),
        ([np.bool_(True)], [1]),
        ([np.bool_(False)], [None]),
    ],
)
def test_filter_keeps_what_the_specification_picks(spec, expected):
    tree = [1] if isinstance(spec, list) else TREE
    assert filter(tree, spec) == expected


def test_filter_inverse_keeps_the_others():
    assert filter([1, "a"], is_array_like, inverse=True) == [None, "a"]


def test_filter_replaces_what_is_left_out():
    assert filter([1, "a"], is_array_like, replace=0) == [1, 0]


def test_filter_treats_nodes_as_leaves_on_request():
    assert filter([1, None], lambda x: x is None, is_leaf=lambda x: x is None, replace=0) == [
        0,
        None,
    ]


def test_filter_with_is_leaf_above_the_specification_keeps_to_the_specification():
    spec = [True, (True, False)]
    assert filter([1, (2, 3)], spec, is_leaf=lambda x: isinstance(x, tuple)) == [1, (2, None)]


def test_filter_with_is_leaf_hands_the_node_to_the_function():
    seen = []
    filter([1, (2, 3)], [True, seen.append], is_leaf=lambda x: isinstance(x, tuple))
    assert seen == [(2, 3)]


def test_a_callable_node_is_a_specification_tree_not_a_function():
    module = Affine(1.0, "b")
    assert filter(module, Affine(True, False)) == Affine(1.0, None)


@pytest.mark.parametrize("answer", [1, np.bool_(True), "yes"])
def test_filter_takes_the_truth_of_a_functions_answer(answer):
    assert filter([3], lambda _: answer) == [3]


def test_filter_refuses_an_answer_without_truth_by_path():
    with pytest.raises(StructureError, match=r"answered .* for the leaf `pytree\['a'\]\[1\]`"):
        filter({"a": [1, 2]}, lambda x: np.ones(x))


def test_filter_refuses_a_traced_answer_by_path():
    def positive(x):
        return x > 0

    with pytest.raises(StructureError, match=r"`positive` answered a traced array .*pytree\[0\]"):
        jax.jit(lambda x: filter([x], positive))(1.0)


def test_filter_refuses_a_traced_specification():
    with pytest.raises(StructureError, match=r"`filter_spec\['a'\]` is traced.*Close over it"):
        jax.jit(lambda spec: filter({"a": 1}, spec))({"a": True})


@pytest.mark.parametrize("entry", [1, "yes", 2.0])
def test_filter_refuses_other_entries_by_path(entry):
    with pytest.raises(
        StructureError, match=r"booleans and functions only, but `filter_spec\[1\]`"
    ):
        filter([1, 2], [True, entry])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([True], r"at `tree` one has the entries \['\[0\]'\], the other"),
        ((True, True), r"at `tree` one has a tuple, the other a list"),
        ([True, (True,)], r"at `tree\[1\]` one has a tuple, the other a leaf of type int"),
        ([True, None], r"at `tree\[1\]` one has None, the other a leaf of type int"),
    ],
)
def test_filter_refuses_a_specification_that_is_no_prefix(spec, message):
    with pytest.raises(StructureError, match=f"must be a prefix.*{message}"):
        filter([1, 2], spec)


def test_filter_names_a_node_whose_static_parts_differ():
    with pytest.raises(StructureError, match=r"at `tree\['m'\]` the static parts of two Affine"):
        filter({"m": Affine(1, 2, name="x")}, {"m": Affine(True, False, name="y")})


def test_partition_gives_both_halves():
    assert partition([1, "a", None], is_array_like) == ([1, None, None], [None, "a", None])


def test_partition_replaces_in_both_halves():
    assert partition([1, "a"], is_array_like, replace=0) == ([1, 0], [0, "a"])


def test_partition_asks_once_for_each_leaf():
    seen = []
    partition([1, "a", 2], lambda x: seen.append(x) or True)
    assert seen == [1, "a", 2]


def test_partition_refuses_what_filter_refuses():
    with pytest.raises(StructureError, match="booleans and functions only"):
        partition([1], "array")


def test_partition_works_on_tracers():
    @jax.jit
    def double(x):
        arrays, rest = partition([x, "a"], is_array)
        assert rest == [None, "a"]
        return combine(jax.tree.map(lambda y: y * 2, arrays), rest)[0]

    assert double(jnp.array(2)) == 4


@pytest.mark.parametrize(
    ("trees", "expected"),
    [
        (([1, None],), [1, None]),
        (([1, None], [2, 3]), [1, 3]),
        (([None, None], [None, 3], [4, 5]), [4, 3]),
        (([None, None], [(1, 2), 3]), [(1, 2), 3]),
        ((None, [None, 3]), [None, 3]),
        (([False, None], [True, 0]), [False, 0]),
    ],
)
def test_combine_takes_the_first_that_is_not_none(trees, expected):
    assert combine(*trees) == expected


def test_combine_treats_nodes_as_leaves_on_request():
    assert combine([(1,), None], [(2, 3), 4], is_leaf=lambda x: isinstance(x, tuple)) == [(1,), 4]


def test_combine_refuses_to_combine_nothing():
    with pytest.raises(StructureError, match="at least one PyTree"):
        combine()


def test_combine_says_which_argument_differs_and_where():
    with pytest.raises(StructureError, match=r"argument 3 differs .*`tree\[1\]` one has a tuple"):
        combine([1, (2,)], [1, (2,)], [1, 2])
