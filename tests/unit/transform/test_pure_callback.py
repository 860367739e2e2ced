"""`filter_pure_callback`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic import nn
from ecliptic.errors import ArgumentError, ArgumentTypeError
from ecliptic.transform import filter_eval_shape
from ecliptic.transform import filter_pure_callback as call

Struct = jax.ShapeDtypeStruct
F1 = Struct((), jnp.float32)
F2 = Struct((2,), jnp.float32)
ALONE_AND_JITTED = pytest.mark.parametrize(
    "under", [lambda f: f, ec.filter_jit], ids=["alone", "jit"]
)


@ALONE_AND_JITTED
def test_any_tree_in(under):
    seen = []

    def callback(x, *rest, k):
        seen.append((rest, k))
        return x

    out = under(
        lambda x: call(callback, x, "s", None, 3.0, len, k={"a": x}, result_shape_dtypes=F2)
    )
    assert out(jnp.ones(2)).tolist() == [1, 1]
    (rest, k), *_ = seen
    assert rest == ("s", None, 3.0, len)
    assert k["a"].tolist() == [1, 1]
    assert isinstance(k["a"], jax.Array | np.ndarray)


@ALONE_AND_JITTED
def test_any_tree_out(under):
    announced = {"x": F2, "s": "s", "f": len, "n": None, "b": Struct((1,), jnp.bfloat16)}

    def callback(x):
        return {"x": x, "s": "s", "f": len, "n": None, "b": np.ones(1, jnp.bfloat16)}

    out = under(lambda x: call(callback, x, result_shape_dtypes=announced))(jnp.ones(2))
    assert out["x"].tolist() == [1, 1]
    assert (out["s"], out["f"], out["n"]) == ("s", len, None)
    assert out["b"].dtype == jnp.bfloat16


@ALONE_AND_JITTED
def test_modules_in_and_out(under):
    model = nn.Linear(2, 3, key=jax.random.key(0))
    structs = filter_eval_shape(lambda: model)
    out = under(lambda m: call(lambda m: m, m, result_shape_dtypes=structs))(model)
    assert ec.tree_equal(out, model)


@ALONE_AND_JITTED
def test_keys_in_and_out(under):
    keys = jax.random.split(jax.random.key(0))
    struct = filter_eval_shape(lambda: keys)
    seen = []

    def callback(keys):
        seen.append(jax.dtypes.issubdtype(keys.dtype, jax.dtypes.prng_key))
        return keys[::-1]

    out = under(lambda k: call(callback, k, result_shape_dtypes=struct))(keys)
    assert (out == keys[::-1]).all()
    assert all(seen)


@ALONE_AND_JITTED
def test_arrays_of_the_callback_have_values(under):
    f = ec.Partial(lambda w, x: np.asarray(w) * np.asarray(x), jnp.arange(2.0))
    out = under(lambda f, x: call(f, x, result_shape_dtypes=F2))(f, jnp.full(2, 3.0))
    assert out.tolist() == [0, 3]


@pytest.mark.parametrize(
    "struct", [F2, jnp.zeros(2), np.zeros(2, np.float32)], ids=["struct", "jax", "numpy"]
)
def test_arrays_describe_themselves(struct):
    assert call(lambda x: x, jnp.ones(2), result_shape_dtypes=struct).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(1.5, jnp.float32), (1, jnp.float32), (True, jnp.bool_), (2, jnp.int8), (1j, jnp.complex64)],
)
def test_numbers_are_scalars_of_their_kind(number, dtype):
    out = call(lambda: number, result_shape_dtypes=Struct((), dtype))
    assert out == number
    assert out.dtype == dtype


def test_numpy_doubles_are_cast_as_jax_does():
    assert call(lambda: np.ones(2), result_shape_dtypes=F2).dtype == jnp.float32


@pytest.mark.parametrize(
    ("result", "announced", "match"),
    [
        ((np.ones(2),), [F2], "of the announced result and the returned one, at `tree`"),
        (
            {"a": np.ones(3)},
            {"a": F2},
            r"array of shape \(2,\) .* at `result\['a'\]`, .*shape \(3,\)",
        ),
        ([np.ones(2, int)], [F2], r"float32 at `result\[0\]`, .*int64"),
        ([1.0], [Struct((), jnp.int32)], r"int32 at `result\[0\]`, and the callback returned 1.0"),
        (["t", 1], ["s", F1], r"says 's' at `result\[0\]`, and the callback returned 't'"),
        ([1, 1], [1.0, F1], r"says 1.0 at `result\[0\]`, and the callback returned 1"),
        (["s"], [F2], r"at `result\[0\]`, and the callback returned 's' of type `str`"),
    ],
)
def test_another_result_is_refused_by_path(result, announced, match):
    def callback():
        return result

    match = f"(?i)callback `.*callback` did not return what `result_shape_dtypes` says.*{match}"
    with pytest.raises(Exception, match=f"(?s){match}"):
        call(callback, result_shape_dtypes=announced)


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_mapped(method):
    def f(x, y):
        return call(
            lambda x, y: np.asarray(x) * np.asarray(y["a"]), x, {"a": y, "s": "s"},
            result_shape_dtypes=F2, vmap_method=method,
        )  # fmt: skip

    out = jax.vmap(f, in_axes=(0, None))(jnp.arange(6.0).reshape(3, 2), jnp.full(2, 2.0))
    assert out.tolist() == [[0, 2], [4, 6], [8, 10]]


@pytest.mark.parametrize(("vectorized", "ndim"), [(True, 1), (False, 0)])
def test_the_old_form_of_vmap_method(vectorized, ndim):
    seen = []

    def callback(x):
        seen.append(np.ndim(x))
        return np.asarray(x)

    def f(x):
        return call(callback, x, result_shape_dtypes=Struct((), jnp.float32), vectorized=vectorized)

    assert jax.vmap(f)(jnp.arange(3.0)).tolist() == [0, 1, 2]
    assert set(seen) == {ndim}


def test_both_forms_are_refused():
    with pytest.raises(ArgumentError, match="Give `vmap_method` only"):
        call(len, result_shape_dtypes=F2, vmap_method="sequential", vectorized=True)


def test_it_cannot_be_mapped_without_a_method():
    with pytest.raises(NotImplementedError, match="vmap_method"):
        jax.vmap(lambda x: call(lambda x: x, x, result_shape_dtypes=F2))(jnp.ones((3, 2)))


def test_in_a_scan():
    def body(c, x):
        return call(
            lambda c, x: np.asarray(c) + np.asarray(x), c, x, result_shape_dtypes=F2
        ), "s" * 0 or 0

    out, _ = jax.lax.scan(body, jnp.zeros(2), jnp.ones((3, 2)))
    assert out.tolist() == [3, 3]


def test_what_cannot_be_called_is_refused():
    with pytest.raises(ArgumentTypeError, match="`filter_pure_callback` needs a callable.*got 3"):
        call(3, result_shape_dtypes=F2)
