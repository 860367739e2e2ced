"""`tree_diff`: every difference of two trees, by path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import LeafError
from ecliptic.view import tree_diff


class Scale(ec.Module):
    factor: jax.Array
    name: str = ec.field(static=True, default="scale")


F32, WEAK = jnp.ones(2, jnp.float32), jnp.asarray(1.0)
NAN = jnp.array([jnp.nan, 1.0])

DIFFERENT = {
    "nodes": ([1, 2], (1, 2), "tree (structure): a list with 0 arrays → a tuple with 0 arrays"),
    "node and leaf": ([1], [(1,)], "tree[0] (structure): 1 → a tuple with 0 arrays"),
    "None and leaf": ([None], [1], "tree[0] (structure): None → 1"),
    "missing": ({"a": F32, "b": 1}, {"b": 1}, "tree['a'] (missing): f32[2] → nothing"),
    "added": ([1], [1, None], "tree[1] (added): nothing → None"),
    "static": (Scale(1, "a"), Scale(1, "b"), "tree.name (static): 'a' → 'b'"),
    "function": ([lambda: 1], [lambda: 1], "another one that looks alike"),
    "leaf": (["a"], ["b"], "tree[0] (value): 'a' → 'b'"),
    "array or not": ([F32], [1.0], "tree[0] (array or not): f32[2] → 1.0"),
    "shape": (F32, F32[:1], "tree (shape): f32[2] → f32[1]"),
    "dtype": (F32, F32.astype(jnp.bfloat16), "tree (dtype): f32[2] → bf16[2]"),
    "weak type": (WEAK, jnp.float32(1), "tree (weak type): weak_f32[] → f32[]"),
    "scalar": (jnp.float32(1), jnp.float32(3), "tree (value): 1.0 → 3.0, by 2"),
    "elements": (F32, F32.at[1].set(4), "1 of 2 elements, by at most 3 at [1], where 1.0 → 4.0"),
    "NaN": (NAN, NAN, "tree (NaN): 1 of 2 elements, NaN: 1 → 1"),
    "NaN in one": (NAN, NAN.at[0].set(0), "tree (NaN): 1 of 2 elements, NaN: 1 → 0"),
    "both": (NAN, NAN.at[1].set(0), "(value): 2 of 2 elements, by at most 1 at [1], where 1.0 → 0"),
    "int": (jnp.array([2**31 - 1]), jnp.array([-(2**31)]), "→ -2147483648, by 4.29497e+09"),
    "bool": (np.array([True, False]), np.array([True, True]), "1 of 2 elements, by at most 1"),
    "infinity": (jnp.array([jnp.inf]), jnp.array([0.0]), "inf → 0.0, by inf"),
    "complex": (jnp.array([1j]), jnp.array([1.0 + 0j]), "by 1.41421"),
    "half": (jnp.ones(1, jnp.bfloat16), jnp.zeros(1, jnp.bfloat16), "1.0 → 0.0, by 1"),
    "key": (jax.random.key(0), jax.random.key(1), "1 of 2 elements, by at most 1 at [1]"),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_difference_is_told_by_path(case):
    first, second, text = DIFFERENT[case]
    diff = tree_diff(first, second)
    assert len(diff) == 1
    assert diff
    assert text in str(diff)


@pytest.mark.parametrize("case", [c for c in DIFFERENT if "NaN" not in c and c != "both"])
def test_a_tree_does_not_differ_from_itself(case):
    first, second, _ = DIFFERENT[case]
    for tree in (first, second):
        diff = tree_diff(tree, tree)
        assert not diff
        assert str(diff) == "no differences"


@pytest.mark.parametrize(
    ("first", "second", "option"),
    [
        (jnp.array([1.0, 2.0]), jnp.array([1.0, 2.1]), dict(atol=0.2)),
        (jnp.array([1.0, 2.0]), jnp.array([1.0, 2.1]), dict(rtol=0.1)),
        (NAN, NAN, dict(equal_nan=True)),
        (float("nan"), float("nan"), dict(equal_nan=True)),
        (WEAK, jnp.float32(1), dict(weak_type=False)),
        (F32, 2 * F32, dict(values=False)),
        (F32, jax.ShapeDtypeStruct((2,), jnp.float32), dict(values=False)),
    ],
)
def test_an_option_lets_leaves_count_as_equal(first, second, option):
    assert tree_diff(first, second)
    assert not tree_diff(first, second, **option)


@pytest.mark.parametrize(("first", "second"), [(1, 1.0), (F32, np.ones(2, np.float32))])
def test_types_of_leaves_count_on_request(first, second):
    assert not tree_diff(first, second)
    (found,) = tree_diff(first, second, typematch=True)
    assert found.kind == "type"


def test_shape_and_dtype_are_both_told():
    diff = tree_diff([F32], [jnp.ones(3, jnp.int32)], root="model")
    assert [(d.path, d.kind) for d in diff] == [("model[0]", "shape"), ("model[0]", "dtype")]


def test_what_lies_below_other_keys_is_compared_too():
    diff = tree_diff({"a": 1, "b": {"c": 1}}, {"b": {"c": 2}, "d": 3})
    assert [(d.path, d.kind) for d in diff] == [
        ("tree['a']", "missing"),
        ("tree['b']['c']", "value"),
        ("tree['d']", "added"),
    ]


def test_a_static_array_is_never_equal():
    with pytest.warns(UserWarning, match="static"):
        one, two = Scale(1, np.ones(2)), Scale(1, np.ones(2))
    assert [d.kind for d in tree_diff(one, two)] == ["static"]


def test_the_structure_of_a_node_without_fields_is_told():
    diff = tree_diff([ec.Static("a")], [ec.Static("b")])
    assert str(diff).endswith("tree[0]._held (static): 'a' → 'b'")
    dicts = [jax.tree_util.Partial(f) for f in (min, max)]
    assert "two Partial that are not equal as structure" in str(tree_diff(*dicts))


def test_traced_arrays_are_compared_by_all_but_their_elements():
    @jax.jit
    def compare(x, y):
        assert not tree_diff(x, x)
        assert not tree_diff(x, y, values=False)
        return tree_diff(x, y)

    with pytest.raises(LeafError, match=r"(?s)elements of the arrays at `tree`.*values=False"):
        compare(F32, F32)


def test_a_deleted_array_is_told():
    gone = jnp.ones(2)
    gone.delete()
    with pytest.raises(LeafError, match=r"arrays at `tree\[0\]`.*donated.*values=False"):
        tree_diff([gone], [F32])


def test_a_long_list_is_cut():
    text = str(tree_diff(list(range(50)), list(range(1, 51))))
    assert len(text.splitlines()) == 42
    assert text.endswith("… and 10 more")


def test_html_is_escaped():
    assert "&lt;b&gt;" in tree_diff(["<b>"], [""])._repr_html_()
