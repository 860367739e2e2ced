"""`filter_eval_shape` and its cached form."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import ecliptic as ec
from ecliptic import nn
from ecliptic.transform import cached_filter_eval_shape, filter_eval_shape

Struct = jax.ShapeDtypeStruct
BOTH = pytest.mark.parametrize(
    "eval_shape", [filter_eval_shape, cached_filter_eval_shape], ids=["plain", "cached"]
)


class Scale(ec.Module):
    factor: jax.Array
    name: str

    def __call__(self, x):
        return self.factor * x, self.name


@BOTH
def test_arrays_become_structs_and_the_rest_stays(eval_shape):
    out = eval_shape(
        lambda x, s: {"x": 2 * x, "s": s, "f": len, "n": None, "i": 3}, jnp.ones(3), "s"
    )
    assert out == {"x": Struct((3,), jnp.float32), "s": "s", "f": len, "n": None, "i": 3}


@BOTH
@pytest.mark.parametrize(
    "array",
    [
        jnp.ones((2, 3), jnp.bfloat16), np.ones(2, np.int32), np.float32(1), jnp.asarray(1.0),
        jax.random.key(0), jax.random.split(jax.random.key(0)), np.ones(2),
    ],
    ids=lambda a: f"{type(a).__name__}-{a.dtype}-{a.ndim}",
)  # fmt: skip
def test_agrees_with_jax_on_each_kind_of_array(eval_shape, array):
    out = eval_shape(lambda x: (x, "s"), array)
    wanted = jax.eval_shape(lambda x: x, array)
    assert out == (wanted, "s")
    assert out[0].weak_type == wanted.weak_type


@BOTH
def test_numpy_arrays_in_the_output_become_structs(eval_shape):
    assert eval_shape(lambda: np.ones(2, np.float32)) == Struct((2,), jnp.float32)


@BOTH
def test_structs_stand_for_arrays(eval_shape):
    struct = Struct((2, 3), jnp.bfloat16)
    out = eval_shape(lambda x, *, y: x @ y["a"], struct, y={"a": Struct((3,), jnp.bfloat16)})
    assert out == Struct((2,), jnp.bfloat16)


@BOTH
def test_a_function_may_hold_structs(eval_shape):
    model = eval_shape(Scale, jnp.ones(3), "a")
    assert eval_shape(model, Struct((3,), jnp.float32)) == (Struct((3,), jnp.float32), "a")


def test_a_module_is_constructed_without_its_arrays():
    model = filter_eval_shape(nn.MLP, 10**6, 10**6, 10**6, 1, key=jax.random.key(0))
    assert type(model) is nn.MLP
    assert model.layers[0].weight == Struct((10**6, 10**6), jnp.float32)
    out = filter_eval_shape(model, Struct((10**6,), jnp.float32))
    assert out == Struct((10**6,), jnp.float32)


def test_an_equinox_module_goes_in_and_out():
    model = filter_eval_shape(eqx.nn.Linear, 2, 3, key=jax.random.key(0))
    assert model.weight == Struct((3, 2), jnp.float32)
    assert filter_eval_shape(model, jnp.ones(2)) == Struct((3,), jnp.float32)


def test_shardings_are_those_of_jax():
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
    x = jax.device_put(jnp.ones(8), NamedSharding(mesh, PartitionSpec("x")))
    assert filter_eval_shape(lambda x: 2 * x, x) == jax.eval_shape(lambda x: 2 * x, x)
    assert filter_eval_shape(lambda x: 2 * x, x).sharding is not None


def test_the_error_is_that_of_jax():
    with pytest.raises(TypeError, match="contracting dimensions to have the same shape"):
        filter_eval_shape(lambda x: x @ x, jnp.ones((2, 3)))


def test_nested_in_other_transformations():
    shapes = []

    def f(x):
        shapes.append(filter_eval_shape(lambda y: (x * y, "s"), x)[0].shape)
        return x**2

    jax.jit(f)(jnp.ones(3))
    jax.grad(f)(1.0)
    jax.vmap(f)(jnp.ones((4, 2)))
    jax.lax.scan(lambda c, x: (c, f(x)), 0, jnp.ones((4, 5)))
    assert shapes == [(3,), (), (2,), (5,)]


# ------------------------------------------------------------------------------ the cached form


def counted():
    traces = []

    def f(*args, **kwargs):
        traces.append(1)
        return args, kwargs

    return f, traces


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (jnp.ones(2), jnp.zeros(2), True),
        (jnp.ones(2), np.ones(2, np.float32), True),
        (Struct((2,), jnp.float32), Struct((2,), jnp.float32), True),
        (Struct((2,), jnp.float32), Struct((2,), jnp.float16), False),
        (jnp.ones(2), jnp.ones(3), False),
        (jnp.ones(2), jnp.ones(2, jnp.int32), False),
        (jnp.asarray(1.0), jnp.ones(()), False),
        (0.0, -0.0, False),
        (1, 1.0, False),
        (1, True, False),
        ("a", "a", True),
        ([1, "a"], [1, "a"], True),
        ([1, "a"], (1, "a"), False),
    ],
    ids=repr,
)
def test_it_traces_again_for_what_differs_only(one, other, same):
    f, traces = counted()
    for _ in range(3):
        first, second = cached_filter_eval_shape(f, one), cached_filter_eval_shape(f, other)
    assert len(traces) == (1 if same else 2)
    assert first == filter_eval_shape(lambda *a, **k: (a, k), one)
    assert second == filter_eval_shape(lambda *a, **k: (a, k), other)


def test_static_outputs_belong_to_the_shape_they_were_traced_for():
    def f(x):
        return x.shape, "s"

    for size in (1, 2, 1, 2):
        assert cached_filter_eval_shape(f, jnp.ones(size)) == ((size,), "s")


def test_what_cannot_be_hashed_is_not_remembered():
    f, traces = counted()
    for _ in range(2):
        assert cached_filter_eval_shape(f, {1, 2}) == (({1, 2},), {})
    assert len(traces) == 2


def test_the_number_of_answers_is_limited():
    from ecliptic.transform._eval_shape import _answers

    for i in range(3000):
        _answers.get(("entry", i), lambda: None)
    assert len(_answers) <= 2048
    f, traces = counted()
    cached_filter_eval_shape(f, jnp.ones(2))
    cached_filter_eval_shape(f, jnp.ones(2))
    assert len(traces) == 1


def test_an_answer_may_be_changed_by_the_caller():
    def f(x):
        return {"x": x}

    cached_filter_eval_shape(f, jnp.ones(2)).clear()
    assert cached_filter_eval_shape(f, jnp.ones(2)) == {"x": Struct((2,), jnp.float32)}


def test_options_of_jax_and_named_axes_are_told_apart():
    def f():
        return jnp.ones(2)

    with jax.enable_x64(True):
        assert cached_filter_eval_shape(f).dtype == jnp.float64
    assert cached_filter_eval_shape(f).dtype == jnp.float32

    def g(x):
        return jnp.ones(jax.lax.axis_size("i"))

    shapes = []
    mapped = jax.vmap(lambda x: shapes.append(cached_filter_eval_shape(g, x)), axis_name="i")
    for size in (2, 3):
        mapped(jnp.ones(size))
    assert [struct.shape for struct in shapes] == [(2,), (3,)]
