"""`filter_scan`."""

import functools
import threading
from collections import namedtuple
from enum import Enum

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.experimental import sparse

import ecliptic as ec
from ecliptic.errors import ArgumentError, ArgumentTypeError, CarryError, LeafError
from tests.support.vmappables import Nested, Shared, Table

Pair = namedtuple("Pair", ["first", "second"])


class Mode(Enum):
    FAST = 1


class Cell(ec.Module):
    net: ec.nn.MLP
    name: str
    rate: float


@pytest.fixture
def cell():
    return Cell(ec.nn.MLP(2, 2, 8, 1, key=jax.random.key(0)), "cell", 0.5)


def shift(model, by):
    return ec.tree_at(lambda m: m.net.layers[0].bias, model, replace_fn=lambda b: b + by)


# ------------------------------------------------------------------------- the founding program


def test_a_module_with_a_function_in_it_is_a_carry(cell):
    def step(carry, _):
        models, h = carry
        (model,) = models
        h = model.net(h)
        return ([shift(model, 0.01)], h), h

    (models, last), hs = ec.filter_scan(step, ([cell], jnp.ones(2)), length=200)

    arrays, static = ec.partition(cell, ec.is_array)

    def by_hand(carry, _):
        arrays, h = carry
        model = ec.combine(arrays, static)
        h = model.net(h)
        return (ec.partition(shift(model, 0.01), ec.is_array)[0], h), h

    (arrays, expected_last), expected_hs = jax.lax.scan(by_hand, (arrays, jnp.ones(2)), length=200)
    assert hs.tolist() == expected_hs.tolist()
    assert last.tolist() == expected_last.tolist()
    assert ec.tree_equal(models[0], ec.combine(arrays, static))
    assert models[0].net.activation is cell.net.activation
    assert (models[0].name, models[0].rate) == ("cell", 0.5)


@pytest.fixture
def standard_promotion():
    # Optax scales by Python and int32 numbers alike.
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.mark.usefixtures("standard_promotion")
def test_a_training_epoch_is_one_scan(cell):
    optim = optax.adam(1e-2)
    xs = jax.random.normal(jax.random.key(1), (50, 16, 2))

    @ec.filter_value_and_grad
    def loss(model, x):
        return jnp.mean((jax.vmap(model.net)(x) - jnp.flip(x, 1)) ** 2)

    def step(carry, x):
        model, state = carry
        value, grads = loss(model, x)
        updates, state = optim.update(grads, state)
        return (ec.apply_updates(model, updates), state), value

    state = optim.init(ec.filter(cell, ec.is_inexact_array))
    (trained, _), losses = ec.filter_jit(ec.filter_scan)(step, (cell, state), xs)
    assert losses.shape == (50,)
    assert losses[-1] < losses[0]
    assert trained.name == "cell"

    model = cell
    state = optim.init(ec.filter(cell, ec.is_inexact_array))
    for x in xs[:3]:
        (model, state), _ = step((model, state), x)
    (scanned, _), _ = ec.filter_scan(
        step, (cell, optim.init(ec.filter(cell, ec.is_inexact_array))), xs[:3]
    )
    assert ec.tree_equal(model, scanned, rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------------------ leaves of any kind

HELD = [
    "text",
    len,
    Mode.FAST,
    b"x",
    frozenset({1}),
    {1, 2},
    object(),
    jnp.float32,
    3,
    2.5,
    True,
    1j,
]


def hashable(value):
    return type(value).__hash__ is not None


@pytest.mark.parametrize(
    ("value", "jit"),
    # The arguments of a jitted function must be hashable; those of a scan need not be.
    [(v, False) for v in HELD] + [(v, True) for v in HELD if hashable(v)],
    ids=lambda v: type(v).__name__,
)
def test_what_is_no_array_is_held(value, jit):
    seen = []

    def step(carry, x):
        seen.append((carry[0], x[0]))
        return carry, (x[1], value)

    run = (lambda c, x: ec.filter_scan(step, c, x)) if not jit else (
        ec.filter_jit(lambda c, x: ec.filter_scan(step, c, x))
    )  # fmt: skip
    (held, _), (ys, out) = run((value, jnp.ones(2)), (value, jnp.arange(3)))
    assert held is value or held == value
    assert out is value or out == value
    assert type(held) is type(out) is type(value)
    assert ys.tolist() == [0, 1, 2]
    assert seen[0] == (value, value)


@pytest.mark.parametrize(
    "array",
    [
        jnp.ones(3), np.ones(3, np.float32), np.ones(3), jnp.ones(3, jnp.bfloat16), jnp.arange(3),
        jax.random.split(jax.random.key(0), 3), np.float32(2), jnp.zeros((3, 0)), jnp.ones(3, bool),
    ],
    ids=lambda a: f"{type(a).__name__}-{a.dtype}-{a.shape}",
)  # fmt: skip
def test_arrays_of_every_kind_are_carried(array):
    last, _ = ec.filter_scan(lambda c, _: (c, None), {"a": array, "n": None}, length=2)
    expected, _ = jax.lax.scan(lambda c, _: (c, None), jnp.asarray(array), length=2)
    assert last["a"].dtype == expected.dtype
    assert last["a"].shape == expected.shape
    assert last["n"] is None


def test_trees_of_other_libraries_are_carried():
    import equinox as eqx
    from flax import struct

    @struct.dataclass
    class Node:
        x: jax.Array
        tag: str = struct.field(pytree_node=False)

    mlp = eqx.nn.MLP(2, 2, 2, 1, key=jax.random.key(0))
    carry = {"n": Node(jnp.ones(2), "t"), "m": mlp, "p": Pair(jnp.ones(2), "s")}

    def step(carry, _):
        return carry | {"n": carry["n"].replace(x=carry["m"](carry["n"].x))}, carry["p"]

    last, ys = ec.filter_scan(step, carry, length=3)
    assert last["n"].tag == "t"
    assert last["m"].activation is mlp.activation
    assert ys.first.shape == (3, 2)
    assert ys.second == "s"


# -------------------------------------------------------------------------------- Python numbers


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("start", "change"),
    [
        (0, lambda c: c + 1), (0, lambda c: c + 1.5), (0.0, lambda c: c + 1),
        (True, lambda c: c ^ True),
        (1j, lambda c: c * 2), (0, lambda c: jnp.float16(1) + c), (0.0, lambda c: 1.0),
        (1, lambda c: jnp.array(2)),
    ],
)  # fmt: skip
def test_a_number_that_changes_is_what_jax_makes_of_it(start, change, jit):
    def step(carry, _):
        return {"n": change(carry["n"]), "s": carry["s"]}, None

    def plain(carry, _):
        return change(carry), None

    run = functools.partial(ec.filter_scan, step, length=3)
    with jax.numpy_dtype_promotion("standard"):
        expected, _ = jax.lax.scan(plain, start, length=3)
        last, _ = (ec.filter_jit(run) if jit else run)({"n": start, "s": "s"})
    assert last["n"].tolist() == expected.tolist()
    assert jax.typeof(last["n"]) == jax.typeof(expected)
    assert last["s"] == "s"


def test_a_number_that_stays_is_static():
    def step(carry, _):
        assert type(carry["p"]) is float
        return {"p": carry["p"] * 1.0, "x": carry["x"] * carry["p"]}, None

    last, _ = ec.filter_scan(step, {"p": 0.5, "x": jnp.array(8.0)}, length=3)
    assert (last["p"], float(last["x"])) == (0.5, 1.0)
    assert type(last["p"]) is float


def test_a_number_that_changes_costs_one_more_trace():
    traces = []

    def step(carry, _):
        traces.append(1)
        return carry + 1, None

    assert int(ec.filter_scan(step, 0, length=3)[0]) == 3
    for start in range(5):
        assert int(ec.filter_scan(step, start, length=3)[0]) == start + 3
    assert len(traces) == 2


def test_a_weakly_typed_carry_takes_the_dtype_of_its_successor():
    weak = jnp.asarray(1.0)
    assert jax.typeof(weak).weak_type

    def step(carry, _):
        return carry.astype(jnp.float16), None

    last, _ = ec.filter_scan(step, weak, length=1)
    assert last.dtype == jax.lax.scan(step, weak, length=1)[0].dtype == jnp.float16


# ---------------------------------------------------------------------------------------- errors


def failing(step, init, xs=None, length=2):
    with pytest.raises(CarryError) as info:
        ec.filter_scan(step, init, xs, length)
    return str(info.value)


def test_every_offending_leaf_is_listed(cell):
    def step(carry, _):
        model = ec.tree_at(
            lambda m: (m.name, m.net.layers[0].bias, m.net.layers[1].bias, m.rate),
            carry["m"],
            ("other", jnp.ones(3), jnp.ones(2, jnp.int32), 2.0),
        )
        return {"m": model}, None

    text = failing(step, {"m": cell})
    assert text.startswith("`filter_scan`: the function returned a carry that differs")
    assert "  carry['m'].name: 'cell' before, 'other' after; it is no array" in text
    assert "  carry['m'].net.layers[0].bias: f32[8] before, f32[3] after: the shapes" in text
    assert "  carry['m'].net.layers[1].bias: f32[2] before, i32[2] after: the dtypes" in text
    assert "rate" not in text.split("A carry keeps")[0]  # a number may change
    assert "`.astype(...)`" in text


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ({"a": 1}, {"b": 1}, "carry['b']: nothing before, 1 after"),
        ({"a": "x"}, {"a": "x", "b": len}, "carry['b']: nothing before, <built-in function len>"),
        ((1, 2), [1, 2], "at `tree` one has a tuple, the other a list"),
        ((None,), (1,), "carry[0]: None before, 1 after"),
        (("s",), (None,), "carry[0]: 's' before, None after"),
        (("s",), (jnp.ones(1),), "carry[0]: 's' before, f32[1] after; a `str` cannot become"),
        ((jnp.ones(1),), ("s",), "carry[0]: f32[1] before, 's' after, which is no array"),
        ((jnp.sin,), (jnp.cos,), "carry[0]: <ufunc 'sin'> before, <ufunc 'cos'> after"),
        ((len,), (print,), "carry[0]: <built-in function len> before, <built-in function print>"),
        (("a",), (("a",),), "carry[0][0]: nothing before, 'a' after"),
    ],
    ids=str,
)
def test_what_changed_is_said(before, after, line):
    text = failing(lambda c, _: (after, None), before)
    assert line in text.replace("<wrapped function sin>", "<ufunc 'sin'>").replace(
        "<wrapped function cos>", "<ufunc 'cos'>"
    )


@pytest.mark.parametrize("out", [3, (1, 2, 3), {"a": 1, "b": 2}, None])
def test_the_function_must_return_a_pair(out):
    with pytest.raises(ArgumentTypeError, match="`filter_scan`: the function must return a pair"):
        ec.filter_scan(lambda c, x: out, 0, length=1)


def test_lengths_that_differ_are_listed_by_path():
    with pytest.raises(ArgumentError, match=r"xs\['a'\] has 2, xs\['b'\]\[0\] has 3"):
        ec.filter_scan(lambda c, x: (c, x), 0, {"a": jnp.ones(2), "b": (jnp.ones(3), "s")})
    with pytest.raises(ArgumentError, match=r"length=4, .* other lengths: xs has 2"):
        ec.filter_scan(lambda c, x: (c, x), 0, jnp.ones(2), length=4)
    with pytest.raises(ArgumentError, match=r"first axis, and xs\[1\] has none: it is f32\[\]"):
        ec.filter_scan(lambda c, x: (c, x), 0, (jnp.ones(2), jnp.ones(())))
    with pytest.raises(ArgumentError, match="there is no array in `xs`"):
        ec.filter_scan(lambda c, x: (c, x), 0, ("s", 3))


# --------------------------------------------------------------------------- options, transforms


def step_sum(carry, x):
    return {"s": carry["s"] + x["x"], "f": carry["f"]}, {"y": carry["f"](carry["s"]), "n": "n"}


ARGS = ({"s": jnp.array(0.5), "f": jnp.sin}, {"x": jnp.arange(6.0), "h": "h"})


def by_lax(s, xs, **options):
    return jax.lax.scan(lambda c, x: (c + x, jnp.sin(c)), s, xs, **options)


@pytest.mark.parametrize(
    "options", [{}, {"reverse": True}, {"unroll": 2}, {"unroll": True}, {"length": 6}]
)
def test_options_are_those_of_jax(options):
    last, ys = ec.filter_scan(step_sum, *ARGS, **options)
    expected, expected_ys = by_lax(ARGS[0]["s"], ARGS[1]["x"], **options)
    assert last["s"] == expected
    assert jnp.allclose(ys["y"], expected_ys)
    assert ys["n"] == "n"


def test_no_steps():
    last, ys = ec.filter_scan(step_sum, ARGS[0], {"x": jnp.zeros(0)}, 0)
    assert last["s"] == 0.5
    assert ys["y"].shape == (0,)
    assert ys["n"] == "n"


def loss(s, xs, scan=ec.filter_scan):
    last, ys = scan(step_sum, {"s": s, "f": jnp.sin}, {"x": xs})
    return last["s"] ** 2 + ys["y"].sum()


def expected_loss(s, xs):
    last, ys = by_lax(s, xs)
    return last**2 + ys.sum()


@pytest.mark.parametrize(
    "transform",
    [
        jax.jit, ec.filter_jit, jax.grad, ec.filter_grad, jax.checkpoint,
        lambda f: jax.grad(jax.checkpoint(f)), lambda f: jax.jacfwd(f), lambda f: jax.hessian(f),
        lambda f: lambda s, xs: jax.vmap(f, (0, None))(jnp.stack([s, s + 1]), xs),
        lambda f: lambda s, xs: ec.filter_vmap(f, in_axes=(None, 0))(s, jnp.stack([xs, xs * 2])),
        lambda f: lambda s, xs: jax.jvp(f, (s, xs), (jnp.ones(()), jnp.ones(6))),
        lambda f: jax.jit(jax.vmap(jax.grad(f), (None, 0))) and jax.grad(jax.jit(f)),
    ],
)  # fmt: skip
def test_under_transformations(transform):
    s, xs = jnp.array(0.5), jnp.arange(6.0)
    got, want = transform(loss)(s, xs), transform(expected_loss)(s, xs)
    assert ec.tree_equal(got, want, rtol=1e-5, atol=1e-5)


def test_nested():
    def inner(carry, x):
        return {"v": carry["v"] + x, "f": carry["f"]}, carry["f"](x)

    def outer(carry, xs):
        carry, ys = ec.filter_scan(inner, carry, xs)
        return carry, (ys, "s")

    carry, (ys, held) = ec.filter_scan(
        outer, {"v": jnp.array(0), "f": jnp.square}, jnp.ones((2, 3), int)
    )
    assert (int(carry["v"]), held, ys.shape) == (6, "s", (2, 3))


def test_the_body_is_traced_once_and_not_again_for_equal_static_parts():
    traces = []

    def step(carry, x):
        traces.append(1)
        return carry, x["x"]

    for i in range(4):
        carry = {"s": "".join(["te", "xt"]), "a": jnp.array(1.0 * i)}
        ec.filter_scan(step, carry, {"x": jnp.ones(3), "f": len})
    assert len(traces) == 1
    ec.filter_scan(step, {"s": "other", "a": jnp.array(1.0)}, {"x": jnp.ones(3), "f": len})
    assert len(traces) == 2


def test_a_module_is_a_step_and_its_weights_are_arguments():
    traces = []

    class Step(ec.Module):
        w: jax.Array

        def __call__(self, carry, x):
            traces.append(1)
            return carry * self.w + x, "s"

    for i in range(4):
        last, _ = ec.filter_scan(Step(jnp.array(1.0 * i)), jnp.array(1.0), jnp.ones(2))
        assert float(last) == i * i + i + 1
    assert len(traces) == 1


def test_static_outputs_belong_to_the_shape_they_were_traced_for():
    def step(carry, x):
        return carry, x.shape

    for size in (1, 2, 1, 2, 1, 2):
        assert ec.filter_scan(step, 0, jnp.ones((3, size)))[1] == (size,)


def test_without_compilation():
    _, matrices = batched()
    with jax.disable_jit():
        last, ys = ec.filter_scan(step_sum, *ARGS)
        _, same = ec.filter_scan(lambda c, x: (c, x), None, matrices)
    assert jnp.array_equal(same.todense(), matrices.todense())
    assert float(last["s"]) == 15.5
    assert ys["n"] == "n"


def test_no_tracer_leaks():
    with jax.checking_leaks():
        ec.filter_jit(lambda *a: ec.filter_scan(step_sum, *a))(*ARGS)


def test_threads():
    results = {}

    def work(i):
        results[i] = [float(ec.filter_scan(step_sum, *ARGS)[0]["s"]) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: [15.5] * 20 for i in range(8)}


# ------------------------------------------------------------------- registered vmappable objects


def batched(make=sparse.BCOO, n=4):
    dense = jnp.arange(1.0, 6 * n + 1).reshape(n, 2, 3)
    return dense, make.fromdense(dense, n_batch=1)


@pytest.mark.parametrize("make", [sparse.BCOO, sparse.BCSR])
def test_sparse_arrays_as_inputs_and_outputs_keep_their_metadata(make):
    dense, matrices = batched(make)
    _, ys = ec.filter_scan(
        lambda c, x: (c, {"twice": x["m"], "sum": x["m"].todense().sum(), "s": "s"}),
        None,
        {"m": matrices},
    )
    assert ys["twice"].shape == dense.shape
    assert jnp.array_equal(ys["twice"].todense(), dense)
    assert jnp.array_equal(ys["sum"], dense.sum((1, 2)))


def test_a_sparse_array_is_a_carry():
    matrix = sparse.BCOO.fromdense(jnp.eye(2))
    last, _ = ec.filter_scan(lambda c, _: (c * 2, None), matrix, length=3)
    assert jnp.array_equal(last.todense(), 8 * jnp.eye(2))


def test_a_sparse_array_without_a_batch_axis_is_refused_by_its_owner():
    with pytest.raises(ValueError, match="n_batch=0"):
        ec.filter_scan(lambda c, x: (c, None), None, sparse.BCOO.fromdense(jnp.ones((4, 2))))


def test_gradients_through_sparse_inputs():
    _, matrices = batched()

    def f(data):
        m = sparse.BCOO((data, matrices.indices), shape=matrices.shape)
        return ec.filter_scan(lambda c, x: (c + (x.todense() ** 2).sum(), None), 0.0, m)[0]

    assert jnp.allclose(jax.grad(f)(matrices.data), 2 * matrices.data)


def test_a_type_with_axis_objects_of_its_own_is_refused():
    with pytest.raises(LeafError, match="cannot take steps along a `Table`"):
        ec.filter_scan(lambda c, x: (c, None), None, Table(jnp.ones((3, 2))))
    last, _ = ec.filter_scan(lambda c, x: (c, None), Table(jnp.ones((3, 2))), length=2)
    assert last.cells.shape == (3, 2)


def test_every_array_of_a_vmappable_object_has_the_axis_of_steps():
    def step(carry, x):
        return carry + x.state.sum(), x.replace(buffer=x.buffer + carry)

    xs = Shared(jnp.arange(6.0).reshape(3, 2), jnp.zeros((3, 4)))
    total, ys = ec.filter_scan(step, jnp.array(0.0), xs)
    assert float(total) == 15
    assert (ys.state.shape, ys.buffer.shape) == ((3, 2), (3, 4))
    assert ys.buffer[:, 0].tolist() == [0, 1, 6]
    nested = Nested(xs, jnp.ones(3))
    _, ys = ec.filter_scan(lambda c, x: (c, x), None, nested)
    assert ec.tree_equal(ys, nested)
