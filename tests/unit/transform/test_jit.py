"""`filter_jit`."""

import doctest
import functools
import gc
import sys
import threading
import time
import tracemalloc
import warnings
import weakref
from collections import namedtuple
from enum import Enum

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic import _jax
from ecliptic.errors import ArgumentError, ArgumentTypeError, StaticError, StructureError
from ecliptic.module import BoundMethod

Pair = namedtuple("Pair", ["first", "second"])


class Colour(Enum):
    RED = 1
    BLUE = 2


class Scale(ec.Module):
    factor: jax.Array
    name: str
    power: int = ec.field(static=True, default=1)

    def __call__(self, x):
        return self.factor * x**self.power

    @ec.filter_jit
    def jitted(self, x):
        return self.factor * x


def counted(function):
    """`function`, and a list that grows by one at each trace."""
    traces = []

    @functools.wraps(function)
    def counting(*args, **kwargs):
        traces.append(1)
        return function(*args, **kwargs)

    return counting, traces


# ---------------------------------------------------------------- what is traced, what is static

STATIC = [
    None, True, 3, 2.5, 1 + 2j, "text", b"bytes", len, jnp.tanh, Colour.RED, float, jnp.float32,
    np.dtype("int8"), frozenset({1}), range(3),
]  # fmt: skip


@pytest.mark.parametrize("value", STATIC, ids=repr)
def test_a_leaf_that_is_no_array_reaches_the_function_as_it_is(value):
    seen = []
    ec.filter_jit(lambda v, x: seen.append(v))(value, jnp.ones(2))
    assert seen == [value]
    assert type(seen[0]) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        jnp.ones(2), np.ones(2, np.float32), np.float32(1), jnp.array(1), jax.random.key(0),
        jnp.ones(2, jnp.bfloat16), np.ones(2, jnp.bfloat16), np.array(True),
    ],
    ids=lambda a: f"{type(a).__name__}-{a.dtype}",
)  # fmt: skip
def test_arrays_are_traced(array):
    seen = []
    ec.filter_jit(lambda v: seen.append(v))(array)
    assert isinstance(seen[0], _jax.Tracer)


@pytest.mark.parametrize("value", STATIC, ids=repr)
def test_an_output_that_is_no_array_comes_back(value):
    out = ec.filter_jit(lambda x: {"a": value, "b": x + 1, "c": (value, x)})
    for _ in range(8):
        result = out(jnp.ones(2))
        assert result["a"] == value
        assert type(result["a"]) is type(value)
        assert result["c"][0] == value
        assert result["b"].tolist() == [2, 2]


def test_static_outputs_belong_to_the_shape_they_were_traced_for():
    f = ec.filter_jit(lambda x: (x, x.shape[0], "s"))
    for size in (1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3):
        x, n, _ = f(jnp.ones(size))
        assert (x.shape, n) == ((size,), size)


def test_a_module_goes_in_and_out():
    f = ec.filter_jit(lambda m: ec.tree_at(lambda m: m.factor, m, m.factor + 1))
    m = Scale(jnp.array(1.0), "a", power=2)
    for i in range(8):
        m = f(m)
        assert m == Scale(jnp.array(i + 2.0), "a", power=2)


def test_default_arguments_stay_outside():
    seen = []

    default = np.ones(2)

    @ec.filter_jit
    def f(x, y=default, key=None):
        seen.append(y)
        return x

    f(jnp.ones(2))
    assert seen[0] is default


# ------------------------------------------------------------------------------ when it retraces


def test_equal_static_parts_do_not_retrace():
    f, traces = counted(lambda *a, **k: None)
    f = ec.filter_jit(f)
    for i in range(20):
        f(Scale(jnp.array(1.0 * i), "".join(["n", "ame"])), 1.0 * 3, key={"b": 1, "a": (2, None)})
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2), (1, 1.0), (1, True), (0.0, -0.0), ("a", "b"), (jnp.sin, jnp.cos), (None, 1),
        ((1,), [1]), ({"a": 1}, {"b": 1}), (Pair(1, 2), (1, 2)), (jnp.ones(1), jnp.ones(2)),
        (jnp.ones(1), jnp.ones(1, jnp.int32)), (jnp.ones(()), 1.0), (complex(0, -0.0), 0j),
        (Scale(jnp.ones(()), "a"), Scale(jnp.ones(()), "b")),
        (Scale(jnp.ones(()), "a", 1), Scale(jnp.ones(()), "a", 2)),
        (Colour.RED, Colour.BLUE), (float, int),
    ],
    ids=repr,
)  # fmt: skip
def test_a_different_static_part_retraces_once_and_both_are_kept(one, other):
    f, traces = counted(lambda v: repr(v))
    f = ec.filter_jit(f)
    for _ in range(8):
        f(one)
        f(other)
    assert len(traces) == 2


def test_nan_is_the_same_static_value_each_time():
    f, traces = counted(lambda v: v)
    f = ec.filter_jit(f)
    for _ in range(8):
        f(float("nan"))
    assert len(traces) == 1


def test_numpy_and_jax_arrays_share_a_program():
    f, traces = counted(lambda x: x + 1)
    f = ec.filter_jit(f)
    for _ in range(8):
        f(np.ones(2, np.float32))
        f(jnp.ones(2))
    assert len(traces) == 1


def test_more_programs_than_are_compared_at_once():
    f, traces = counted(lambda n, x: x * n)
    f = ec.filter_jit(f)
    for _ in range(6):
        for n in range(10):
            assert float(f(n, jnp.array(2))) == 2 * n
    assert len(traces) == 10


def test_wrapping_a_function_twice_compiles_it_once():
    f, traces = counted(lambda x: x)
    for _ in range(4):
        ec.filter_jit(f)(jnp.ones(2))
    assert len(traces) == 1
    ec.filter_jit(f, donate="warn")(jnp.ones(2))
    assert len(traces) == 2


def test_a_bound_method_of_an_equal_module_does_not_retrace():
    traces = []

    class M(ec.Module):
        w: jax.Array

        def f(self, x):
            traces.append(1)
            return self.w * x

    for i in range(4):
        f = ec.filter_jit(M(jnp.array(1.0 * i)).f)
        for _ in range(6):
            assert float(f(jnp.array(2.0))) == 2.0 * i
    assert len(traces) == 1
    wrapper = ec.filter_jit(M(jnp.array(3.0)).f)
    wrapper(jnp.array(2.0))
    doubled = jax.tree.map(lambda w: 2 * w, wrapper)
    assert float(doubled(jnp.array(2.0))) == 12.0
    assert len(traces) == 1


# ----------------------------------------------------------------- callables, methods, decorators


def test_weights_are_arguments_and_not_constants():
    m = Scale(jnp.arange(1000.0), "a")
    for fun in (m, m.__call__, ec.filter_jit(m), m.jitted):
        jaxpr = jax.make_jaxpr(lambda x, fun=fun: ec.filter_jit(fun)(x))(jnp.array(1.0))
        (inner,) = [e for e in jaxpr.eqns if e.primitive.name in ("jit", "pjit")][:1]
        assert not inner.params["jaxpr"].consts
        assert any(v.aval.shape == (1000,) for v in inner.invars)


def test_a_wrapped_module_can_be_trained():
    wrapper = ec.filter_jit(Scale(jnp.array(3.0), "a"))
    grads = jax.grad(lambda p, s: ec.combine(p, s)(jnp.array(2.0)))(
        *ec.partition(wrapper, ec.is_inexact_array)
    )
    assert grads.__wrapped__.factor == 2.0


def test_a_jitted_method_is_a_pytree_of_its_instance():
    m = Scale(jnp.array(3.0), "a")
    assert isinstance(m.jitted, BoundMethod)
    for _ in range(8):
        assert m.jitted(jnp.array(2.0)) == 6.0
    assert Scale.jitted(m, jnp.array(2.0)) == 6.0
    assert jax.tree.leaves(m.jitted) == jax.tree.leaves(m)
    assert m.jitted == m.jitted


def test_classmethods_and_staticmethods():
    class M(ec.Module):
        @ec.filter_jit
        @classmethod
        def under(cls, x):
            return cls.__name__, x

        @classmethod
        @ec.filter_jit
        def over(cls, x):
            return cls.__name__, x

        @staticmethod
        @ec.filter_jit
        def static(x):
            return x + 1

    for _ in range(6):
        assert M.over(jnp.array(1.0)) == ("M", 1.0)
        assert M.under(jnp.array(1.0)) == ("M", 1.0)
        assert M.static(jnp.array(1.0)) == 2.0


def test_it_decorates_with_and_without_arguments():
    @ec.filter_jit
    def f(x):
        """Says so."""
        return x

    @ec.filter_jit(donate="none")
    def g(x):
        return x

    assert f(1) == g(1) == 1
    assert (f.__name__, f.__qualname__, f.__doc__) == ("f", f.__wrapped__.__qualname__, "Says so.")
    assert f.__wrapped__.__name__ == "f"
    assert str(__import__("inspect").signature(g)) == "(x)"


def test_the_wrapper_is_a_module_with_the_tree_of_what_it_wraps():
    assert isinstance(ec.filter_jit(len), ec.Module)
    assert jax.tree.leaves(ec.filter_jit(len)) == []
    m = Scale(jnp.array(1.0), "a")
    assert jax.tree.leaves(ec.filter_jit(m)) == jax.tree.leaves(m)
    assert jax.tree.structure(ec.filter_jit(m)) == jax.tree.structure(ec.filter_jit(m))
    f = ec.filter_jit(m)
    before = jax.tree.structure(f)
    f(jnp.ones(2))
    assert jax.tree.structure(f) == before
    assert repr(ec.filter_jit(len)) == "filter_jit(<built-in function len>)"


@pytest.mark.parametrize("outer", [jax.jit, ec.filter_jit, jax.vmap, jax.checkpoint])
def test_it_works_under_other_transformations(outer):
    f = ec.filter_jit(lambda x: jnp.sin(x))
    for _ in range(6):
        assert jnp.allclose(outer(f)(jnp.ones(3)), jnp.sin(jnp.ones(3)))


def test_it_works_under_grad_scan_and_eval_shape():
    f = ec.filter_jit(lambda x, s: {"y": jnp.sin(x), "s": s})
    assert jnp.allclose(jax.grad(lambda x: f(x, "s")["y"])(1.0), jnp.cos(1.0))
    _, ys = jax.lax.scan(lambda c, x: (c, f(x, "s")["y"]), 0, jnp.ones(3))
    assert jnp.allclose(ys, jnp.sin(1.0))
    assert jax.eval_shape(lambda x: f(x, "s")["y"], jnp.ones(3)).shape == (3,)


def test_recursion():
    @ec.filter_jit
    def factorial(n, x):
        return x if n == 0 else n * factorial(n - 1, x)

    for _ in range(6):
        assert factorial(5, jnp.array(1.0)) == 120


def test_trees_of_other_libraries():
    from flax import struct

    @struct.dataclass
    class Node:
        x: jax.Array
        tag: str = struct.field(pytree_node=False)

    f, traces = counted(lambda tree: jax.tree.map(lambda v: v + 1 if ec.is_array(v) else v, tree))
    f = ec.filter_jit(f)
    model = eqx.nn.MLP(2, 2, 2, 1, key=jax.random.key(0))
    tree = {"n": Node(jnp.ones(2), "t"), "m": model, "p": Pair(jnp.ones(1), "b"), "l": [jnp.sin]}
    for _ in range(8):
        out = f(tree)
        assert jax.tree.structure(out) == jax.tree.structure(tree)
        assert out["n"].x.tolist() == [2, 2]
        assert out["m"].activation is model.activation
    assert len(traces) == 1


def test_disable_jit():
    f = ec.filter_jit(lambda x: (x + 1, "s"))
    with jax.disable_jit():
        for _ in range(8):
            assert f(jnp.array(1.0)) == (2.0, "s")


def test_an_exception_in_the_function_comes_through_and_leaves_nothing_behind():
    @ec.filter_jit
    def f(x, fail):
        if fail:
            raise KeyError("mine")
        return x

    for _ in range(3):
        with pytest.raises(KeyError, match="mine"):
            f(jnp.ones(1), True)
        assert f(jnp.ones(1), False).shape == (1,)


# -------------------------------------------------------------------- collectors, after a few calls


def warm(f, *args, **kwargs):
    for _ in range(10):
        out = f(*args, **kwargs)
    return out


class Outer(ec.Module):
    inner: Scale
    items: list
    table: dict
    pair: Pair
    nothing: None
    label: str = ec.field(static=True, default="l")


def outer(**changes):
    values = dict(
        inner=Scale(jnp.array(2.0), "in"), items=[jnp.ones(2), "i", 3.0],
        table={"b": jnp.zeros(1), "a": len}, pair=Pair(jnp.ones(3), (1, 2)), nothing=None,
    )  # fmt: skip
    return Outer(**(values | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"inner": Scale(jnp.array(2.0), "other")},
        {"inner": Scale(jnp.array(2.0), "in", 2)},
        {"inner": 3},
        {"items": [jnp.ones(2), "i"]},
        {"items": [jnp.ones(2), "j", 3.0]},
        {"items": [jnp.ones(2), "i", 3.5]},
        {"items": [jnp.ones(2), "i", 3]},
        {"items": (jnp.ones(2), "i", 3.0)},
        {"items": [jnp.ones(2), jnp.ones(1), 3.0]},
        {"items": ["a", "i", 3.0]},
        {"table": {"b": jnp.zeros(1), "c": len}},
        {"table": {"b": jnp.zeros(1)}},
        {"table": {"b": jnp.zeros(1), "a": print}},
        {"pair": (jnp.ones(3), (1, 2))},
        {"pair": Pair(jnp.ones(3), (1, 3))},
        {"nothing": 1},
        {"label": "other"},
    ],
    ids=repr,
)
def test_a_collector_notices_every_change(changes):
    f, traces = counted(lambda tree, x: jax.tree.leaves(tree, is_leaf=lambda v: v is None))
    f = ec.filter_jit(f)
    warm(f, outer(), x=jnp.ones(2))
    out = warm(f, outer(**changes), x=jnp.ones(2))
    assert len(traces) == 2
    expected = jax.tree.leaves(outer(**changes), is_leaf=lambda v: v is None)
    assert len(out) == len(expected)
    for got, want in zip(out, expected, strict=True):
        assert bool(ec.tree_equal(got, want, typematch=True))
    assert len(warm(f, outer(), x=jnp.ones(2))) == len(jax.tree.leaves(outer())) + 1
    assert len(traces) == 2


def test_a_collector_keeps_arguments_and_keywords_apart():
    f = ec.filter_jit(lambda *args, **kwargs: (args, kwargs))
    one, two = jnp.ones(1), jnp.ones(2)
    warm(f, one, two, a=one, b=two)
    args, kwargs = f(one, two, b=two, a=one)
    assert [a.shape for a in args] == [(1,), (2,)]
    assert {k: v.shape for k, v in kwargs.items()} == {"a": (1,), "b": (2,)}
    args, kwargs = f(one, a=two, b=two)
    assert (len(args), kwargs["a"].shape) == (1, (2,))
    assert f(a=one) == ((), {"a": one})


def test_a_half_made_module_is_never_taken_for_a_whole_one():
    f = ec.filter_jit(lambda m: len(jax.tree.leaves(m)))
    m = outer()
    warm(f, m)
    half = object.__new__(Outer)
    object.__setattr__(half, "nothing", None)
    assert f(half) == 0


def test_a_tree_too_large_to_write_out_still_works():
    f, traces = counted(lambda xs: len(xs))
    f = ec.filter_jit(f)
    assert warm(f, [None] * 9000) == 9000
    assert warm(f, [None] * 9001) == 9001
    assert len(traces) == 2


# --------------------------------------------------------------------------------------- donation


def donated(f, *args):
    f(*args)
    return [leaf.is_deleted() for leaf in jax.tree.leaves(args)]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("none", [False, False, False]),
        ("all", [True, True, True]),
        ("warn", [True, True, True]),
        ("all-except-first", [False, True, True]),
        ("warn-except-first", [False, True, True]),
    ],
)
def test_donation_modes(mode, expected):
    @functools.partial(ec.filter_jit, donate=mode)
    def f(a, b, c):
        return a + 1, b + 1, c["c"] + 1

    for _ in range(8):
        assert donated(f, jnp.ones(2), jnp.ones(3), {"c": jnp.ones(4)}) == expected


def test_donation_except_first_keeps_the_instance_of_a_method():
    class M(ec.Module):
        w: jax.Array

        @ec.filter_jit(donate="all-except-first")
        def f(self, x):
            return self.w + x, x

    m, x = M(jnp.ones(2)), jnp.ones(2)
    for _ in range(8):
        m.f(jnp.array(x))
    assert not m.w.is_deleted()


@pytest.mark.parametrize(
    ("names", "expected"),
    [("b", [False, True, False]), (("a", "c"), [True, False, True]), ("rest", [False] * 3)],
)
@pytest.mark.parametrize("by_name", [False, True])
def test_donation_by_name(names, expected, by_name):
    @functools.partial(ec.filter_jit, donate=names)
    def f(a, b, c, *rest, **more):
        return a + 1, b + 1, c["c"] + 1

    for _ in range(8):
        a, b, c = jnp.ones(2), jnp.ones(3), {"c": jnp.ones(4)}
        f(a, c=c, b=b) if by_name else f(a, b, c)
        assert [x.is_deleted() for x in (a, b, c["c"])] == expected


def test_donation_by_name_of_many_and_of_self():
    @functools.partial(ec.filter_jit, donate=("rest", "more"))
    def f(a, *rest, **more):
        return a + 1, [r + 1 for r in rest], {k: v + 1 for k, v in more.items()}

    xs = [jnp.ones(i + 1) for i in range(4)]
    f(xs[0], xs[1], xs[2], x=xs[3])
    assert [x.is_deleted() for x in xs] == [False, True, True, True]

    class M(ec.Module):
        w: jax.Array

        @ec.filter_jit(donate="self")
        def f(self, x):
            return M(self.w + x)

        def g(self, x):
            return x + 1

    m, x = M(jnp.ones(2)), jnp.ones(2)
    m2 = m.f(x)
    assert (m.w.is_deleted(), x.is_deleted()) == (True, False)
    ec.filter_jit(m2.g, donate="x")(x)
    assert (m2.w.is_deleted(), x.is_deleted()) == (False, True)


def test_donation_of_an_unknown_name():
    with pytest.raises(ArgumentError, match=r"got \('b', 'c'\), and the parameters are 'a', 'b'"):
        ec.filter_jit(lambda a, b: a, donate=("b", "c"))


# --------------------------------------------------------------------------------------- shardings


def test_shardings_of_arguments_and_outputs():
    mesh = jax.make_mesh((4,), ("data",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())

    @functools.partial(ec.filter_jit, in_shardings=(None, split), out_shardings=(split, whole))
    def f(model, batch, *, scale):
        assert batch["name"] == "batch"
        return {"x": batch["x"] * scale, "s": "s"}, model.factor

    model = Scale(jnp.ones(()), "a")
    for _ in range(8):
        out, factor = f(model, {"x": jnp.ones((8, 2)), "name": "batch"}, scale=jnp.array(2.0))
        assert out["x"].sharding.is_equivalent_to(split, 2)
        assert out["s"] == "s"
        assert factor.sharding.is_fully_replicated
    both = ec.filter_jit(lambda x, y: (x, y), in_shardings=split)
    assert both(jnp.ones(8), jnp.ones(4))[0].sharding.is_equivalent_to(split, 1)


def test_shardings_that_do_not_fit():
    mesh = jax.make_mesh((4,), ("data",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    with pytest.raises(StructureError, match="`in_shardings` must be a tree prefix"):
        ec.filter_jit(lambda x: x, in_shardings=(split, split))(jnp.ones(8))
    with pytest.raises(StructureError, match="must be a tree prefix"):
        ec.filter_jit(lambda x: x, out_shardings=(split, split))(jnp.ones(8))
    with pytest.raises(ArgumentTypeError, match=r"`in_shardings\[0\]` must be a device"):
        ec.filter_jit(lambda x: x, in_shardings=("data",))(jnp.ones(8))


def test_inlined_under_eval_shape_scan_and_vmap():
    f = ec.filter_jit(lambda m, x: (m(x), "s"), inline=True)
    m = Scale(jnp.array(2.0), "a")
    assert jax.eval_shape(lambda x: f(m, x)[0], jnp.ones(3)).shape == (3,)
    assert jax.vmap(lambda x: f(m, x)[0])(jnp.ones(3)).tolist() == [2, 2, 2]
    _, (ys, s) = ec.filter_scan(lambda c, x: (c, f(m, x)), None, jnp.ones(3))
    assert (ys.tolist(), s) == ([2, 2, 2], "s")


def test_many_calls_do_not_grow():
    f = ec.filter_jit(lambda m, s: m)
    m = outer()
    warm(f, m, "s")
    tracemalloc.start()
    try:
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(3000):
            f(m, "s")
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 30_000


def test_useless_donation_warns_only_if_asked_to():
    def f(x):
        return x.sum()

    for size in (2, 2, 2, 2, 2, 2, 3):
        ec.filter_jit(f, donate="all")(jnp.ones(size))
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        ec.filter_jit(f, donate="warn")(jnp.ones(2))


def test_silenced_donation_leaves_the_warning_filters_alone():
    f = ec.filter_jit(lambda x: x.sum(), donate="all")
    before = list(warnings.filters)
    for size in (2, 2, 2, 2, 2, 2, 3):
        f(jnp.ones(size))
    assert list(warnings.filters) == before


# ------------------------------------------------------------------------------------------ errors


def test_an_unhashable_static_leaf_is_named():
    f = ec.filter_jit(lambda **k: None)
    with pytest.raises(StaticError, match=r"leaf kwargs\['a'\]\.items\[1\] is no array.*`set`"):
        f(a=outer(items=[1, {1, 2}]))


def test_a_static_field_without_a_hash_is_compared():
    f, traces = counted(lambda m: None)
    f = ec.filter_jit(f)
    for power in ([1], [1], [2], [1], [2]):
        f(Scale(jnp.ones(1), "a", power=power))
    assert len(traces) == 2


def test_an_array_in_a_static_field_is_named_when_it_has_to_be_compared():
    with pytest.warns(UserWarning, match="being set as static"):
        one, other = (Scale(jnp.ones(1), "a", power=np.ones(3)) for _ in range(2))
    f = ec.filter_jit(lambda x, m: None)
    f(1, [one])
    f(1, [one])
    with pytest.raises(StaticError, match=r"field `power` of the `Scale` at args\[1\]\[0\] holds"):
        f(1, [other])


def test_an_array_in_the_metadata_of_another_library():
    @functools.partial(jax.tree_util.register_dataclass, data_fields=[], meta_fields=["m"])
    class Node:
        def __init__(self, m):
            self.m = m

    f = ec.filter_jit(lambda n: None)
    f(Node(np.ones(3)))
    with pytest.raises(StaticError, match="cannot be compared with that of an earlier call"):
        f(Node(np.ones(3)))


@pytest.mark.parametrize("option", ["static_argnums", "static_argnames", "donate_argnums"])
def test_replaced_options_of_jit(option):
    with pytest.raises(ArgumentError, match=f"does not take `{option}`"):
        ec.filter_jit(len, **{option: 0})


def test_wrong_donation_mode():
    with pytest.raises(ArgumentError, match="is one of 'all', .*got 'most'"):
        ec.filter_jit(len, donate="most")


def test_not_a_callable():
    with pytest.raises(
        ArgumentTypeError, match="`filter_jit` needs a callable .* got 3 of type `int`"
    ):
        ec.filter_jit(3)


def test_options_go_to_jit():
    def f(x):
        return x + 1

    for jit in (jax.jit, ec.filter_jit):
        (call,) = jax.make_jaxpr(lambda x, jit=jit: jit(f, keep_unused=True)(x))(1.0).eqns
        assert call.params["keep_unused"]


# -------------------------------------------------------------------- time, memory, threads


def test_a_call_returns_before_its_result_is_there():
    @ec.filter_jit
    def slow(x, times):
        return jax.lax.fori_loop(0, times, lambda i, y: jnp.tanh(y @ y), x)

    x = jnp.full((600, 600), 0.01)
    jax.block_until_ready(slow(x, 100))
    out = slow(x, 100)
    # No wall clock: the result of a call that waited would be ready.
    assert not out.is_ready()
    jax.block_until_ready(out)


def test_calls_leave_no_cyclic_garbage():
    f = ec.filter_jit(lambda m, s: m)
    m = outer()
    warm(f, m, "s")
    gc.collect()
    gc.disable()
    try:
        for _ in range(500):
            f(m, "s")
        # Other threads of the test runner may leave an object or two; no call does.
        assert gc.collect() < 100
    finally:
        gc.enable()


def test_a_function_that_is_dropped_takes_its_programs_along():
    def make():
        big = np.ones(3)

        def f(x):
            return x + big

        ec.filter_jit(f)(jnp.ones(3, jnp.float64 if jax.config.jax_enable_x64 else jnp.float32))
        return weakref.ref(f)

    with jax.numpy_dtype_promotion("standard"):
        ref = make()
    gc.collect()
    assert ref() is None


def test_programs_per_function_are_bounded(monkeypatch):
    from ecliptic.transform import _table

    monkeypatch.setattr(_table, "_MAX_PROGRAMS", 3)
    f = ec.filter_jit(lambda n: n)
    for n in range(10):
        assert f(n) == n
    assert len(f._dispatch.table.programs) == 3


def test_threads_trace_once_and_get_their_own_results():
    traces = []

    @ec.filter_jit
    def f(n, x):
        traces.append(n)
        time.sleep(0.02)
        return x * n

    results: dict = {}
    start = threading.Barrier(8)

    def work(i):
        start.wait()
        results[i] = [float(f(i % 4, jnp.array(1.0 * i))) for _ in range(50)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(traces) == [0, 1, 2, 3]
    assert results == {i: [float((i % 4) * i)] * 50 for i in range(8)}


def test_mutually_recursive_functions_in_two_threads_do_not_wait_for_each_other():
    @ec.filter_jit
    def f(n, x):
        time.sleep(0.01)
        return x if n == 0 else g(n - 1, x) + 1

    @ec.filter_jit
    def g(n, x):
        time.sleep(0.01)
        return x if n == 0 else f(n - 1, x) + 1

    out = []
    threads = [
        threading.Thread(target=lambda h=h: out.append(float(h(6, jnp.array(0.0)))), daemon=True)
        for h in (f, g)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert out == [6.0, 6.0]


class Documented(ec.Module):
    @ec.filter_jit
    def compiled(self):
        """
        >>> 1 + 1
        2
        """

    @ec.filter_vmap
    def mapped(self):
        """
        >>> 1 + 2
        3
        """


def test_doctest_finds_the_examples_of_wrapped_methods():
    found = doctest.DocTestFinder().find(Documented, module=sys.modules[__name__])
    assert sorted(test.name for test in found if test.examples) == [
        "Documented.compiled", "Documented.mapped",
    ]  # fmt: skip


@pytest.mark.parametrize("transform", [ec.filter_grad, ec.filter_vmap, ec.Partial])
def test_wrappers_around_one_function_share_its_programs(transform):
    traces = []

    def f(x):
        traces.append(None)
        return x * 2

    x = jnp.ones((3,)) if transform is ec.filter_vmap else jnp.array(1.0)
    for _ in range(2):
        ec.filter_jit(transform(f))(x)
    assert len(traces) == 1


@pytest.mark.parametrize("calls", [1, 8])
def test_an_error_while_tracing_again_stands_alone(calls):
    @ec.filter_jit
    def f(x):
        if x.shape == (3,):
            raise ValueError("of the user")
        return x

    for _ in range(calls):
        f(jnp.ones(2))
    with pytest.raises(ValueError, match="of the user") as caught:
        f(jnp.ones(3))
    assert caught.value.__context__ is None


def test_few_programs_outlive_their_functions():
    def compile_one():
        def f(x):
            return x * 2

        ec.filter_jit(ec.filter_grad(f))(jnp.array(1.0))
        return weakref.ref(f)

    functions = [compile_one() for _ in range(40)]
    jax.clear_caches()
    gc.collect()
    assert sum(ref() is not None for ref in functions) <= 16
