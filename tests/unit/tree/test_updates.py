import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ecliptic.errors import LeafError, StructureError
from ecliptic.tree import apply_updates, tree_equal
from tests.unit.tree.nodes import Affine


def test_adds_leaf_by_leaf():
    result = apply_updates(Affine(jnp.ones(2), [1.0]), Affine(jnp.ones(2), [0.5]))
    assert tree_equal(result, Affine(jnp.full(2, 2.0), [1.5]))


@pytest.mark.parametrize("updates", [{"a": None, "b": 1.0}, {"a": [None, None], "b": 1.0}])
def test_none_leaves_a_leaf_or_a_subtree_as_it_is(updates):
    assert apply_updates({"a": ["relu", 1.0], "b": 1.0}, updates) == {"a": ["relu", 1.0], "b": 2.0}


def test_none_in_both_stays_none():
    assert apply_updates([None, 1.0], [None, 1.0]) == [None, 2.0]


def test_a_gradient_of_an_integer_leaf_leaves_it_as_it_is():
    zero = np.zeros((2,), jax.dtypes.float0)
    assert tree_equal(apply_updates([jnp.arange(2)], [zero]), [jnp.arange(2)])


@pytest.mark.parametrize("update", [jnp.float32, jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("leaf", [jnp.float32, jnp.bfloat16, jnp.float16])
def test_a_leaf_keeps_its_dtype(leaf, update):
    assert apply_updates(jnp.ones(2, leaf), jnp.ones(2, update)).dtype == leaf


def test_the_sum_is_rounded_as_optax_rounds_it():
    leaf, update = jnp.ones(3, jnp.bfloat16), jnp.array([0.004, 0.003, -0.002], jnp.float32)
    with jax.numpy_dtype_promotion("standard"):
        expected = optax.apply_updates(leaf, update)
    assert tree_equal(apply_updates(leaf, update), expected)


def test_a_numpy_leaf_stays_in_numpy_if_its_update_is():
    assert type(apply_updates(np.ones(2), np.ones(2))) is np.ndarray


def test_a_scalar_update_is_added_to_each_element():
    assert tree_equal(apply_updates(jnp.ones((2, 2)), 1.0), jnp.full((2, 2), 2.0))
    assert tree_equal(apply_updates(jnp.ones((2, 2)), jnp.array(1.0)), jnp.full((2, 2), 2.0))


def test_integers_are_added_to_integers():
    assert tree_equal(
        apply_updates([jnp.arange(2), 1], [jnp.ones(2, jnp.int32), 1]), [jnp.arange(1, 3), 2]
    )


def test_works_under_jit():
    assert jax.jit(apply_updates)([1.0], [2.0])[0] == 3.0


@pytest.mark.parametrize("updates", [[1.0], (1.0, 1.0), [1.0, [1.0]]])
def test_a_structure_that_does_not_fit_is_an_error(updates):
    with pytest.raises(StructureError, match="structure of `updates` does not fit.*at `tree"):
        apply_updates([1.0, 1.0], updates)


@pytest.mark.parametrize(
    ("leaf", "update", "message"),
    [
        ("relu", "x", "the leaf is a str and the update is a str"),
        (None, 1.0, "the leaf is None and the update is a float"),
        (True, 1.0, "the leaf is a bool"),
        (np.array(True), np.array(True), "the leaf is an array of dtype bool"),
        (1.0, "x", "the update is a str"),
        ([1.0], 1.0, "the leaf is a list"),
        (jax.random.key(0), 1.0, "the leaf is an array of dtype key"),
    ],
)
def test_what_cannot_be_added_is_an_error_by_path(leaf, update, message):
    with pytest.raises(LeafError, match=rf"cannot add an update to `model\['a'\]`: .*{message}"):
        apply_updates({"a": leaf}, {"a": update})


@pytest.mark.parametrize(
    ("leaf", "update"),
    [
        (jnp.arange(2), jnp.ones(2)),
        (jnp.ones(2), jnp.ones(2, jnp.complex64)),
        (jnp.arange(2), 1.0),
        (1, jnp.array(1.0)),
    ],
)
def test_an_update_of_a_wider_kind_is_an_error(leaf, update):
    with pytest.raises(LeafError, match=r"update of `model\[0\]` is .*cannot hold.*`None`"):
        apply_updates([leaf], [update])


def test_a_shape_that_does_not_fit_is_an_error():
    with pytest.raises(
        LeafError, match=r"`model` has shape \(2, 2\), but the leaf has shape \(2,\)"
    ):
        apply_updates(jnp.ones(2), jnp.ones((2, 2)))
