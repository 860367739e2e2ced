"""`Pool` and `AdaptivePool`: values, derivatives, arguments, messages."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ecliptic import nn
from ecliptic.errors import LayerArgumentError, ShapeError
from ecliptic.nn import _reduce

X = jnp.array([[3.0, 1.0, 4.0, 1.0, 5.0]])


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        (nn.AvgPool1d(2), [2, 2.5, 2.5, 3]),
        (nn.AvgPool1d(3, 2, padding=1), [4 / 3, 2, 2]),
        (nn.MaxPool1d(2, 2), [3, 4]),
        (nn.MaxPool1d(2, 2, padding=((1, 0),)), [3, 4, 5]),
        (nn.MaxPool1d(2, 2, use_ceil=True), [3, 4, 5]),
        (nn.AvgPool1d(2, 2, use_ceil=True), [2, 2.5, 2.5]),
        (nn.MaxPool1d(5), [5]),
        (nn.Pool(0, lax.add, 1, 2, 3), [4, 6]),
        (nn.Pool(jnp.inf, jnp.minimum, 1, 3), [1, 1, 1]),
        (nn.Pool(2.0, jnp.add, 1, 2, 2, padding=1), [7, 7, 8]),
        (nn.Pool(3.5, lax.max, 1, 2), [3.5, 4, 4, 5]),
        (nn.Pool(1, lax.mul, 1, 2, padding=1), [3, 3, 4, 4, 5, 5]),
        (nn.Pool(jnp.float32(0), lambda a, b: a + b * b, 1, 2), [10, 17, 17, 26]),
        (nn.AdaptiveAvgPool1d(2), [8 / 3, 3]),
        (nn.AdaptiveMaxPool1d(3), [3, 4, 5]),
        (nn.AdaptivePool(2, 1, lambda window: window[-1]), [4, 5]),
    ],
    ids=str,
)
def test_windows_are_reduced(pool, expected):
    np.testing.assert_allclose(pool(X), [expected], rtol=1e-6)


def test_a_last_window_that_holds_no_element_is_left_out():
    assert nn.MaxPool1d(2, 3, use_ceil=True)(X[:, :3]).tolist() == [[3]]
    assert nn.AvgPool1d(3, 3, padding=((0, 1),), use_ceil=True)(X[:, :3]).shape == (1, 1)


def test_the_stride_is_one_by_default():
    assert nn.MaxPool2d(2)(jnp.ones((1, 4, 4))).shape == (1, 3, 3)


@pytest.mark.parametrize(
    "pool",
    [
        nn.MaxPool1d(2, 1),
        nn.AvgPool1d(3, 2, 1, use_ceil=True),
        nn.Pool(1, lax.mul, 1, 2),
        nn.Pool(jnp.float32(0), lax.add, 1, 2, padding=1),
        nn.Pool(-jnp.inf, jnp.maximum, 1, 2),
        nn.AdaptiveMaxPool1d(2),
    ],
    ids=str,
)
def test_pools_have_both_derivatives_under_jit_and_vmap(pool):
    def loss(x):
        return jnp.sum(jax.vmap(pool)(x) ** 2)

    x = jax.random.normal(jax.random.key(0), (2, 1, 5))
    forward, reverse = jax.jit(lambda x: (jax.jacfwd(loss)(x), jax.jacrev(loss)(x)))(x)
    assert float(jnp.abs(reverse).max()) > 0
    np.testing.assert_allclose(forward, reverse, rtol=1e-5)


def test_the_start_has_a_gradient_if_it_is_an_array():
    def loss(init):
        return jnp.sum(nn.Pool(init, lax.add, 1, 2)(X))

    assert float(jax.grad(loss)(jnp.float32(0))) == 4


def test_of_equal_elements_the_first_has_the_gradient():
    x = jnp.ones((1, 2, 2)).at[0, 0, 0].set(0)
    slope = jax.grad(lambda x: nn.MaxPool2d(2)(x)[0, 0, 0])(x)
    assert slope.tolist() == [[[0, 1], [0, 0]]]


@pytest.mark.parametrize("first", [False, True])
def test_a_nan_is_not_lost(first):
    x = jnp.array([[jnp.nan, 1.0] if first else [1.0, jnp.nan]])
    assert bool(jnp.isnan(nn.MaxPool1d(2)(x)).all())
    assert bool(jnp.isnan(nn.Pool(jnp.inf, lax.min, 1, 2)(x)).all())


@pytest.mark.parametrize("operation", [lax.add, lax.max, lax.min], ids=["add", "max", "min"])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int32, jnp.uint8])
def test_shifted_arrays_give_what_the_primitive_of_jax_gives(monkeypatch, operation, dtype):
    init = {lax.add: 0, lax.max: -jnp.inf, lax.min: jnp.inf}[operation]
    pool = nn.Pool(init, operation, 2, (3, 2), (2, 1), padding=1)
    x = jax.random.randint(jax.random.key(0), (2, 4, 5), 0, 9).astype(dtype)
    shifted = pool(x)
    monkeypatch.setattr(_reduce, "LONGEST", 0)
    np.testing.assert_array_equal(shifted, pool(x))
    assert shifted.dtype == dtype


def test_the_primitive_of_jax_is_used_for_long_windows():
    jaxpr = str(jax.make_jaxpr(nn.MaxPool1d(9).__call__)(jnp.ones((1, 9))))
    assert "reduce_window_max" in jaxpr
    assert "reduce_window" not in str(jax.make_jaxpr(nn.MaxPool1d(2).__call__)(X))


def test_booleans_and_complex_numbers_are_pooled():
    assert nn.MaxPool1d(2, 2)(jnp.array([[True, False, False, False]])).tolist() == [[True, False]]
    assert nn.AvgPool1d(2)(jnp.array([[1j, 1.0]])).tolist() == [[0.5 + 0.5j]]
    assert nn.AvgPool1d(2)(jnp.array([[True, False]])).tolist() == [[0.5]]


def test_means_of_narrow_numbers_do_not_overflow():
    assert nn.AvgPool1d(2)(jnp.array([[255, 255]], jnp.uint8)).tolist() == [[255]]
    half = nn.AvgPool1d(2)(jnp.array([[60_000, 60_000]], jnp.float16))
    assert (half.dtype, half.tolist()) == (jnp.float16, [[60_000]])


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("kind", ["Avg", "Max"])
def test_the_class_for_some_axes_pools_them_all(kind, axes):
    x = jnp.arange(2.0 * 4**axes).reshape(2, *[4] * axes)
    pool = getattr(nn, f"{kind}Pool{axes}d")(4)
    adaptive = getattr(nn, f"Adaptive{kind}Pool{axes}d")(1)
    assert isinstance(pool, nn.Pool)
    assert isinstance(adaptive, nn.AdaptivePool)
    whole = {"Avg": jnp.mean, "Max": jnp.max}[kind](x.reshape(2, -1), axis=1)
    np.testing.assert_allclose(pool(x).ravel(), whole)
    np.testing.assert_allclose(adaptive(x).ravel(), whole)


def test_fields_are_in_order():
    fields = [(f.name, bool(f.metadata.get("static"))) for f in dataclasses.fields(nn.AvgPool2d)]
    assert fields == [
        ("init", False),
        ("operation", False),
        ("num_spatial_dims", True),
        ("kernel_size", True),
        ("stride", True),
        ("padding", True),
        ("use_ceil", True),
    ]
    fields = [f.name for f in dataclasses.fields(nn.AdaptiveAvgPool2d)]
    assert fields == ["target_shape", "operation"]


def test_lists_and_numpy_numbers_make_the_same_structure():
    assert jax.tree.structure(nn.MaxPool2d([2, 3], np.int64(2), [[0, 1], 1])) == (
        jax.tree.structure(nn.MaxPool2d((2, 3), 2, ((0, 1), (1, 1))))
    )
    assert nn.AdaptiveMaxPool2d([2, np.int32(3)]).target_shape == (2, 3)


@pytest.mark.parametrize("pool", [nn.AvgPool2d(2), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2)])
def test_a_batch_is_refused_with_advice(pool):
    with pytest.raises(
        ShapeError,
        match=rf"`{type(pool).__name__}` acts on one example of shape \(channels, n1, n2\): .* got "
        r"x of shape \(5, 3, 4, 4\)\..* did you mean `jax\.vmap\(layer\)\(x\)`\?",
    ):
        pool(jnp.ones((5, 3, 4, 4)))


def test_an_example_smaller_than_the_window_is_refused():
    with pytest.raises(ShapeError, match=r"`MaxPool1d` has a window of 4 positions along axis 1,"):
        nn.MaxPool1d(4)(X[:, :3])
    with pytest.raises(
        ShapeError,
        match=r"target_shape=\(2, 3\), but x of shape \(1, 4, 2\) has only 2 elements along axis 2",
    ):
        nn.AdaptiveMaxPool2d((2, 3))(jnp.ones((1, 4, 2)))


def test_an_axis_without_elements_stays_so():
    assert nn.MaxPool1d(2)(jnp.ones((3, 0))).shape == (3, 0)
    assert nn.Pool(1, lax.mul, 1, 2)(jnp.ones((3, 0))).shape == (3, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.MaxPool2d(0), "`MaxPool2d` got kernel_size=0"),
        (lambda: nn.AvgPool2d((2,)), r"`AvgPool2d` got kernel_size=\(2,\)"),
        (lambda: nn.AvgPool2d(2, stride=0), "stride=0, but it is an integer of at least 1"),
        (
            lambda: nn.MaxPool1d(2, padding="SAME"),
            r"(?m)padding='SAME', .* padding=\(\(1, 2\),\)\.$",
        ),
        (lambda: nn.MaxPool1d(2, padding=-1), "padding=-1, but a padding is a non-negative"),
        (lambda: nn.Pool(0, lax.add, 0, 2), "`Pool` got num_spatial_dims=0"),
        (lambda: nn.AdaptiveAvgPool2d(0), "`AdaptiveAvgPool2d` got target_shape=0"),
        (lambda: nn.AdaptivePool((1, 2, 3), 2, jnp.mean), r"target_shape=\(1, 2, 3\)"),
    ],
)
def test_a_wrong_argument_is_refused(make, message):
    with pytest.raises(LayerArgumentError, match=message):
        make()
