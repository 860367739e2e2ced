import operator

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic.errors import LeafError, StructureError
from ecliptic.tree import tree_equal, ω

A = {"x": jnp.array([5, 2]), "y": (jnp.array(3), None)}
B = {"x": jnp.array([2, 1]), "y": (jnp.array(2), None)}

BINARY = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift",
    "rshift", "lt", "le", "gt", "ge", "eq", "ne",
]  # fmt: skip


def paired(a):
    return isinstance(a, tuple)


@pytest.mark.parametrize("name", BINARY)
def test_an_operator_acts_on_each_pair_of_leaves(name):
    apply = getattr(operator, name)
    assert tree_equal(apply(A**ω, B**ω).ω, jax.tree.map(apply, A, B))


@pytest.mark.parametrize("name", BINARY)
def test_a_number_meets_each_leaf_from_either_side(name):
    apply = getattr(operator, name)
    assert tree_equal(apply(A**ω, 2).ω, jax.tree.map(lambda a: apply(a, 2), A))
    assert tree_equal(apply(2, ω(A)).ω, jax.tree.map(lambda a: apply(2, a), A))


@pytest.mark.parametrize("name", BINARY)
def test_operators_do_what_those_of_equinox_do(name):
    apply = getattr(operator, name)
    assert tree_equal(apply(ω(A), ω(B)).ω, apply(eqxi.ω(A), eqxi.ω(B)).ω)
    assert tree_equal(apply(3, ω(A)).ω, apply(3, eqxi.ω(A)).ω)


@pytest.mark.parametrize("array", [jnp.array([2, 3]), np.array([2, 3])])
def test_an_array_meets_each_leaf_from_either_side(array):
    tree = [jnp.array([5, 7]), jnp.array([1, 4])]
    assert tree_equal((array - ω(tree)).ω, [array - leaf for leaf in tree])
    assert tree_equal((ω(tree) - array).ω, [leaf - array for leaf in tree])
    assert tree_equal((array @ ω(tree)).ω, [array @ leaf for leaf in tree])


def test_arrays_are_multiplied_as_matrices():
    a, b = jnp.arange(6).reshape(2, 3), jnp.arange(3)
    assert tree_equal((ω([a]) @ ω([b])).ω, [a @ b])


@pytest.mark.parametrize("name", ["neg", "pos", "abs", "invert"])
def test_a_sign_acts_on_each_leaf(name):
    apply = getattr(operator, name)
    assert tree_equal(apply(A**ω).ω, jax.tree.map(apply, A))


def test_it_binds_as_tightly_as_the_formula_needs():
    new = (A**ω - 2 * B**ω).ω
    assert tree_equal(new, jax.tree.map(lambda a, b: a - 2 * b, A, B))
    assert tree_equal((-((A**ω) ** 2)).ω, jax.tree.map(lambda a: -(a**2), A))


@pytest.mark.parametrize("tree", [[1], 2.0, np.arange(2.0), np.float32(2), jnp.arange(2), "text"])
def test_any_tree_can_be_raised_to_ω(tree):
    wrapped = tree**ω
    assert isinstance(wrapped, ω)
    assert wrapped.ω is tree


def test_call_applies_a_function_to_each_leaf():
    assert (ω({"a": 1, "b": [2]}).call(lambda x: x + 1)).ω == {"a": 2, "b": [3]}


def test_an_index_picks_from_each_leaf():
    assert tree_equal(ω([jnp.arange(3), jnp.arange(4)])[1:].ω, [jnp.arange(1, 3), jnp.arange(1, 4)])


UPDATES = ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"]


@pytest.mark.parametrize("method", UPDATES)
def test_an_update_is_that_of_each_leaf(method):
    tree, values = [jnp.arange(1.0, 4.0)], [jnp.array(2.0)]
    expected = [getattr(tree[0].at[1], method)(2.0)]
    assert tree_equal(getattr(ω(tree).at[1], method)(2.0).ω, expected)
    assert tree_equal(getattr(ω(tree).at[1], method)(ω(values)).ω, expected)


def test_an_update_takes_the_options_of_jax():
    tree = [jnp.arange(3.0)]
    assert tree_equal(ω(tree).at[7].get(mode="fill", fill_value=9.0).ω, [jnp.array(9.0)])
    assert tree_equal(ω(tree).at[7].set(1.0, mode="drop").ω, tree)
    assert tree_equal(ω(tree).at[1].apply(jnp.negative).ω, [jnp.array([0.0, -1.0, 2.0])])


def test_leaves_are_those_of_is_leaf():
    pairs = [(1, 2), (3,)]
    assert (ω(pairs, is_leaf=paired) + ω(pairs, is_leaf=paired)).ω == [(1, 2, 1, 2), (3, 3)]
    assert (ω(pairs, is_leaf=paired) * 2).call(len).ω == [4, 2]
    assert ω(pairs, is_leaf=paired)[0].ω == [1, 3]


def test_a_function_that_is_written_twice_is_the_same():
    one, other = ω([1], is_leaf=lambda x: x == 1), ω([2], is_leaf=lambda x: x == 1)
    assert (one + other).ω == [3]


def test_it_can_be_traced_and_differentiated():
    def norm(tree):
        return (tree**ω * tree**ω).call(jnp.sum).ω["x"]

    grads = jax.jit(jax.grad(norm))({"x": jnp.array([1.0, 2.0])})
    assert grads["x"].tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda: ω([1, 2]) + ω([1]), "differ in structure: at `tree` one has the entries"),
        (lambda: ω([1, 2]) + ω(1), "Only an array or a number is combined with every leaf"),
        (
            lambda: ω([(1, 2)], is_leaf=paired) + ω([(1, 2)]),
            "have different `is_leaf`: <.*> and None",
        ),
        (lambda: ω([1], is_leaf=paired) + ω([1]), "Give the same function to both"),
        (lambda: ω([1], is_leaf=lambda x: x == 1) + ω([1], is_leaf=lambda x: x == 2), "different"),
    ],
)
def test_trees_of_different_structure_are_refused(use, match):
    with pytest.raises(StructureError, match=match):
        use()


@pytest.mark.parametrize("other", [[1, 2], "a", None])
def test_a_bare_tree_is_refused(other):
    with pytest.raises(LeafError, match=r"was combined with .*\(for a tree, write `tree\*\*ω`"):
        ω([1, 2]) + other


def test_it_has_no_truth_value_hash_or_iterator():
    with pytest.raises(LeafError, match="An ω has no truth value"):
        bool(ω([1]) == ω([1]))
    with pytest.raises(TypeError, match="unhashable"):
        hash(ω([1]))
    with pytest.raises(TypeError, match="not iterable"):
        iter(ω([1]))


def test_it_shows_its_tree():
    assert repr(ω({"a": 1})) == "ω({'a': 1})"


def test_it_is_no_tree_so_that_a_forgotten_exit_is_noticed():
    assert jax.tree.structure(ω([1])).num_leaves == 1
