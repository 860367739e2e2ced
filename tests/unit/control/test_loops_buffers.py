"""Buffers: arrays in the carry of a loop of which one part is written at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Int, PyTree

import ecliptic as ec
from ecliptic.control import Buffer, buffer_at_set
from ecliptic.errors import ArgumentError, ArgumentTypeError

N = 6
KINDS = {
    "lax": dict(kind="lax"),
    "checkpointed": dict(kind="checkpointed", max_steps=N),
    "few states": dict(kind="checkpointed", checkpoints=2),
    "bounded": dict(kind="bounded", max_steps=N, base=2),
}
EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
REVERSE = pytest.mark.parametrize("kind", list(KINDS.values())[1:], ids=list(KINDS)[1:])


def close(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 2e-5, 2e-5), one, other)


def remember(y, history, length, kind, buffers=lambda carry: carry["history"]):
    """Each step depends on the two before, which it reads from the history."""

    def body(carry):
        n, history = carry["n"], carry["history"]
        new = jnp.sin(history[n + 1]) - 0.5 * history[n] * carry["y"]
        return {"n": n + 1, "y": new, "history": history.at[n + 2].set(new)}

    init = {"n": jnp.int32(0), "y": y, "history": history}
    out = ec.filter_while_loop(lambda c: c["n"] < length, body, init, buffers=buffers, **kind)
    return out["history"]


def written_out(y, history, length):
    for n in range(length):
        y = jnp.sin(history[n + 1]) - 0.5 * history[n] * y
        history = history.at[n + 2].set(y)
    return history


Y = jnp.array([0.3, -1.0])
HISTORY = jnp.zeros((N + 2, 2)).at[0].set(0.7).at[1].set(-0.4)


@EACH
def test_a_loop_with_a_buffer_is_one_without(kind):
    out = remember(Y, HISTORY, N, kind)
    assert isinstance(out, jax.Array)
    close(out, written_out(Y, HISTORY, N))


@REVERSE
@pytest.mark.parametrize("length", [0, 1, N])
def test_gradients_go_through_what_is_written_and_read(kind, length):
    def total(run):
        return jax.jit(jax.grad(lambda y, h: jnp.sum(jnp.cos(run(y, h))), (0, 1)))(Y, HISTORY)

    close(total(lambda y, h: remember(y, h, length, kind)),
          total(lambda y, h: written_out(y, h, length)))  # fmt: skip


@REVERSE
def test_buffers_in_a_batch_in_which_each_element_stops_on_its_own(kind):
    lengths, ys = jnp.array([2, 0, N]), jnp.stack([Y, 2 * Y, -Y])
    got = jax.jit(
        jax.vmap(jax.grad(lambda y, length: jnp.sum(jnp.cos(remember(y, HISTORY, length, kind)))))
    )(ys, lengths)
    for y, length, gradient in zip(ys, lengths.tolist(), got, strict=True):
        total = lambda y, length=length: jnp.sum(jnp.cos(written_out(y, HISTORY, length)))
        close(gradient, jax.grad(total)(y))


def test_the_gradient_of_a_batch_whose_elements_stop_on_their_own():
    lengths, ys = jnp.array([2, 0, N]), jnp.stack([Y, 2 * Y, -Y])

    def total(history):
        run = lambda y, length: remember(y, history, length, KINDS["checkpointed"])
        return jnp.sum(jnp.cos(jax.vmap(run)(ys, lengths)))

    def unrolled(history):
        runs = [written_out(y, history, n) for y, n in zip(ys, lengths.tolist(), strict=True)]
        return jnp.sum(jnp.cos(jnp.stack(runs)))

    close(jax.grad(total)(HISTORY), jax.grad(unrolled)(HISTORY))


@pytest.mark.parametrize("order", [jax.jacfwd, jax.jacrev])
def test_second_derivatives_through_a_buffer(order):
    hessian = lambda run: jax.jit(order(jax.grad(lambda y: jnp.sum(jnp.cos(run(y))))))(Y)
    close(hessian(lambda y: remember(y, HISTORY, 3, KINDS["bounded"])),
          hessian(lambda y: written_out(y, HISTORY, 3)))  # fmt: skip


@REVERSE
def test_a_condition_on_writing(kind):
    def f(y, kind):
        def body(carry):
            n, y, kept = carry
            return n + 1, jnp.sin(y), buffer_at_set(kept, n // 2, y, pred=n % 2 == 0)

        init = (jnp.int32(0), y, jnp.zeros(3))
        pick = None if kind is None else (lambda c: c[2])
        kind = dict(kind="bounded", max_steps=N) if kind is None else kind
        return ec.filter_while_loop(lambda c: c[0] < N, body, init, buffers=pick, **kind)[2]

    value, pull = jax.vjp(lambda y: f(y, kind), jnp.float32(1))
    ys = [jnp.float32(1)]
    for _ in range(N):
        ys.append(jnp.sin(ys[-1]))
    close(value, jnp.stack(ys[:N:2]))
    weights = jnp.arange(1.0, 4.0)
    close(pull(weights), jax.vjp(lambda y: f(y, None), jnp.float32(1))[1](weights))


@EACH
@pytest.mark.parametrize(
    "item",
    [
        lambda n: n, lambda n: n - N, lambda n: (n, slice(0, 1)), lambda n: (slice(None), n % 2),
        lambda n: n + 100,
    ],
    ids=["index", "negative", "index and slice", "second axis", "out of bounds"],
)  # fmt: skip
def test_every_index_means_what_it_means_for_an_array(kind, item):
    def body(carry):
        n, array = carry
        return n + 1, array.at[item(n)].set(1.0 + array[item(n)])

    init = (jnp.int32(0), jnp.arange(2.0 * N).reshape(N, 2))
    run = lambda kind, buffers: jax.vmap(
        lambda length: ec.filter_while_loop(
            lambda c: c[0] < length, body, init, buffers=buffers, **kind
        )
    )(jnp.array([2, 1]))
    close(run(kind, lambda c: c[1])[1], run(KINDS["lax"], None)[1])


def test_what_a_buffer_says_of_itself():
    seen = []

    def body(carry):
        buffer = carry[1]
        seen.append((buffer.shape, buffer.dtype, buffer.ndim, buffer.size, len(buffer)))
        assert isinstance(buffer, Buffer)
        assert repr(buffer).startswith("Buffer(")
        return carry[0] + 1, buffer.at[0].set(1.0)

    ec.filter_while_loop(
        lambda c: c[0] < 3, body, (0, jnp.zeros((3, 2))), buffers=lambda c: c[1], max_steps=3
    )
    assert seen[-1] == ((3, 2), jnp.float32, 2, 6, 3)


def test_a_buffer_costs_no_copies_of_it():
    def memory(size):
        def f(y):
            body = lambda c: (c[0] + 1, jnp.sin(c[1]), c[2].at[c[0]].set(c[1]))
            init = (jnp.int32(0), y, jnp.zeros((size, 100)))
            out = ec.filter_while_loop(
                lambda c: c[0] < size, body, init,
                kind="checkpointed", max_steps=size, buffers=lambda c: c[2],
            )  # fmt: skip
            return jnp.sum(out[2] ** 2)

        program = jax.jit(jax.grad(f)).lower(jnp.ones(100)).compile()
        return program.memory_analysis().temp_size_in_bytes

    # The buffer is there, its cotangent is, and a few states.
    assert memory(400) < 3 * 400 * 100 * 4


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (lambda b: list(b), "was iterated over"),
        (lambda b: b.at[0].add(1.0), r"was changed with `\.at\[\.\.\.\]\.add`"),
    ],
)
def test_any_other_use_of_a_buffer_is_an_error(use, what):
    def body(carry):
        use(carry[1])
        return carry

    with pytest.raises(ArgumentTypeError, match=rf"{what}.*buffer\.at\[i\]\.set\(value\)"):
        ec.filter_while_loop(
            lambda c: c[0] < 3, body, (jnp.int32(0), jnp.zeros(3)), buffers=lambda c: c[1]
        )


def test_buffers_that_are_no_arrays():
    carry = {"n": 0, "f": jnp.sin}
    with pytest.raises(ArgumentError, match=r"selects arrays of the carry; carry\['f'\] is"):
        ec.filter_while_loop(lambda c: c["n"] < 1, lambda c: c, carry, buffers=lambda c: c["f"])


def test_buffers_that_are_no_nodes_of_the_carry():
    with pytest.raises(ArgumentError, match=r"returns nodes of the carry.*something else: 'x'"):
        ec.filter_scan(lambda c, _: (c, None), jnp.zeros(2), length=2, buffers=lambda c: "x")


# --------------------------------------------------------------------- a buffer inside of the body


def in_pairs(y, history, length, kind, inner, selects):
    """As `remember`, two steps at a time, in a loop of its own inside of each step."""

    def step(carry):
        n, y, history, end = carry
        new = jnp.sin(history[n + 1]) - 0.5 * history[n] * y
        return n + 1, new, buffer_at_set(history, n + 2, new), end

    def body(carry):
        n = carry["n"]
        buffers = (lambda c: c[2]) if selects else None
        init = (n, carry["y"], carry["history"], n + 2)
        n, y, history, _ = ec.filter_while_loop(
            lambda c: c[0] < c[3], step, init, buffers=buffers, **inner
        )
        assert isinstance(history, Buffer)
        return {"n": n, "y": y, "history": history}

    init = {"n": jnp.int32(0), "y": y, "history": history}
    out = ec.filter_while_loop(
        lambda c: c["n"] < length, body, init, buffers=lambda c: c["history"], **kind
    )
    return out["history"]


@pytest.mark.parametrize("selects", [True, False])
@pytest.mark.parametrize("kind", ["lax", "checkpointed", "bounded"])
def test_a_loop_inside_of_a_loop_takes_its_buffer(kind, selects):
    kind = KINDS[kind]
    close(in_pairs(Y, HISTORY, N, kind, kind, selects), written_out(Y, HISTORY, N))


def test_gradients_go_through_a_loop_inside_of_a_loop():
    kind = KINDS["checkpointed"]
    run = jax.jit(lambda y, h: in_pairs(y, h, N, kind, kind, True).sum())
    expected = jax.grad(lambda y, h: written_out(y, h, N).sum(), argnums=(0, 1))(Y, HISTORY)
    close(jax.grad(run, argnums=(0, 1))(Y, HISTORY), expected)


def test_a_loop_inside_writes_nothing_for_an_element_that_has_stopped():
    lengths = jnp.array([0, 2, 6])
    kind = KINDS["checkpointed"]
    out = jax.vmap(lambda n: in_pairs(Y, HISTORY, n, kind, KINDS["lax"], True))(lengths)
    close(out, jnp.stack([written_out(Y, HISTORY, n) for n in (0, 2, 6)]))


def test_a_scan_inside_of_a_scan_takes_its_buffer():
    def inner(buffer, i):
        return buffer.at[i].set(i + 1), None

    def outer(buffer, start):
        buffer, _ = ec.filter_scan(inner, buffer, start + jnp.arange(2))
        return buffer, None

    out, _ = ec.filter_scan(
        outer, jnp.zeros(4, int), jnp.array([0, 2]), kind="checkpointed", buffers=lambda b: b
    )
    assert out.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "through",
    [
        lambda write, buffer: jax.lax.cond(True, write, lambda b: b, buffer),
        lambda write, buffer: ec.filter_cond(True, write, lambda b: b, buffer),
        lambda write, buffer: ec.filter_jit(write)(buffer),
        lambda write, buffer: ec.filter_fori_loop(0, 1, lambda _, b: write(b), buffer),
    ],
    ids=["lax.cond", "filter_cond", "filter_jit", "filter_fori_loop"],
)
def test_a_buffer_goes_through_what_the_body_calls(through):
    def body(carry):
        i, buffer = carry
        buffer = through(lambda b: b.at[i].set(2.0 * i.astype(float)), buffer)
        assert isinstance(buffer, Buffer)
        return i + 1, buffer

    def run(length):
        return ec.filter_while_loop(
            lambda c: c[0] < length, body, (jnp.int32(0), -jnp.ones(3)),
            kind="checkpointed", max_steps=3, buffers=lambda c: c[1],
        )[1]  # fmt: skip

    assert jax.vmap(run)(jnp.array([1, 3])).tolist() == [[0, -1, -1], [0, 2, 4]]


def test_a_buffer_passes_for_a_tree_of_arrays():
    assert isinstance(Buffer(jnp.zeros(3)), PyTree[Array])
    assert isinstance(Buffer(jnp.zeros(3), jnp.array(True)), PyTree[Array])
    assert not isinstance(Buffer(jnp.zeros(3)), PyTree[Int[Array, "..."]])
