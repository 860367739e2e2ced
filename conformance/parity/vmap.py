"""filter_vmap, filter_pmap, if_array."""

import jax
import jax.numpy as jnp
import numpy as np

from conformance.parity._table import Table

TABLE = Table("vmap")


def _key():
    return jax.random.PRNGKey(0)


def _ensemble(eqx):
    return eqx.filter_vmap(lambda key: eqx.nn.Linear(2, 1, key=key))(jax.random.split(_key(), 3))


X = jnp.arange(6.0).reshape(3, 2)
ROW = jnp.arange(3.0)

TABLE.rows(
    arrays=lambda eqx: eqx.filter_vmap(lambda x: jnp.sum(x))(X),
    two_arrays=lambda eqx: eqx.filter_vmap(lambda x, y: x * y)(X, jnp.arange(3.0)),
    other_inputs=lambda eqx: eqx.filter_vmap(lambda x, s, f: f(x) if s == "a" else None)(
        X, "a", jnp.sin
    ),
    other_outputs=lambda eqx: eqx.filter_vmap(lambda x: (x, "s", 3, None))(X),
    numbers_are_not_mapped=lambda eqx: eqx.filter_vmap(lambda x, n: x * n)(X, 2.0),
    scalars_are_refused=lambda eqx: eqx.filter_vmap(lambda x, n: x * n)(X, jnp.array(2.0)),
    different_sizes=lambda eqx: eqx.filter_vmap(lambda x, y: x)(X, jnp.ones(2)),
    nothing_to_map=lambda eqx: eqx.filter_vmap(lambda x: x)(1),
    in_axes_int=lambda eqx: eqx.filter_vmap(jnp.sum, in_axes=1)(X),
    in_axes_tuple=lambda eqx: eqx.filter_vmap(lambda x, y: x + y, in_axes=(0, None))(
        X, jnp.ones(2)
    ),
    in_axes_too_short=lambda eqx: eqx.filter_vmap(lambda x, y: x + y, in_axes=(0,))(X, X),
    in_axes_none=lambda eqx: eqx.filter_vmap(lambda x, y: x + y, in_axes=(None, 1))(jnp.ones(3), X),
    in_axes_dict=lambda eqx: eqx.filter_vmap(lambda x, y: x + y, in_axes={"y": None})(
        X, jnp.ones(2)
    ),
    in_axes_unknown_name=lambda eqx: eqx.filter_vmap(lambda x: x, in_axes={"z": 0})(X),
    in_axes_function=lambda eqx: eqx.filter_vmap(
        lambda t: t["a"], in_axes=(lambda leaf: 1 if leaf.ndim == 2 else None,)
    )({"a": X}),
    in_axes_prefix=lambda eqx: eqx.filter_vmap(
        lambda t: t["a"] + t["b"], in_axes=({"a": 0, "b": None},)
    )({"a": X, "b": jnp.ones(2)}),
    in_axes_wrong_prefix=lambda eqx: eqx.filter_vmap(lambda t: t["a"], in_axes=({"b": 0},))(
        {"a": X}
    ),
    in_axes_wrong_type=lambda eqx: eqx.filter_vmap(lambda x: x, in_axes="a")(X),
    in_axes_list=lambda eqx: eqx.filter_vmap(lambda x, y: x + y, in_axes=[0, None])(X, jnp.ones(2)),
    in_axes_negative=lambda eqx: eqx.filter_vmap(jnp.sum, in_axes=-1)(X),
    in_axes_out_of_range=lambda eqx: eqx.filter_vmap(jnp.sum, in_axes=3)(X),
    in_axes_int_on_a_string=lambda eqx: eqx.filter_vmap(lambda x, s: x, in_axes=(0, 0))(X, "s"),
    if_array=lambda eqx: [eqx.if_array(1)(x) for x in (jnp.ones(2), 1, "s", np.ones(1))],
    in_axes_if_array=lambda eqx: eqx.filter_vmap(
        lambda t: t[0].sum() * t[1], in_axes=(eqx.if_array(1),)
    )([X, 2]),
    out_axes=lambda eqx: eqx.filter_vmap(lambda x: x, out_axes=1)(X),
    out_axes_none=lambda eqx: eqx.filter_vmap(lambda x: 3.0 * jnp.ones(2), out_axes=None)(X),
    out_axes_none_of_something_mapped=lambda eqx: eqx.filter_vmap(lambda x: x, out_axes=None)(X),
    out_axes_prefix=lambda eqx: eqx.filter_vmap(
        lambda x: {"a": x, "b": jnp.ones(())}, out_axes={"a": 1, "b": None}
    )(X),
    out_axes_function=lambda eqx: eqx.filter_vmap(
        lambda x: (x, jnp.sum(x)), out_axes=lambda leaf: leaf.ndim
    )(X),
    axis_size=lambda eqx: eqx.filter_vmap(lambda: jnp.ones(2), axis_size=3)(),
    axis_size_that_does_not_fit=lambda eqx: eqx.filter_vmap(lambda x: x, axis_size=2)(X),
    axis_name=lambda eqx: eqx.filter_vmap(lambda x: jax.lax.psum(x, "b"), axis_name="b")(X),
    keywords=lambda eqx: eqx.filter_vmap(lambda x, *, k: x + k)(X, k=jnp.arange(3.0)),
    defaults=lambda eqx: eqx.filter_vmap(lambda x, k=2: x * k)(X),
    default_array=lambda eqx: eqx.filter_vmap(lambda x, k=ROW: x * k)(X),
    a_layer=lambda eqx: eqx.filter_vmap(eqx.nn.Linear(2, 1, key=_key()))(X),
    an_ensemble_is_made=_ensemble,
    an_ensemble_is_called=lambda eqx: eqx.filter_vmap(lambda m, x: m(x), in_axes=(0, None))(
        _ensemble(eqx), jnp.ones(2)
    ),
    an_ensemble_with_functions=lambda eqx: eqx.filter_vmap(
        lambda m, x: m(x), in_axes=(eqx.if_array(0), None)
    )(
        eqx.filter_vmap(lambda key: eqx.nn.MLP(2, 1, 2, 1, key=key))(jax.random.split(_key(), 3)),
        jnp.ones(2),
    ),
    nested=lambda eqx: eqx.filter_vmap(eqx.filter_vmap(lambda x: x * 2))(X),
    under_jit=lambda eqx: eqx.filter_jit(eqx.filter_vmap(lambda x, s: x * 2))(X, "s"),
    under_grad=lambda eqx: eqx.filter_grad(lambda x: jnp.sum(eqx.filter_vmap(jnp.sin)(x)))(
        jnp.ones(2)
    ),
    keys=lambda eqx: eqx.filter_vmap(jax.random.uniform)(jax.random.split(jax.random.key(0), 3)),
    as_decorator=lambda eqx: eqx.filter_vmap(in_axes=1)(jnp.sum)(X),
    spmd_axis_name=lambda eqx: eqx.filter_vmap(lambda x: x, spmd_axis_name="b")(X),
    a_wrong_option=lambda eqx: eqx.filter_vmap(lambda x: x, no_such_option=1)(X),
    name=lambda eqx: eqx.filter_vmap(_ensemble).__name__,
    a_bound_method=lambda eqx: eqx.filter_vmap(eqx.nn.Linear(2, 1, key=_key()).__call__)(X),
    pmap=lambda eqx: eqx.filter_pmap(lambda x, s: x * 2)(X[:1], "s"),
    pmap_in_axes=lambda eqx: eqx.filter_pmap(lambda x, y: x + y, in_axes=(0, None))(
        X[:1], jnp.ones(2)
    ),
    pmap_axis_name=lambda eqx: eqx.filter_pmap(lambda x: jax.lax.psum(x, "d"), axis_name="d")(
        X[:1]
    ),
)
