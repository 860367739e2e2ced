import functools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from ecliptic import _jax
from ecliptic.errors import LeafError, StructureError
from ecliptic.tree import tree_equal
from tests.unit.tree.nodes import Affine, literal

NAN = jnp.array(jnp.nan)
F32 = np.float32
KEY = jax.random.key(0)

EQUAL = [
    (jnp.ones(2), jnp.ones(2)),
    (jnp.ones((0, 2)), jnp.ones((0, 2))),
    (jnp.ones(2, jnp.bfloat16), jnp.ones(2, jnp.bfloat16)),
    (jnp.ones(2, jnp.int4), jnp.ones(2, jnp.int4)),
    (np.ones(2, ml_dtypes.float8_e4m3fn), np.ones(2, ml_dtypes.float8_e4m3fn)),
    (np.ones(2), np.ones(2)),
    (np.array(["a"]), np.array(["a"])),
    (np.array([None, "a"], dtype=object), np.array([None, "a"], dtype=object)),
    (F32(1), F32(1)),
    (1, 1),
    ("a", "a"),
    (None, None),
    (jnp.sin, jnp.sin),
    (jax.ShapeDtypeStruct((2,), F32), jax.ShapeDtypeStruct((2,), F32)),
    (KEY, KEY),
    (KEY, jax.random.key(0)),
    ({"a": [1, jnp.ones(2)]}, {"a": [1, jnp.ones(2)]}),
    (Affine(1, 2, name="x"), Affine(1, 2, name="x")),
    (jax.tree_util.Partial(print, 1), jax.tree_util.Partial(print, 1)),
]

# Equal, but not with `typematch`.
ALIKE = [
    (1, 1.0),
    (True, 1),
    (np.ones(2, F32), jnp.ones(2)),
    (jnp.ones(2), np.ones(2, F32)),
    (F32(1), np.array(1, F32)),
    (F32(1), jnp.array(1, F32)),
]

UNEQUAL = [
    (jnp.ones(2), jnp.zeros(2)),
    (jnp.ones(2), jnp.ones(2, jnp.int32)),
    (jnp.ones(2), jnp.ones((1, 2))),
    (jnp.ones((0, 2)), jnp.ones((0, 3))),
    (np.ones(2), np.ones(2, F32)),
    (1.0, jnp.array(1.0)),
    (jnp.array(1.0), 1.0),
    (F32(1), 1.0),
    (NAN, NAN),
    (np.array(np.nan), np.array(np.nan)),
    (float("nan"), float("nan")),
    (KEY, jax.random.key(1)),
    (KEY, jax.random.PRNGKey(0)),
    (KEY, jax.random.key(0, impl="rbg")),
    ("a", "b"),
    ([1], (1,)),
    ([1, 2], [1]),
    ([None], [1]),
    ({"a": 1}, {"b": 1}),
    (Affine(1, 2, name="x"), Affine(1, 2, name="y")),
    (functools.partial(print, 1), functools.partial(print, 1)),
]


@pytest.mark.parametrize("typematch", [False, True])
@pytest.mark.parametrize(("x", "y"), EQUAL)
def test_equal_trees(x, y, typematch):
    assert tree_equal(x, y, typematch=typematch)


@pytest.mark.parametrize(("x", "y"), ALIKE)
def test_alike_trees_are_equal(x, y):
    assert tree_equal(x, y)


@pytest.mark.parametrize(("x", "y"), ALIKE)
def test_alike_trees_differ_with_typematch(x, y):
    assert not tree_equal(x, y, typematch=True)


@pytest.mark.parametrize("typematch", [False, True])
@pytest.mark.parametrize(("x", "y"), UNEQUAL)
def test_unequal_trees(x, y, typematch):
    assert not tree_equal(x, y, typematch=typematch)


def test_one_tree_equals_itself():
    assert tree_equal([1])


def test_each_tree_is_compared():
    assert tree_equal(1, 1, 1)
    assert not tree_equal(1, 1, 2)


def test_no_tree_is_an_error():
    with pytest.raises(StructureError, match="at least one PyTree"):
        tree_equal()


CLOSE = [
    (jnp.ones(2), jnp.ones(2) + 1e-3),
    (np.ones(2), np.ones(2) + 1e-3),
    (F32(1), F32(1.001)),
    (jnp.ones(2, jnp.bfloat16), jnp.ones(2, jnp.bfloat16) + jnp.bfloat16(0.0078125)),
    (np.ones(2, ml_dtypes.bfloat16), np.full(2, 1.0078125, ml_dtypes.bfloat16)),
    (jnp.ones(2, jnp.complex64), jnp.ones(2, jnp.complex64) + jnp.complex64(1e-3j)),
]


@pytest.mark.parametrize("how", [{"rtol": 1e-2}, {"atol": 1e-2}, {"rtol": F32(1e-2)}])
@pytest.mark.parametrize(("x", "y"), CLOSE)
def test_close_arrays_are_equal_with_a_tolerance(x, y, how):
    assert tree_equal(x, y, **how)
    assert not tree_equal(x, y)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (1.0, 1.001),
        (100, 101),
        (jnp.array(100), jnp.array(101)),
        (NAN, NAN),
        (KEY, jax.random.key(1)),
    ],
    ids=["float", "int", "integers", "nan", "key"],
)
def test_a_tolerance_is_for_inexact_arrays(x, y):
    assert not tree_equal(x, y, rtol=0.1, atol=0.1)


def _traced(x, y, **how):
    seen = []
    result = jax.jit(lambda x, y: (seen.append(r := tree_equal(x, y, **how)), r)[1])(x, y)
    return seen[0], bool(result)


@pytest.mark.parametrize(("other", "expected"), [(1.0, True), (2.0, False)])
def test_traced_arrays_give_a_traced_boolean(other, expected):
    seen, result = _traced([jnp.ones(2), 1], [jnp.full(2, other), 1])
    assert isinstance(seen, _jax.Tracer)
    assert (seen.shape, seen.dtype) == ((), bool)
    assert result is expected


def test_traced_arrays_are_compared_with_a_tolerance():
    assert _traced(jnp.ones(2), jnp.ones(2) + 1e-3, atol=1e-2)[1]


def test_traced_keys_are_compared():
    assert _traced(KEY, jax.random.key(0))[1]
    assert not _traced(KEY, jax.random.key(1))[1]


@pytest.mark.parametrize("concrete", [jnp.ones(2), np.ones(2, F32)], ids=["JAX", "NumPy"])
def test_a_traced_array_is_compared_with_a_concrete_one(concrete):
    assert jax.jit(lambda x: tree_equal(x, concrete))(jnp.ones(2)) == True  # noqa: E712
    assert jax.jit(lambda x: tree_equal(concrete, x))(jnp.zeros(2)) == False  # noqa: E712


def test_a_tracer_has_the_type_of_an_array():
    assert jax.jit(lambda x: tree_equal(x, jnp.ones(2), typematch=True))(jnp.ones(2))
    assert tree_equal(literal(np.ones(2, F32)), jnp.ones(2), typematch=True)


@pytest.mark.parametrize(
    ("x", "y"), [(jnp.ones(2), jnp.ones(3)), ([1.0], (1.0,)), (jnp.array(1.0), jnp.array(1))]
)
def test_what_differs_without_looking_at_values_is_false_at_trace_time(x, y):
    seen, _ = _traced(x, y)
    assert not seen


def test_traced_and_static_differences_give_false():
    assert jax.jit(lambda x: tree_equal([x, "a"], [x, "b"]))(1.0) == False  # noqa: E712


def test_arrays_on_two_devices_are_compared():
    first, second = jax.devices()[:2]
    assert tree_equal(jax.device_put(jnp.ones(2), first), jax.device_put(jnp.ones(2), second))


def test_sharded_arrays_are_compared():
    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    assert tree_equal(jax.device_put(jnp.ones(4), sharding), jnp.ones(4))


def test_a_leaf_without_truth_of_equality_is_an_error_by_path():
    class Odd:
        def __eq__(self, other):
            return np.ones(2)

        __hash__ = None

    with pytest.raises(LeafError, match=r"leaves at `pytree\['a'\]`, of types Odd and Odd"):
        tree_equal({"a": Odd()}, {"a": Odd()})


def test_an_array_in_a_static_field_is_an_error_by_path():
    trees = [{"m": [Affine(1, 2, name=np.ones(2))]} for _ in range(2)]
    with pytest.raises(StructureError, match=r"two Affine at `pytree\['m'\]\[0\]`.*not arrays"):
        tree_equal(*trees)


def test_a_structure_is_compared_before_any_leaf():
    class Unequal:
        def __eq__(self, other):
            raise AssertionError("a leaf was compared")

        __hash__ = None

    assert not tree_equal([Unequal(), 1], [Unequal()])


@pytest.mark.parametrize(
    ("x", "y", "kind"),
    [
        (1, 1, bool),
        (np.ones(2), np.ones(2), bool),
        (np.ones(2), np.zeros(2), bool),
        (np.ones(2, F32), jnp.ones(2), jax.Array),
        (jnp.ones(2), jnp.ones(2), jax.Array),
        (jnp.ones(2), jnp.zeros(2), jax.Array),
        (jnp.ones(2), jnp.ones(3), bool),
    ],
)
def test_the_answer_is_an_array_where_elements_of_jax_are_compared(x, y, kind):
    assert isinstance(tree_equal(x, y), kind)
