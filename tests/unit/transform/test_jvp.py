"""`filter_jvp`."""

from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError, ArgumentTypeError, StructureError
from ecliptic.transform import filter_jvp

Pair = namedtuple("Pair", ["first", "second"])


class Affine(ec.Module):
    weight: jax.Array
    bias: jax.Array | None
    activation: object
    name: str = "affine"

    def __call__(self, x):
        return self.activation(self.weight * x + (0.0 if self.bias is None else self.bias))


def affine():
    return Affine(jnp.array([1.0, 2.0]), None, jnp.sin)


X, DX = jnp.array([0.5, -1.0]), jnp.array([1.0, 3.0])


def test_it_equals_the_one_of_jax_on_arrays():
    def fun(x, y):
        return jnp.sin(x) * y, x + y

    found = filter_jvp(fun, (X, DX), (DX, X))
    expected = jax.jvp(fun, (X, DX), (DX, X))
    jax.tree.map(np.testing.assert_allclose, found, expected)


def test_a_module_with_functions_and_names_is_a_primal():
    model = affine()
    tangent = Affine(jnp.ones(2), None, None, None)
    out, slope = filter_jvp(lambda m, x: m(x), (model, X), (tangent, None))
    np.testing.assert_allclose(out, jnp.sin(model.weight * X))
    np.testing.assert_allclose(slope, jnp.cos(model.weight * X) * X, rtol=1e-6)


def test_none_above_leaves_says_that_none_of_them_changes():
    _, slope = filter_jvp(lambda m, x: m(x), (affine(), X), (None, DX))
    np.testing.assert_allclose(slope, jnp.cos(affine().weight * X) * affine().weight * DX, 1e-6)


def test_the_tangent_of_what_is_no_inexact_array_is_none():
    def fun(x):
        return x, "text", jnp.tanh, None, 3, 2.5, jnp.arange(2), x > 0, jax.random.key(0)

    _, slopes = filter_jvp(fun, (X,), (DX,))
    np.testing.assert_array_equal(slopes[0], DX)
    assert slopes[1:] == (None,) * 8


def test_outputs_come_back_as_they_are():
    out, _ = filter_jvp(lambda x: (x, "text", jnp.tanh, None, 2.5, jnp.arange(2)), (X,), (DX,))
    assert out[1:5] == ("text", jnp.tanh, None, 2.5)
    np.testing.assert_array_equal(out[5], [0, 1])


def test_what_does_not_depend_on_a_tangent_has_the_tangent_none():
    def fun(x, y):
        return x, y * 2, jnp.ones(2), np.ones(2), jax.lax.stop_gradient(x)

    _, slopes = filter_jvp(fun, (X, X), (DX, None))
    assert slopes[1:] == (None,) * 4


def test_zeros_stay_symbolic_through_jit_and_checkpoint_and_inside_another_jvp():
    def fun(x, y):
        return x * y, y * 2

    for wrapped in (jax.jit(fun), jax.checkpoint(fun)):
        _, slopes = filter_jvp(wrapped, (X, X), (DX, None))
        assert slopes[1] is None
    _, slopes = filter_jvp(lambda x: filter_jvp(fun, (x, X), (DX, None))[1], (X,), (DX,))
    assert slopes == (None, None)


def test_without_tangents_the_function_is_just_called():
    out, slopes = filter_jvp(lambda x, s: (x, s), (X, "text"), (None, None))
    assert out[0] is X
    assert slopes == (None, None)


def test_keyword_arguments_are_handed_on_and_not_differentiated():
    out, slope = filter_jvp(lambda x, *, k, s: (x * k, s), (X,), (DX,), k=X, s="text")
    assert out[1] == "text"
    np.testing.assert_allclose(slope[0], DX * X)


def test_integers_booleans_and_keys_are_primals_with_the_tangent_none():
    primals = (X, jnp.arange(2), jnp.array(True), jax.random.key(0), np.arange(2))
    (_, *rest), (slope, *others) = filter_jvp(
        lambda *args: args, primals, (DX, None, None, None, None)
    )
    assert rest[3] is primals[4]
    assert others == [None] * 4
    np.testing.assert_array_equal(slope, DX)


def test_a_float0_tangent_is_none():
    zero = np.zeros((2,), jax.dtypes.float0)
    _, slopes = filter_jvp(lambda x, i: (x, i), (X, jnp.arange(2)), (DX, zero))
    assert slopes[1] is None


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
def test_tangents_keep_the_dtype(dtype):
    x = jnp.ones(2, dtype)
    _, slope = filter_jvp(jnp.sin, (x,), (x,))
    assert slope.dtype == dtype


def test_numpy_leaves_are_differentiated():
    x = np.ones(2, np.float32)
    _, slope = filter_jvp(lambda x: x * x, (x,), (x,))
    np.testing.assert_array_equal(slope, [2, 2])


def test_float64_of_numpy_is_float32_without_x64():
    _, slope = filter_jvp(lambda x: x * x, (np.ones(2),), (jnp.ones(2),))
    np.testing.assert_array_equal(slope, [2, 2])


def test_a_python_number_may_have_a_tangent():
    out, slope = filter_jvp(lambda x, y: (x * x, y), (3.0, 4.0), (1.0, None))
    assert float(slope[0]) == 6.0
    assert type(out[1]) is float
    assert slope[1] is None


def test_complex_numbers_have_complex_tangents():
    z = jnp.array(1 + 2j)
    _, slope = filter_jvp(lambda z: z * z, (z,), (jnp.array(1j),))
    np.testing.assert_allclose(slope, 2j * (1 + 2j))


def test_lists_are_taken_for_tuples():
    _, slope = filter_jvp(lambda x: x, [X], (DX,))
    np.testing.assert_array_equal(slope, DX)


def test_has_aux_splits_what_is_not_differentiated():
    out, slope, aux = filter_jvp(lambda x: (x * 2, (x, "aux")), (X,), (DX,), has_aux=True)
    np.testing.assert_array_equal(slope, DX * 2)
    np.testing.assert_array_equal(out, X * 2)
    np.testing.assert_array_equal(aux[0], X)
    assert aux[1] == "aux"


def test_has_aux_may_be_false():
    assert filter_jvp(lambda x: (x, 1), (X,), (DX,), has_aux=False)[1][1] is None


def test_has_aux_goes_to_a_function_that_has_such_a_parameter():
    def fun(x, has_aux):
        return x, has_aux

    out, _ = filter_jvp(fun, (X,), (DX,), has_aux=True)
    assert out[1] is True


def test_it_works_under_jit_vmap_and_grad():
    def directional(x, dx):
        return filter_jvp(lambda m, x: (m(x), "s"), (affine(), x), (None, dx))[1][0]

    expected = directional(X, DX)
    np.testing.assert_allclose(jax.jit(directional)(X, DX), expected, rtol=1e-6)
    stacked = jax.vmap(directional)(jnp.stack([X, X]), jnp.stack([DX, DX]))
    np.testing.assert_allclose(stacked, [expected, expected], rtol=1e-6)
    slope = jax.grad(lambda x: directional(x, DX).sum())(X)
    w = affine().weight
    np.testing.assert_allclose(slope, -jnp.sin(w * X) * w * w * DX, rtol=1e-5)


def test_trees_of_flax_are_primals():
    struct = pytest.importorskip("flax.struct")

    @struct.dataclass
    class Point:
        x: jax.Array
        name: str = struct.field(pytree_node=False, default="point")

    _, slope = filter_jvp(lambda p: p.replace(x=p.x * 2), (Point(X),), (Point(DX),))
    np.testing.assert_array_equal(slope.x, DX * 2)


# --------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("bad", [jnp.ones(2), jnp.array(1.0), affine(), {"x": 1}, None])
def test_a_bare_value_as_primals_is_an_error_with_the_right_call(bad):
    with pytest.raises(ArgumentTypeError, match=r"`primals` .* tuple or list .*\(x,\)"):
        filter_jvp(lambda x: x, bad, (DX,))


def test_a_bare_array_as_tangents_is_an_error_that_names_it():
    with pytest.raises(ArgumentTypeError, match=r"`tangents` .* got an array of shape \(2,\)"):
        filter_jvp(lambda x: x, (X,), DX)


def test_too_few_tangents_are_counted():
    with pytest.raises(ArgumentError, match="2 primals and 1 tangents"):
        filter_jvp(lambda x, y: x, (X, X), (DX,))


def test_another_structure_is_named_by_path():
    with pytest.raises(StructureError, match=r"no leaf at `tangents\[0\]\['b'\]`; .*\['a'\]"):
        filter_jvp(lambda t: t["a"], ({"a": X},), ({"b": DX},))


def test_a_missing_entry_is_named_by_path():
    with pytest.raises(StructureError, match=r"nothing is given at `tangents\[0\]\['c'\]`"):
        filter_jvp(lambda t: t["a"], ({"a": X, "b": X, "c": X},), ({"a": DX, "b": None},))


def test_another_type_of_node_is_named():
    with pytest.raises(StructureError, match=r"`primals` has no leaf at `tangents\[0\]\[0\]`"):
        filter_jvp(lambda t: t[0], (Pair(X, X),), ((DX, DX),))


def test_another_static_part_is_an_error():
    class Named(ec.Module):
        x: jax.Array
        name: str = ec.field(static=True)

    with pytest.raises(StructureError, match="in their static part"):
        filter_jvp(lambda t: t.x, (Named(X, "one"),), (Named(DX, "other"),))


def test_a_tangent_above_leaves_is_an_error():
    with pytest.raises(StructureError, match=r"no leaf at `tangents\[0\]`; .*`tangents\[0\]\[1\]`"):
        filter_jvp(lambda t: t[0], ((X, X),), (DX,))


def test_a_tree_as_the_tangent_of_a_leaf_is_an_error():
    with pytest.raises(ArgumentTypeError, match=r"`tangents\[0\]` must be an array, or None"):
        filter_jvp(lambda x: x, (X,), ((DX, DX),))


@pytest.mark.parametrize(
    ("primal", "words"),
    [
        ("text", "type `str`"),
        (jnp.arange(2), "dtype int32"),
        (3, "type `int`"),
        (len, "type `builtin"),
    ],
)
def test_a_tangent_of_what_has_none_is_named_by_path(primal, words):
    with pytest.raises(ArgumentTypeError, match=rf"`tangents\[1\]\['p'\]` must be None.*{words}"):
        filter_jvp(lambda x, p: x, (X, {"p": primal}), (DX, {"p": 1.0}))


def test_another_shape_is_named_by_path():
    with pytest.raises(ArgumentError, match=r"`tangents\[0\]\['a'\]` has shape \(3,\)"):
        filter_jvp(lambda t: t["a"], ({"a": X},), ({"a": jnp.ones(3)},))


def test_another_dtype_is_named_by_path():
    with pytest.raises(ArgumentTypeError, match=r"`tangents\[0\]` has dtype bfloat16.*float32"):
        filter_jvp(lambda x: x, (X,), (DX.astype(jnp.bfloat16),))


def test_no_pair_with_has_aux_is_an_error():
    with pytest.raises(ArgumentTypeError, match="must return a pair"):
        filter_jvp(lambda x: x, (X,), (DX,), has_aux=True)


def test_what_cannot_be_called_is_an_error():
    with pytest.raises(ArgumentTypeError, match="`filter_jvp` needs a callable"):
        filter_jvp(3, (X,), (DX,))
