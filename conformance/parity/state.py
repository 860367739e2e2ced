"""State, make_with_state, BatchNorm, SpectralNorm."""

import jax
import jax.numpy as jnp
import numpy as np

from conformance.parity._table import Table

TABLE = Table("state")


def _key(seed=0):
    return jax.random.PRNGKey(seed)


X = np.linspace(-1, 2, 8, dtype=np.float32).reshape(4, 2)


def _counter(eqx):
    class Counter(eqx.nn.StatefulLayer):
        index: eqx.nn.StateIndex

        def __init__(self, start=0):
            self.index = eqx.nn.StateIndex(jnp.array(start))

        def __call__(self, x, state, *, key=None):
            n = state.get(self.index)
            return x + n, state.set(self.index, n + 1)

    return Counter


def _made(eqx, *args):
    return eqx.nn.make_with_state(_counter(eqx))(*args)


def _two_calls(eqx):
    counter, state = _made(eqx)
    a, state = counter(10, state)
    b, state = counter(10, state)
    return a, b, state.get(counter.index)


def _old(eqx):
    counter, state = _made(eqx)
    counter(10, state)
    return counter(10, state)


def _batch_norm(eqx, mode="ema", **options):
    return eqx.nn.make_with_state(eqx.nn.BatchNorm)(2, "b", mode=mode, **options)


def _call(eqx, layer, state, x=X, **options):
    return jax.vmap(
        lambda x, s: layer(x, s, **options), axis_name="b", in_axes=(0, None), out_axes=(0, None)
    )(x, state)


def _twice(eqx, **options):
    layer, state = _batch_norm(eqx, **options)
    out, state = _call(eqx, layer, state)
    out, state = _call(eqx, layer, state, X + 1)
    evaluated, _ = _call(eqx, eqx.nn.inference_mode(layer), state)
    return out, evaluated


TABLE.rows(
    two_calls=_two_calls,
    an_old_state=_old,
    the_first_value=lambda eqx: (lambda c, s: s.get(c.index))(*_made(eqx, 5)),
    set_another_shape=lambda eqx: (lambda c, s: s.set(c.index, jnp.ones(2)))(*_made(eqx)),
    set_another_dtype=lambda eqx: (lambda c, s: s.set(c.index, 1.5))(*_made(eqx)),
    set_another_structure=lambda eqx: (lambda c, s: s.set(c.index, (1, 2)))(*_made(eqx)),
    set_a_number=lambda eqx: (lambda c, s: s.set(c.index, 3).get(c.index))(*_made(eqx)),
    get_by_something_else=lambda eqx: _made(eqx)[1].get(3),
    get_by_another_index=lambda eqx: _made(eqx)[1].get(eqx.nn.StateIndex(jnp.array(1))),
    state_of_a_model=lambda eqx: (lambda c: eqx.nn.State(c).get(c.index))(_counter(eqx)(3)),
    delete_init_state=lambda eqx: len(jax.tree.leaves(eqx.nn.delete_init_state(_counter(eqx)(3)))),
    model_has_no_values=lambda eqx: jax.tree.leaves(eqx.filter(_made(eqx)[0], eqx.is_array)),
    state_of_a_model_without_values=lambda eqx: eqx.nn.State(_made(eqx)[0]),
    state_leaves=lambda eqx: jax.tree.leaves(_made(eqx)[1]),
    under_jit=lambda eqx: (lambda c, s: eqx.filter_jit(lambda c, s: c(1, s)[0])(c, s))(*_made(eqx)),
    jit_returns_a_state=lambda eqx: (
        lambda c, s: eqx.filter_jit(lambda c, s: c(1, s))(c, s)[1].get(c.index)
    )(*_made(eqx)),
    under_scan=lambda eqx: (
        lambda c, s: (lambda s, ys: (s.get(c.index), ys))(
            *jax.lax.scan(lambda s, x: c(x, s)[::-1], s, jnp.arange(3)))
    )(*_made(eqx)),
    substate=lambda eqx: (
        lambda cs, s: s.update(s.substate(cs[0]).set(cs[0].index, jnp.array(9))).get(cs[0].index)
    )(*eqx.nn.make_with_state(lambda: [_counter(eqx)(1), _counter(eqx)(2)])()),
    substate_lacks_the_rest=lambda eqx: (
        lambda cs, s: s.substate(cs[0]).get(cs[1].index)
    )(*eqx.nn.make_with_state(lambda: [_counter(eqx)(1), _counter(eqx)(2)])()),
    update_by_something_else=lambda eqx: _made(eqx)[1].update(3),
    stateful=lambda eqx: (_counter(eqx)().is_stateful(), eqx.nn.StatefulLayer().is_stateful()),
    sequential=lambda eqx: (
        lambda m, s: m(1, s)[0]
    )(*eqx.nn.make_with_state(lambda: eqx.nn.Sequential(
        [_counter(eqx)(1), eqx.nn.Identity(), _counter(eqx)(2)]))()),
    sequential_without_state=lambda eqx: eqx.nn.Sequential([_counter(eqx)(1)])(1),
    sequential_returns_a_state=lambda eqx: eqx.nn.Sequential([eqx.nn.Identity()])(
        1, state=_made(eqx)[1])[0],
    layer_norm_takes_a_state=lambda eqx: eqx.nn.LayerNorm(2)(jnp.ones(2), _made(eqx)[1])[0],
    batch_norm_legacy_warns=lambda eqx: eqx.nn.BatchNorm(2, "b") is not None,
    batch_norm_ema=_twice,
    batch_norm_batch=lambda eqx: _twice(eqx, mode="batch"),
    batch_norm_legacy=lambda eqx: _twice(eqx, mode="legacy"),
    batch_norm_momentum=lambda eqx: _twice(eqx, momentum=0.5),
    batch_norm_plain=lambda eqx: _twice(eqx, mode="batch", channelwise_affine=False),
    batch_norm_bad_mode=lambda eqx: eqx.nn.BatchNorm(2, "b", mode="no"),
    batch_norm_without_axis=lambda eqx: (lambda m, s: m(X[0], s))(*_batch_norm(eqx)),
    batch_norm_inference_first=lambda eqx: (
        lambda m, s: _call(eqx, eqx.nn.inference_mode(m), s)[0])(*_batch_norm(eqx)),
    batch_norm_inference_at_the_call=lambda eqx: (
        lambda m, s: _call(eqx, m, s, inference=True)[0])(*_batch_norm(eqx, mode="batch")),
    batch_norm_gradient=lambda eqx: (
        lambda m, s: eqx.filter_grad(lambda m: jnp.sum(_call(eqx, m, s)[0] ** 3))(m).weight
    )(*_batch_norm(eqx, mode="batch")),
    batch_norm_images=lambda eqx: (
        lambda m, s: _call(eqx, m, s, jnp.arange(24.0).reshape(2, 2, 2, 3))[0]
    )(*_batch_norm(eqx, mode="batch")),
    batch_norm_wrong_size=lambda eqx: (
        lambda m, s: _call(eqx, m, s, jnp.ones((4, 3)))[0])(*_batch_norm(eqx)),
    spectral_norm=lambda eqx: (
        lambda m, s: m(jnp.ones(2), s)[0]
    )(*eqx.nn.make_with_state(lambda: eqx.nn.SpectralNorm(
        eqx.nn.Linear(2, 3, key=_key()), "weight", key=_key(1)))()),
    spectral_norm_inference=lambda eqx: (
        lambda m, s: m(jnp.ones(2), s, inference=True)[0]
    )(*eqx.nn.make_with_state(lambda: eqx.nn.SpectralNorm(
        eqx.nn.Linear(2, 3, key=_key()), "weight", num_power_iterations=3, key=_key(1)))()),
    spectral_norm_of_a_conv=lambda eqx: (
        lambda m, s: m(jnp.ones((1, 4)), s)[0]
    )(*eqx.nn.make_with_state(lambda: eqx.nn.SpectralNorm(
        eqx.nn.Conv1d(1, 2, 2, key=_key()), "weight", key=_key(1)))()),
    spectral_norm_of_what_is_not_there=lambda eqx: eqx.nn.SpectralNorm(
        eqx.nn.Identity(), "weight", key=_key()),
)  # fmt: skip
