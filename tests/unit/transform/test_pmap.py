"""`filter_pmap`, on simulated devices."""

import inspect
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError, ArgumentTypeError, RuntimeCheckError
from ecliptic.runtime import error_if
from ecliptic.transform import filter_pmap

A = jnp.arange(8.0).reshape(4, 2)


def counted():
    traces = []

    def f(x, s):
        traces.append(1)
        return 2 * x, s, x.shape

    return f, traces


def test_any_tree_in_and_out():
    def f(x, s, *, k):
        return {"x": 2 * x, "s": s, "f": len, "n": None, "i": 1, "k": k}

    out = filter_pmap(f)(A, "s", k={"a": jnp.ones((4, 3), jnp.bfloat16), "f": len})
    assert out["x"].tolist() == (2 * A).tolist()
    assert (out["s"], out["f"], out["n"], out["i"], out["k"]["f"]) == ("s", len, None, 1, len)
    assert out["k"]["a"].shape == (4, 3)
    assert len(out["x"].devices()) == 4


def test_keys_and_numpy_arrays():
    keys = jax.random.split(jax.random.key(0), 4)
    out = filter_pmap(lambda k, x: jax.random.normal(k) + x)(keys, np.ones(4, np.float32))
    assert jnp.allclose(out, jax.vmap(jax.random.normal)(keys) + 1)


@pytest.mark.parametrize("in_axes", [(0, None), {"w": None}, (ec.if_array(0), None)], ids=str)
def test_axes_of_arguments(in_axes):
    f = filter_pmap(lambda x, w: w * x, in_axes=in_axes)
    assert f(A, jnp.array([1.0, 2.0])).tolist() == (A * jnp.array([[1.0, 2.0]])).tolist()


def test_other_axes_of_arguments_and_outputs():
    f = filter_pmap(lambda x: (x, x, x), in_axes=1, out_axes=(1, 0, lambda x: -1))
    one, other, by_function = f(A.T)
    assert one.tolist() == by_function.tolist() == A.T.tolist()
    assert other.tolist() == A.tolist()


def test_an_unmapped_output():
    out = filter_pmap(lambda x, w: (x, w), in_axes=(0, None), out_axes=(0, None))(A, jnp.ones(3))
    assert out[1].tolist() == [1, 1, 1]


def test_a_named_axis():
    out = filter_pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(jnp.ones(4))
    assert out.tolist() == [4, 4, 4, 4]


def test_a_size_without_mapped_arguments():
    f = filter_pmap(lambda s: (jax.lax.axis_index("i"), s), axis_name="i", axis_size=4)
    assert f("s")[0].tolist() == [0, 1, 2, 3]
    assert f("s")[1] == "s"


def test_arrays_of_the_function_are_the_same_on_each_device():
    f = ec.Partial(lambda w, x: w * x, jnp.array([1.0, 2.0]))
    assert filter_pmap(f)(A).tolist() == (A * jnp.array([[1.0, 2.0]])).tolist()


def test_an_equinox_module():
    model = eqx.nn.Linear(2, 3, key=jax.random.key(0))
    assert filter_pmap(model)(A).shape == (4, 3)


def test_it_compiles_once_for_each_static_part_and_shape():
    f, traces = counted()
    g = filter_pmap(f)
    for size in (1, 2):
        for s in "ab":
            for _ in range(3):
                assert g(jnp.ones((4, size)), s)[1:] == (s, (size,))
    assert len(traces) == 4


def test_it_compiles_once_when_the_wrapper_was_flattened():
    f, traces = counted()
    g = filter_pmap(f)
    g(A, "s")
    jax.tree.map(lambda x: x, g)(A, "s")
    assert len(traces) == 1


def test_nested():
    f = filter_pmap(lambda x, s: (x**2, s))
    assert jax.grad(lambda x: f(x, "s")[0].sum())(A).tolist() == (2 * A).tolist()
    assert ec.filter_jit(f)(A, "s")[1] == "s"
    assert jax.vmap(lambda x: f(x, "s")[0])(jnp.stack([A, A])).shape == (2, 4, 2)


@pytest.mark.parametrize("donate", ["all", "warn"])
def test_donated_arrays_are_gone(donate):
    x = filter_pmap(lambda x: x + 1)(A)
    filter_pmap(lambda x: x + 1, donate=donate)(x).block_until_ready()
    assert x.is_deleted()


def test_nothing_is_donated_by_default():
    x = filter_pmap(lambda x: x + 1)(A)
    filter_pmap(lambda x: x + 1)(x)
    assert not x.is_deleted()


def test_donations_of_no_use_warn_where_wanted():
    x = filter_pmap(lambda x: x + 1)(A)
    filter_pmap(lambda x: x.sum(), donate="all")(x)
    x = filter_pmap(lambda x: x + 1)(A)
    with warnings.catch_warnings(record=True) as by_jax:
        warnings.simplefilter("always")
        jax.pmap(lambda x: x.sum(), donate_argnums=0)(x)
    if not by_jax:
        pytest.skip("this JAX does not warn either")
    x = filter_pmap(lambda x: x + 1)(A)
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        filter_pmap(lambda x: x.sum(), donate="warn")(x)


def test_chosen_devices():
    out = filter_pmap(lambda x: x, devices=jax.devices()[2:])(A[:2])
    assert out.devices() == set(jax.devices()[2:])


def test_is_leaf_stops_functions():
    seen = []

    def axis(node):
        seen.append(type(node))
        return 0

    filter_pmap(lambda x: x[0], in_axes=axis, is_leaf=lambda x: type(x) is tuple)((A, A))
    assert tuple in seen


def test_it_is_a_tree_that_looks_like_the_function():
    def f(x, *, flag=True):
        """Text."""

    made = filter_pmap(f)
    assert (made.__name__, made.__doc__, made.__wrapped__) == ("f", "Text.", f)
    assert inspect.signature(made) == inspect.signature(f)


def test_as_a_decorator_and_on_methods():
    class Scale(ec.Module):
        w: jax.Array

        @filter_pmap(in_axes=(None, 0))
        def method(self, x):
            return self.w * x

    assert Scale(jnp.array(2.0)).method(A).tolist() == (2 * A).tolist()


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: filter_pmap(lambda x: x)(jnp.ones(8)), ArgumentError, "8 elements on 4 devices"),
        (
            lambda: filter_pmap(lambda x: x)("s"),
            ArgumentError,
            r"No argument of .* Pass `axis_size=`",
        ),
        (lambda: filter_pmap(lambda x, y: x)(A, A[:3]), ArgumentError, "Inconsistent sizes"),
        (
            lambda: filter_pmap(lambda x: (x, "s"), out_axes=0)(A),
            ArgumentError,
            r"`out_axes` gives axis 0 to `out\[1\]`",
        ),
        (
            lambda: filter_pmap(len, donate="some"),
            ArgumentError,
            "is one of 'all', 'warn', 'none'; got 'some'",
        ),
        (
            lambda: filter_pmap(len, donate_argnums=0),
            ArgumentError,
            "`donate_argnums`: use `donate=`",
        ),
        (lambda: filter_pmap(len, static_broadcasted_argnums=0), ArgumentError, "static already"),
        (lambda: filter_pmap(len, foo=0), ArgumentTypeError, "got the option `foo`"),
        (lambda: filter_pmap(len, in_axes="a"), ArgumentTypeError, "`in_axes` must consist of"),
        (lambda: filter_pmap(len, in_axes={"x": "a"}), ArgumentTypeError, r"in_axes\['x'\]"),
        (lambda: filter_pmap(3), ArgumentTypeError, "`filter_pmap` needs a callable.*got 3"),
    ],
)
def test_mistakes(call, error, match):
    with pytest.raises(error, match=match):
        call()


class TestAheadOfTime:
    def test_it_gives_the_output_that_the_function_gives(self):
        f, traces = counted()
        compiled = filter_pmap(f).lower(A, "s").compile()
        out, s, shape = compiled(A + 1, "s")
        assert (out.tolist(), s, shape) == ((2 * (A + 1)).tolist(), "s", (2,))
        assert len(traces) == 1

    def test_arrays_may_be_described(self):
        lowered = filter_pmap(lambda x: x + 1).lower(jax.ShapeDtypeStruct(A.shape, A.dtype))
        assert "stablehlo" in lowered.as_text()
        assert lowered.compile()(A).tolist() == (A + 1).tolist()

    def test_other_static_arguments_are_refused(self):
        compiled = filter_pmap(lambda x, s: x).lower(A, "one").compile()
        with pytest.raises(ArgumentError, match="compiled for other arguments: .*'one' then and"):
            compiled(A, "other")

    def test_donated_buffers_of_no_use_are_no_matter(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            filter_pmap(lambda x: x[0], donate="all").lower(A).compile()


class Adds(ec.Module):
    by: int

    def __call__(self, x):
        TRACES.append(1)
        return x + self.by


TRACES: list[int] = []


def test_the_programs_of_a_callable_tree_are_shared_by_all_its_wrappers():
    TRACES.clear()
    assert filter_pmap(Adds(1))(A).tolist() == filter_pmap(Adds(1))(A).tolist()
    assert len(TRACES) == 1
    filter_pmap(Adds(1), out_axes=1)(A)
    filter_pmap(Adds(2))(A)
    assert len(TRACES) == 3


def _checked():
    return filter_pmap(lambda x: error_if(x, x < 0, "negative") * 2)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_check_fails_with_its_own_error_and_the_program_can_be_called_again(ahead):
    f = _checked()
    if ahead:
        f = f.lower(jnp.arange(4.0)).compile()
    for _ in range(2):
        assert f(jnp.arange(4.0)).tolist() == [0, 2, 4, 6]
        with pytest.raises(RuntimeCheckError, match="^negative"):
            f(jnp.arange(4.0) - 2)
