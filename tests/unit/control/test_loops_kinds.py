"""Derivatives of while loops of each kind: those of the same steps written out."""

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec

MOST = 7
KINDS = {
    "checkpointed": dict(kind="checkpointed", max_steps=MOST),
    "checkpointed, length unknown": dict(kind="checkpointed"),
    "checkpointed, few states": dict(kind="checkpointed", checkpoints=2),
    "checkpointed, one state": dict(kind="checkpointed", checkpoints=1),
    "bounded": dict(kind="bounded", max_steps=MOST),
    "bounded, base 2": dict(kind="bounded", max_steps=MOST, base=2),
}
EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
SOME = pytest.mark.parametrize(
    "kind", [KINDS["checkpointed"], KINDS["checkpointed, few states"]], ids=["covers", "few"]
)


def close(one, other, tolerance=2e-5):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, tolerance, tolerance), one, other)


def loop(cond, body, init, kind):
    """The loop, or with `kind` None its steps written out."""
    if kind is not None:
        return ec.filter_while_loop(cond, body, init, **kind)
    state = init
    for _ in range(MOST):
        choose = functools.partial(jnp.where, cond(state))
        state = jax.tree.map(choose, body(state), state)
    return state


def shrink(kind, weight, y, length=MOST, least=0.1):
    """A loop that stops early by what it computes; it closes over a weight."""
    out = loop(
        lambda state: (state["n"] < length) & (jnp.sum(state["y"] ** 2) > least),
        lambda state: {
            "n": state["n"] + 1,
            "y": 0.8 * jnp.tanh(weight @ state["y"]),
            "sum": state["sum"] + state["y"][0] * state["n"].astype(jnp.float32),
            "flag": ~state["flag"],
        },
        {"n": jnp.int32(0), "y": y, "sum": jnp.float32(0), "flag": jnp.array(True)},
        kind,
    )
    return jnp.sum(out["y"] ** 2) + jnp.sin(out["sum"])


WEIGHT = jnp.array([[0.9, -0.4], [0.5, 1.1]])
Y = jnp.array([1.0, -0.7])
WEIGHTS = jnp.stack([WEIGHT, 0.3 * WEIGHT, -WEIGHT.T])
YS = jnp.stack([Y, 3 * Y, 0.1 * Y])


@functools.cache
def compiled(name):
    gradient = jax.value_and_grad(functools.partial(shrink, KINDS.get(name)), (0, 1))
    return jax.jit(gradient)


@pytest.mark.parametrize("name", KINDS)
@hypothesis.settings(max_examples=20, phases=[hypothesis.Phase.generate])
@hypothesis.given(
    length=st.integers(0, MOST),
    least=st.floats(0, 2, width=32),
    y=st.lists(st.floats(-2, 2, width=32), min_size=2, max_size=2),
)
def test_the_gradient_is_that_of_the_steps_written_out(name, length, least, y):
    args = (WEIGHT, jnp.array(y), jnp.int32(length), jnp.float32(least))
    close(compiled(name)(*args), compiled(None)(*args))


MODES = {
    "grad": (jax.grad, lambda f: f),
    "jit grad": (jax.grad, jax.jit),
    "vmap": (lambda f: f, jax.vmap),
    "grad of vmap": (lambda f: jax.grad(lambda w, y: jnp.sum(jax.vmap(f)(w, y))), lambda f: f),
    "vmap of grad": (jax.grad, jax.vmap),
    "grad of checkpoint": (lambda f: jax.grad(jax.checkpoint(f)), jax.jit),
    "jvp": (lambda f: lambda w, y: jax.jvp(f, (w, y), (w + 1, 2 * y)), jax.jit),
}


@pytest.mark.parametrize("mode", MODES)
@SOME
def test_a_loop_under_a_transformation(mode, kind):
    inner, outer = MODES[mode]
    args = (WEIGHTS, YS) if "vmap" in mode else (WEIGHT, Y)
    run = lambda kind: outer(inner(functools.partial(shrink, kind)))(*args)
    close(run(kind), run(None))


@SOME
def test_gradients_for_each_element_of_a_batch_with_a_shared_weight(kind):
    run = lambda kind: jax.jit(
        jax.vmap(jax.grad(functools.partial(shrink, kind), (0, 1)), (None, 0))
    )(WEIGHT, YS)
    close(run(kind), run(None))


def test_batches_of_batches():
    run = lambda kind: jax.jit(
        jax.vmap(
            jax.grad(lambda w: jnp.sum(jax.vmap(functools.partial(shrink, kind), (None, 0))(w, YS)))
        )
    )(WEIGHTS)
    close(run(KINDS["checkpointed"]), run(None))


HIGHER = {
    "forward over reverse": lambda f: jax.jacfwd(jax.grad(f)),
    "reverse over reverse": lambda f: jax.jacrev(jax.grad(f)),
    "reverse over forward": lambda f: jax.grad(lambda y: jax.jvp(f, (y,), (y + 1,))[1]),
    "forward over forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
}


@pytest.mark.parametrize("mode", HIGHER)
def test_second_derivatives(mode):
    run = lambda kind: jax.jit(HIGHER[mode](functools.partial(shrink, kind, WEIGHT)))(Y)
    close(run(KINDS["bounded"]), run(None))


def test_second_derivatives_from_few_states():
    run = lambda kind: jax.jit(jax.hessian(functools.partial(shrink, kind, WEIGHT)))(Y)
    close(run(KINDS["checkpointed, few states"]), run(None))


def test_the_hessian_of_a_model_through_a_loop():
    mlp = ec.nn.MLP(2, 2, 3, 1, activation=jnp.tanh, key=jax.random.key(0))

    def f(y, kind):
        out = loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, mlp(s[1])), (jnp.int32(0), y), kind)
        return jnp.sum(out[1] ** 2)

    hessian = ec.filter_jit(ec.filter_hessian(lambda y: f(y, KINDS["bounded"])))(Y)
    close(hessian, jax.hessian(lambda y: f(y, None))(Y))


@SOME
def test_a_loop_in_a_loop(kind):
    def f(w, y, kind):
        def body(state):
            inner = loop(
                lambda s: s["k"] < state["n"],
                lambda s: {"k": s["k"] + 1, "y": jnp.sin(w @ s["y"])},
                {"k": jnp.int32(0), "y": state["y"]},
                kind,
            )
            return {"n": state["n"] + 1, "y": inner["y"] * 0.9}

        out = loop(lambda s: s["n"] < 4, body, {"n": jnp.int32(0), "y": y}, kind)
        return jnp.sum(out["y"])

    run = lambda kind: jax.jit(jax.grad(functools.partial(f, kind=kind), (0, 1)))(WEIGHT, Y)
    close(run(kind), run(None))


@SOME
def test_a_loop_in_a_scan_in_a_branch(kind):
    def f(w, y, kind):
        def step(total, x):
            return total + shrink(kind, w, x), None

        scan = lambda: jax.lax.scan(step, jnp.float32(0), jnp.stack([y, 2 * y]))[0]
        return jax.lax.cond(y[0] > 0, scan, lambda: jnp.float32(0))

    run = lambda kind: jax.jit(jax.grad(functools.partial(f, kind=kind), (0, 1)))(WEIGHT, Y)
    close(run(kind), run(None))


def test_a_module_with_a_function_is_differentiated_through():
    mlp = ec.nn.MLP(2, 2, 4, 1, activation=jnp.tanh, key=jax.random.key(0))

    def f(mlp, y, kind):
        out = ec.filter_while_loop(
            lambda s: s["n"] < 3,
            lambda s: {**s, "n": s["n"] + 1, "y": s["mlp"](s["y"])},
            {"n": 0, "y": y, "mlp": mlp, "name": "name"},
            **kind,
        )
        assert out["name"] == "name"
        return jnp.sum(out["y"] ** 2)

    def unrolled(mlp, y):
        for _ in range(3):
            y = mlp(y)
        return jnp.sum(y**2)

    got = ec.filter_jit(ec.filter_grad(f))(mlp, Y, KINDS["checkpointed"])
    close(ec.filter(got, ec.is_array), ec.filter(ec.filter_grad(unrolled)(mlp, Y), ec.is_array))


@EACH
def test_integers_keys_and_flags_in_the_carry(kind):
    def f(y):
        def body(state):
            n, y, key, flag = state
            key, new = jax.random.split(key)
            return n + 1, y * (1 + 0.1 * jax.random.normal(new)), key, ~flag

        state = (jnp.int32(0), y, jax.random.key(0), jnp.array(False))
        n, y, _, flag = ec.filter_while_loop(lambda s: s[0] < 5, body, state, **kind)
        return y, (n, flag)

    value, pull, (n, flag) = jax.vjp(f, jnp.float32(2), has_aux=True)
    assert (int(n), bool(flag)) == (5, True)
    close(pull(jnp.float32(1))[0], value / 2)


@EACH
def test_arrays_without_elements(kind):
    def f(y, empty):
        out = ec.filter_while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2, s[2] + 1), (jnp.int32(0), y, empty),
            **kind,
        )  # fmt: skip
        return out[1] + jnp.sum(out[2])

    of_y, of_empty = jax.grad(f, (0, 1))(jnp.float32(1), jnp.zeros((0, 2)))
    assert of_y == 8
    assert of_empty.shape == (0, 2)


@pytest.mark.parametrize("kind", ["lax", "checkpointed", "bounded"])
def test_no_steps_at_all(kind):
    def f(y):
        init = (0, y)
        return ec.filter_while_loop(
            lambda s: True, lambda s: (s[0] + 1, jnp.sin(s[1])), init, kind=kind, max_steps=0
        )[1]

    assert f(jnp.float32(2)) == 2
    assert jax.jvp(f, (jnp.float32(2),), (jnp.float32(1),))[1] == 1
    if kind != "lax":
        assert jax.grad(f)(jnp.float32(2)) == 1


@pytest.mark.parametrize("kind", ["lax", "checkpointed", "bounded"])
def test_the_largest_number_of_steps_ends_a_loop(kind):
    run = jax.jit(
        lambda x: ec.filter_while_loop(lambda s: True, lambda s: s * 2, x, kind=kind, max_steps=5)
    )
    assert run(jnp.float32(1)) == 32


@EACH
def test_a_weakly_typed_carry_takes_the_dtype_of_what_replaces_it(kind):
    out = ec.filter_while_loop(
        lambda s: s[0] < 3,
        lambda s: (s[0] + 1, s[1] * jnp.float16(2), s[1].astype(jnp.float16)),
        (jnp.asarray(0), jnp.asarray(1.0), jnp.asarray(0.5)),
        **kind,
    )
    assert [x.dtype for x in out[1:]] == [jnp.float16] * 2


def test_complex_numbers():
    def f(kind, z):
        out = loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] ** 2 * 0.7j),
                   (jnp.int32(0), z), kind)  # fmt: skip
        return jnp.abs(out[1])

    z = jnp.complex64(0.8 + 0.3j)
    close(jax.grad(lambda z: f(KINDS["checkpointed"], z))(z), jax.grad(lambda z: f(None, z))(z))


def test_what_is_not_differentiated_has_no_derivative():
    # A custom derivative that must not be asked for.
    @jax.custom_jvp
    def opaque(x):
        return jnp.sin(x)

    @opaque.defjvp
    def _(primals, tangents):
        raise AssertionError

    def f(y, other):
        body = lambda s: (s[0] + 1, s[1] * 2, opaque(s[2]))
        return ec.filter_while_loop(
            lambda s: s[0] < 3, body, (jnp.int32(0), y, other), **KINDS["checkpointed"]
        )[1]

    assert jax.grad(f)(jnp.float32(1), jnp.float32(1)) == 8


def test_a_loop_without_derivatives_is_jax_s_own():
    program = jax.jit(
        lambda y: ec.filter_while_loop(
            lambda s: s < 3, lambda s: s + 1, y, kind="checkpointed", checkpoints=3
        )
    ).lower(jnp.float32(1))
    assert program.as_text().count("stablehlo.while") == 1


def test_an_element_that_has_stopped_is_not_differentiated_any_further():
    # The root has an infinite derivative at zero, where the second element stops.
    def f(y, kind):
        body = lambda s: (s[0] + 1, jnp.maximum(jnp.sqrt(s[1]) - 1, 0.0))
        return loop(lambda s: s[1] > 0, body, (jnp.int32(0), y), kind)[1]

    ys = jnp.array([30.0, 0.0, 100.0])
    gradient = jax.jit(jax.vmap(jax.grad(lambda y: f(y, KINDS["checkpointed"]))))(ys)
    assert np.all(np.isfinite(gradient))
    assert gradient[1] == 1


def test_collectives_over_a_batch_axis():
    def f(y, kind):
        mean = lambda x: jax.lax.pmean(x, "batch")
        body = lambda s: (s[0] + 1, s[1] - 0.5 * mean(jnp.sin(s[1])))
        return loop(lambda s: s[0] < 3, body, (jnp.int32(0), y), kind)[1]

    def total(ys, kind):
        return jnp.sum(jax.vmap(functools.partial(f, kind=kind), axis_name="batch")(ys) ** 2)

    ys = jnp.array([1.0, 2.0, -0.5])
    close(jax.grad(total)(ys, KINDS["checkpointed"]), jax.grad(total)(ys, None))


def test_memory_does_not_grow_with_the_number_of_steps():
    def memory(kind):
        def f(y):
            out = ec.filter_while_loop(
                lambda s: s[0] < 900, lambda s: (s[0] + 1, jnp.sin(s[1])), (jnp.int32(0), y), **kind
            )
            return jnp.sum(out[1])

        program = jax.jit(jax.grad(f)).lower(jnp.ones(1000)).compile()
        return program.memory_analysis().temp_size_in_bytes

    row = 4000
    assert memory(dict(kind="checkpointed", max_steps=900)) < 80 * row
    assert memory(dict(kind="checkpointed", checkpoints=5)) < 20 * row


@SOME
def test_what_the_result_does_not_depend_on_is_not_gone_through_backwards(kind):
    # The root has an infinite derivative at zero: times a cotangent of zero, that is NaN.
    def run(x, y):
        body = lambda state: (state[0] + 1, 2.0 * state[1], jnp.sqrt(state[2]) + 0.0 * state[1])
        return loop(lambda state: state[0] < 3, body, (jnp.int32(0), x, y), kind)[1] ** 2

    assert jax.grad(run, (0, 1))(jnp.float32(1.5), jnp.float32(0)) == (192, 0)
