"""Laws of the PyTree tools, for any tree."""

from string import ascii_letters

import jax
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ecliptic.tree import (
    apply_updates,
    combine,
    filter,
    format_path,
    is_array_like,
    leaves_with_paths,
    match_path,
    parse_path,
    partition,
    tree_at,
    tree_check,
    tree_equal,
    tree_flatten_one_level,
    tree_paths,
    tree_pformat,
)
from tests.unit.tree.nodes import Affine, Empty, Pair

arrays = st.builds(np.full, st.sampled_from([(), (2,), (2, 0)]), st.integers(0, 3))
leaves = st.integers(0, 2) | st.floats(allow_nan=False) | st.text(max_size=2) | arrays
keys = st.text(max_size=3) | st.text(alphabet="'\"[]().\\", max_size=3)


def _nodes(children):
    return (
        st.lists(children, max_size=3)
        | st.lists(children, max_size=3).map(tuple)
        | st.dictionaries(keys, children, max_size=3)
        | st.builds(Affine, children, children, st.sampled_from(["x", "y"]))
        | st.builds(Pair, children, children)
    )


nothing = st.builds(Empty) | st.just(()) | st.none()
trees = st.recursive(leaves | nothing, _nodes, max_leaves=12)
predicates = st.sampled_from(
    [is_array_like, lambda x: isinstance(x, str), lambda _: True, lambda _: False]
)
literals = st.recursive(
    st.integers() | st.text() | st.binary() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=2).map(tuple),
    max_leaves=4,
)
indices = st.integers(0, 2**31 - 1)
paths = st.lists(
    st.builds(jax.tree_util.GetAttrKey, st.text(alphabet=ascii_letters, min_size=1) | st.text())
    | st.builds(jax.tree_util.SequenceKey, indices)
    | st.builds(jax.tree_util.DictKey, st.text() | literals)
    | st.builds(jax.tree_util.FlattenedIndexKey, indices),
    max_size=5,
).map(tuple)


@given(trees, predicates)
def test_combine_undoes_partition(tree, predicate):
    assert tree_equal(combine(*partition(tree, predicate)), tree, typematch=True)


@given(trees, predicates)
def test_partition_is_filter_and_its_inverse(tree, predicate):
    halves = (filter(tree, predicate), filter(tree, predicate, inverse=True))
    assert tree_equal(partition(tree, predicate), halves, typematch=True)


@given(trees, predicates)
def test_a_tree_of_booleans_is_the_same_specification_as_its_function(tree, predicate):
    spec = jax.tree.map(predicate, tree)
    assert tree_equal(partition(tree, spec), partition(tree, predicate), typematch=True)


@given(trees)
def test_a_tree_equals_its_copy(tree):
    copy = jax.tree.map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, tree)
    assert tree_equal(tree, copy, typematch=True)


@given(trees, trees)
def test_equality_is_symmetric(a, b):
    assert tree_equal(a, b) is tree_equal(b, a)


@given(trees, st.data())
def test_tree_at_replaces_exactly_one_leaf(tree, data):
    leaves, treedef = jax.tree.flatten(tree)
    if not leaves:
        return
    index = data.draw(st.integers(0, len(leaves) - 1))
    # Placeholders stand in for arrays too, so the leaves of the marked tree are as many.
    result = tree_at(lambda t: _leaf(t, index), tree, replace="new")
    expected = treedef.unflatten([*leaves[:index], "new", *leaves[index + 1 :]])
    assert tree_equal(result, expected, typematch=True)


def _leaf(tree, index):
    # `()` has a placeholder of its own in the tree that `where` gets, and is no leaf elsewhere.
    leaves = [x for x in jax.tree.leaves(tree) if not isinstance(x, tuple)]
    return leaves[index]


@given(trees)
def test_tree_at_with_the_identity_changes_nothing(tree):
    assert tree_equal(tree_at(lambda t: t, tree, replace_fn=lambda x: x), tree, typematch=True)


@given(trees)
def test_one_level_builds_the_tree_again(tree):
    children, structure = tree_flatten_one_level(tree)
    assert tree_equal(structure.unflatten(children), tree, typematch=True)


@given(trees)
def test_what_jax_builds_is_a_tree(tree):
    leaves, treedef = jax.tree.flatten(tree)
    tree_check(treedef.unflatten(leaves))


@given(trees)
def test_updates_of_none_change_nothing(tree):
    assert tree_equal(apply_updates(tree, jax.tree.map(lambda _: None, tree)), tree)


@given(paths, st.sampled_from(["", "model"]))
def test_parse_undoes_format(path, root):
    assert parse_path(format_path(path, root), root) == path


@given(trees)
def test_paths_of_a_tree_are_distinct_and_can_be_read(tree):
    names = tree_paths(tree)
    assert len(set(names)) == len(names) == len(jax.tree.leaves(tree))
    assert [format_path(parse_path(name)) for name in names] == names


@given(trees)
def test_everything_matches_each_path(tree):
    assert all(match_path("**", path) for path, _ in leaves_with_paths(tree))


@given(paths)
def test_a_path_of_words_matches_itself(path):
    words = tuple(key for key in path if not set(str(key)) & set("*?"))
    assert match_path(format_path(words), words)


@given(trees, st.integers(1, 100))
def test_printing_keeps_the_text_apart_from_white_space(tree, width):
    wide = tree_pformat(tree, width=10**6)
    assert "".join(tree_pformat(tree, width=width).split()) == "".join(wide.split())
