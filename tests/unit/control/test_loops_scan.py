"""Scans of the checkpointed kind: as `jax.lax.scan`, derivatives included."""

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError

WEIGHT = jnp.array([[0.9, -0.4], [0.5, 1.1]])
Y = jnp.array([1.0, -0.7])


def close(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 2e-5, 2e-5), one, other)


def run(weight, y, xs, **kind):
    def step(carry, x):
        new = jnp.tanh(weight @ carry["y"] + x["x"])
        carry = {**carry, "y": new, "n": carry["n"] + x["i"]}
        return carry, {"y": new * 2, "n": carry["n"], "name": "output"}

    init = {"y": y, "n": jnp.int32(0), "f": jnp.tanh}
    last, out = ec.filter_scan(step, init, xs, **kind)
    assert last["f"] is jnp.tanh
    assert out["name"] == "output"
    return last["y"], last["n"], out["y"], out["n"]


def inputs(length):
    return {"x": jnp.sin(jnp.arange(2.0 * length)).reshape(length, 2), "i": jnp.arange(length)}


def gradient(weight, y, xs, **kind):
    def total(weight, y, x):
        last, _, out, _ = run(weight, y, {**xs, "x": x}, **kind)
        return jnp.sum(last**2) + jnp.sum(jnp.sin(out))

    return jax.jit(jax.value_and_grad(total, (0, 1, 2)))(weight, y, xs["x"])


# A length that has good factors, one that has none, one, and nothing.
LENGTHS = pytest.mark.parametrize("length", [12, 11, 1, 0])
CHECKPOINTS = pytest.mark.parametrize("checkpoints", [None, 3, 100])


@LENGTHS
@CHECKPOINTS
def test_a_checkpointed_scan_is_a_scan(length, checkpoints):
    xs = inputs(length)
    close(run(WEIGHT, Y, xs, kind="checkpointed", checkpoints=checkpoints), run(WEIGHT, Y, xs))


@LENGTHS
@pytest.mark.parametrize("checkpoints", [None, 3])
@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_a_checkpointed_scan(length, checkpoints, reverse):
    xs = inputs(length)
    got = gradient(WEIGHT, Y, xs, kind="checkpointed", checkpoints=checkpoints, reverse=reverse)
    close(got, gradient(WEIGHT, Y, xs, reverse=reverse))


@pytest.mark.parametrize("length", [12, 11])
def test_gradients_for_each_element_of_a_batch(length):
    xs, ys = inputs(length), jnp.stack([Y, -2 * Y])

    def total(y, **kind):
        return jnp.sum(run(WEIGHT, y, xs, **kind)[2])

    checkpointed = functools.partial(total, kind="checkpointed")
    close(jax.vmap(jax.grad(checkpointed))(ys), jax.vmap(jax.grad(total))(ys))


@pytest.mark.parametrize("length", [6, 7])
def test_the_hessian_of_a_checkpointed_scan(length):
    xs = inputs(length)

    def total(y, **kind):
        return jnp.sum(run(WEIGHT, y, xs, **kind)[2])

    checkpointed = functools.partial(total, kind="checkpointed")
    close(jax.jit(jax.hessian(checkpointed))(Y), jax.jit(jax.hessian(total))(Y))


@hypothesis.settings(max_examples=10, phases=[hypothesis.Phase.generate])
@hypothesis.given(length=st.integers(0, 20), checkpoints=st.one_of(st.none(), st.integers(1, 8)))
def test_any_length_from_any_number_of_states(length, checkpoints):
    def total(y, kind):
        last, ys = ec.filter_scan(
            lambda c, x: (jnp.sin(c) + x, c), y, jnp.arange(1.0 * length), **kind
        )
        return last + jnp.sum(ys)

    kind = dict(kind="checkpointed", checkpoints=checkpoints)
    close(jax.grad(lambda y: total(y, kind))(0.3), jax.grad(lambda y: total(y, {}))(0.3))


@pytest.mark.parametrize("kind", ["lax", "checkpointed"])
@pytest.mark.parametrize("checkpoints", [None, 3])
def test_a_scan_with_a_buffer(kind, checkpoints):
    kind = dict(kind=kind) | (dict(checkpoints=checkpoints) if kind != "lax" else {})

    def total(y, buffers, **kind):
        def step(carry, i):
            history = carry["history"]
            new = jnp.sin(history[i]) + y
            return {"history": history.at[i + 1].set(new)}, new

        carry, out = ec.filter_scan(
            step, {"history": jnp.zeros(11)}, jnp.arange(10), buffers=buffers, **kind
        )
        return jnp.sum(carry["history"] ** 2) + jnp.sum(out)

    y = jnp.float32(0.3)
    got = jax.grad(lambda y: total(y, lambda carry: carry["history"], **kind))(y)
    close(got, jax.grad(lambda y: total(y, None))(y))


def test_keys_go_in_and_out():
    def step(key, new):
        return new, (key, jax.random.normal(key))

    keys = jax.random.split(jax.random.key(0), 7)
    scans = [
        ec.filter_scan(step, keys[0], keys, kind=kind) for kind in ("lax", "checkpointed")
    ]  # fmt: skip
    one, other = jax.tree.map(
        lambda x: jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x,
        scans,
    )
    close(one, other)


def test_memory_grows_with_the_root_of_the_length():
    def memory(length, checkpoints):
        def f(y):
            step = lambda c, _: (jnp.sin(c), None)
            out, _ = ec.filter_scan(
                step, y, length=length, kind="checkpointed", checkpoints=checkpoints
            )
            return jnp.sum(out)

        program = jax.jit(jax.grad(f)).lower(jnp.ones(1000)).compile()
        return program.memory_analysis().temp_size_in_bytes

    row = 4000
    assert memory(900, None) < 80 * row
    # A prime has no two factors.
    assert memory(907, None) < 80 * row
    assert memory(900, 5) < 20 * row


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(kind="bounded"), r'filter_scan\(kind=...\)` is one of "lax", "checkpointed"; got'),
        (dict(checkpoints=3), r'is for `kind="checkpointed"`; got kind="lax"'),
        (dict(kind="checkpointed", checkpoints=0), r"at least 1; got 0"),
    ],
)
def test_options_of_a_scan_that_do_not_go_together(options, message):
    with pytest.raises(ArgumentError, match=message):
        ec.filter_scan(lambda c, x: (c, x), 0, length=3, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(kind="magic"), r'is one of "lax", "checkpointed", "bounded"; got \'magic\''),
        (dict(kind="bounded"), r"needs `max_steps=`, the largest number of steps"),
        (dict(kind="bounded", max_steps=3, base=0), r"base=...\)` is a number of steps.*got 0"),
        (dict(base=4), r"base=...\)` is for `kind=.checkpointed.` and.*got kind=.lax."),
        (dict(kind="bounded", max_steps=3, checkpoints=3), r'got kind="bounded"'),
        (dict(kind="checkpointed", checkpoints=-1), r"how many states are kept.*got -1"),
        (dict(max_steps=-1), r"must not be negative; got -1"),
    ],
)
def test_options_of_a_while_loop_that_do_not_go_together(options, message):
    with pytest.raises(ArgumentError, match=message):
        ec.filter_while_loop(lambda c: c < 3, lambda c: c + 1, 0, **options)
