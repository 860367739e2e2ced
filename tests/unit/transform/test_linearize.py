"""`filter_linearize`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError, ArgumentTypeError, StructureError
from ecliptic.transform import filter_jit, filter_jvp, filter_linearize

X, DX = jnp.array([0.5, -1.0]), jnp.array([1.0, 3.0])
MODEL = {"weight": jnp.array([1.0, 2.0]), "activation": jnp.sin, "count": jnp.array(3)}


def apply(model, x):
    return model["activation"](model["weight"] * x), "text", model["count"]


def test_it_equals_filter_jvp_at_each_tangent():
    out, push = filter_linearize(apply, MODEL, X)
    for tangents in [
        ({"weight": DX, "activation": None, "count": None}, None),
        (None, DX),
        ({"weight": X, "activation": None, "count": None}, DX),
    ]:
        expected, slope = filter_jvp(apply, (MODEL, X), tangents)
        np.testing.assert_allclose(out[0], expected[0])
        found = push(*tangents)
        np.testing.assert_allclose(found[0], slope[0], rtol=1e-6)
        assert found[1:] == (None, None)
    assert out[1] == "text"


def test_the_function_runs_once():
    calls = []
    _, push = filter_linearize(lambda x: (calls.append(1), x * x)[1], X)
    push(DX)
    push(X)
    assert len(calls) == 1


def test_what_does_not_depend_on_the_arguments_has_the_tangent_none():
    _, push = filter_linearize(lambda x: (x, jnp.ones(2), 2.5), X)
    assert push(DX)[1:] == (None, None)


def test_keyword_arguments_are_handed_on():
    _, push = filter_linearize(lambda x, *, k: x * k, X, k=DX)
    np.testing.assert_array_equal(push(DX), DX * DX)


def test_has_aux_returns_anything_besides():
    out, push, aux = filter_linearize(lambda x: (x * 2, ("aux", x)), X, has_aux=True)
    np.testing.assert_array_equal(out, X * 2)
    np.testing.assert_array_equal(push(DX), DX * 2)
    assert aux[0] == "aux"
    np.testing.assert_array_equal(aux[1], X)


def test_the_linear_function_is_a_tree_that_goes_through_jit_both_ways():
    _, push = filter_jit(lambda x: filter_linearize(lambda x: (jnp.sin(x), "s"), x))(X)
    assert isinstance(push, ec.Module)
    np.testing.assert_allclose(filter_jit(lambda p, t: p(t))(push, DX)[0], jnp.cos(X) * DX)


def test_the_linear_function_is_mapped_and_transposed():
    _, push = filter_linearize(lambda x: x * X, X)
    np.testing.assert_array_equal(jax.vmap(push)(jnp.eye(2)), jnp.diag(X))
    np.testing.assert_array_equal(jax.linear_transpose(push, X)(DX)[0], X * DX)


def test_without_anything_to_differentiate_every_tangent_is_none():
    out, push = filter_linearize(lambda i, s: (i, s), jnp.arange(2), "text")
    assert out[1] == "text"
    assert push(None, None) == (None, None)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_tangents_keep_the_dtype(dtype):
    x = jnp.ones(2, dtype)
    assert filter_linearize(jnp.sin, x)[1](x).dtype == dtype


# --------------------------------------------------------------------------------- mistakes


def test_too_many_tangents_are_counted():
    with pytest.raises(ArgumentError, match=r"one tangent for each argument.*: 1; got 2"):
        filter_linearize(jnp.sin, X)[1](DX, DX)


def test_another_shape_is_named_by_path():
    with pytest.raises(ArgumentError, match=r"`tangents\[1\]` has shape \(3,\)"):
        filter_linearize(apply, MODEL, X)[1](None, jnp.ones(3))


def test_another_structure_is_named_by_path():
    with pytest.raises(StructureError, match=r"`tangents\[0\]\['b'\]`"):
        filter_linearize(apply, MODEL, X)[1]({"b": DX}, None)


def test_a_tangent_of_what_has_none_is_named_by_path():
    given = {"weight": None, "activation": None, "count": jnp.array(1)}
    with pytest.raises(ArgumentTypeError, match=r"`tangents\[0\]\['count'\]` must be None"):
        filter_linearize(apply, MODEL, X)[1](given, DX)


def test_has_aux_must_be_a_boolean():
    with pytest.raises(ArgumentError, match="`has_aux` must be True or False"):
        filter_linearize(jnp.sin, X, has_aux=None)


def test_what_cannot_be_called_is_an_error():
    with pytest.raises(ArgumentTypeError, match="`filter_linearize` needs a callable"):
        filter_linearize(X, X)
