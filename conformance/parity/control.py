"""The loops of `internal`: while_loop, scan, buffers, scan_trick, progress meters."""

import jax
import jax.numpy as jnp
import numpy as np

from conformance.parity._table import Table

TABLE = Table("control")


def _loop(kind, **options):
    options.setdefault("max_steps", 16 if kind != "lax" else None)
    return lambda eqx: eqx.internal.while_loop(
        lambda c: c[0] < 5, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, jnp.array(0.5)),
        kind=kind, **options,
    )  # fmt: skip


def _gradient(kind, **options):
    def program(eqx):
        def f(x):
            return eqx.internal.while_loop(
                lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * 1.5), (0, x),
                kind=kind, max_steps=8, **options,
            )[1]  # fmt: skip

        return jax.value_and_grad(f)(2.0)

    return program


def _buffered(kind):
    def program(eqx):
        def body(carry):
            i, xs = carry
            return i + 1, xs.at[i].set(i * 2.0)

        return eqx.internal.while_loop(
            lambda c: c[0] < 3, body, (0, jnp.zeros(4)),
            kind=kind, max_steps=4, buffers=lambda c: c[1],
        )  # fmt: skip

    return program


def _buffer_gradient(eqx):
    def f(x):
        def body(carry):
            i, xs, last = carry
            xs = eqx.internal.buffer_at_set(xs, i, last, pred=i < 3)
            return i + 1, xs, last * x

        _, xs, _ = eqx.internal.while_loop(
            lambda c: c[0] < 4, body, (0, jnp.zeros(4), 1.0 * x),
            kind="checkpointed", checkpoints=2, buffers=lambda c: c[1],
        )  # fmt: skip
        return jnp.sum(xs)

    return jax.value_and_grad(f)(2.0)


def _scan(kind, **options):
    return lambda eqx: eqx.internal.scan(
        lambda c, x: (c + x, c * x), 0.0, jnp.arange(3.0), kind=kind, **options
    )


def _scan_gradient(eqx, kind):
    return jax.grad(lambda w: eqx.internal.scan(
        lambda c, x: (c * w + x, None), 1.0, jnp.arange(3.0), kind=kind)[0])(2.0)  # fmt: skip


TABLE.rows(
    while_lax=_loop("lax"),
    while_lax_with_steps=_loop("lax", max_steps=3),
    while_bounded=_loop("bounded"),
    while_bounded_base=_loop("bounded", base=2),
    while_bounded_without_steps=_loop("bounded", max_steps=None),
    while_checkpointed=_loop("checkpointed"),
    while_checkpointed_without_steps=_loop("checkpointed", max_steps=None, checkpoints=3),
    while_no_such_kind=_loop("other"),
    while_zero_steps=_loop("checkpointed", max_steps=0),
    while_negative_steps=_loop("lax", max_steps=-1),
    gradient_bounded=_gradient("bounded"),
    gradient_checkpointed=_gradient("checkpointed"),
    gradient_checkpoints=_gradient("checkpointed", checkpoints=2),
    gradient_lax=_gradient("lax"),
    buffer_lax=_buffered("lax"),
    buffer_bounded=_buffered("bounded"),
    buffer_checkpointed=_buffered("checkpointed"),
    buffer_gradient=_buffer_gradient,
    while_under_vmap=lambda eqx: jax.vmap(lambda n: eqx.internal.while_loop(
        lambda c: c < n, lambda c: c + 2, 0, kind="lax"))(jnp.array([1, 4])),
    while_bad_condition=lambda eqx: eqx.internal.while_loop(
        lambda c: c, lambda c: c, jnp.ones(2), kind="lax"),
    while_carry_changes=lambda eqx: eqx.internal.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0],), (0, 1), kind="lax"),
    while_dtype_changes=lambda eqx: eqx.internal.while_loop(
        lambda c: c < 2, lambda c: c + 0.5, jnp.array(0), kind="lax"),
    while_starts_false=lambda eqx: eqx.internal.while_loop(
        lambda c: c < 0, lambda c: c + 1, jnp.array(3), kind="checkpointed", max_steps=3),
    while_with_a_static_leaf=lambda eqx: eqx.internal.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1]), (jnp.array(0), jnp.sin), kind="lax")[0],
    scan_lax=_scan("lax"),
    scan_checkpointed=_scan("checkpointed"),
    scan_all=_scan("checkpointed", checkpoints="all"),
    scan_bad_kind=_scan("other"),
    scan_length=lambda eqx: eqx.internal.scan(
        lambda c, x: (c + 1, c), 0, None, length=3, kind="lax"),
    scan_gradient_lax=lambda eqx: _scan_gradient(eqx, "lax"),
    scan_gradient_checkpointed=lambda eqx: _scan_gradient(eqx, "checkpointed"),
    scan_trick=lambda eqx: jax.jit(lambda x: eqx.internal.scan_trick(
        lambda x: x * 2, [lambda x: x + 1, lambda x: x - 3], x))(jnp.array(1.0)),
    buffer_at_set_array=lambda eqx: eqx.internal.buffer_at_set(jnp.zeros(3), 1, 5.0),
    buffer_at_set_pred=lambda eqx: eqx.internal.buffer_at_set(
        jnp.zeros(3), 1, 5.0, pred=jnp.array(False)),
    maybe_buffer=lambda eqx: isinstance(jnp.ones(1), eqx.internal.MaybeBuffer[jax.Array]),
    no_progress=lambda eqx: (lambda m: (
        m.init(), m.step(m.init(), jnp.array(0.5)), m.close(m.init())))(
            eqx.internal.NoProgressMeter()),
    text_progress=lambda eqx: _progress(eqx, eqx.internal.TextProgressMeter(0.25)),
)  # fmt: skip


def _progress(eqx, meter):
    state = meter.init()
    for progress in np.linspace(0, 1, 6, dtype=np.float32):
        state = meter.step(state, jnp.asarray(progress))
    meter.close(state)
    jax.effects_barrier()
