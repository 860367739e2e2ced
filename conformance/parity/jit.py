"""filter_jit, eval_shape, make_jaxpr, closure_convert, checkpoint, pure_callback, shard."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np

from conformance.parity._table import Table

TABLE = Table("jit")
X = jnp.ones(2)


def _key():
    return jax.random.PRNGKey(0)


def _traces(eqx, *calls, **options):
    """How often a function is traced in these calls."""
    count = []

    @eqx.filter_jit(**options)
    def f(*args, **kwargs):
        count.append(1)
        return args

    for args in calls:
        f(*args)
    return len(count)


TABLE.rows(
    arrays=lambda eqx: eqx.filter_jit(lambda x, y: x + y)(jnp.ones(2), jnp.ones(2)),
    numpy=lambda eqx: eqx.filter_jit(lambda x: x + 1)(np.ones(2, np.float32)),
    other_inputs=lambda eqx: eqx.filter_jit(lambda x, f, s: (f(x), s))(jnp.ones(2), jnp.sin, "s"),
    other_outputs=lambda eqx: eqx.filter_jit(lambda x: (x, "text", None, 3, jnp.sin))(jnp.ones(1)),
    python_numbers_stay=lambda eqx: eqx.filter_jit(lambda x, n: (x * n, n))(jnp.ones(1), 3),
    keywords=lambda eqx: eqx.filter_jit(lambda x, *, k: x * k)(jnp.ones(1), k=2.0),
    defaults=lambda eqx: eqx.filter_jit(lambda x, k=2: x * k)(jnp.ones(1)),
    var_arguments=lambda eqx: eqx.filter_jit(lambda *a, **k: (a, k))(1, jnp.ones(1), b=2),
    no_arguments=lambda eqx: eqx.filter_jit(lambda: jnp.ones(2))(),
    wrong_arguments=lambda eqx: eqx.filter_jit(lambda x: x)(1, 2),
    an_error_inside=lambda eqx: eqx.filter_jit(lambda x: {}[x])(1),
    a_traced_condition=lambda eqx: eqx.filter_jit(lambda x: 1 if x else 2)(jnp.array(True)),
    a_module=lambda eqx: eqx.filter_jit(eqx.nn.Linear(2, 2, key=_key()))(jnp.ones(2)),
    a_module_as_argument=lambda eqx: eqx.filter_jit(lambda m, x: m(x))(
        eqx.nn.MLP(2, 2, 4, 1, key=_key()), jnp.ones(2)
    ),
    a_module_as_output=lambda eqx: eqx.filter_jit(lambda k: eqx.nn.MLP(1, 1, 2, 1, key=k))(_key()),
    a_bound_method=lambda eqx: eqx.filter_jit(eqx.nn.Linear(2, 2, key=_key()).__call__)(
        jnp.ones(2)),
    keys=lambda eqx: eqx.filter_jit(lambda k: jax.random.uniform(k))(jax.random.key(0)),
    name=lambda eqx: eqx.filter_jit(_traces).__name__,
    wrapped=lambda eqx: eqx.filter_jit(_traces).__wrapped__ is _traces,
    signature=lambda eqx: str(inspect.signature(eqx.filter_jit(lambda x, *, y=1: x))),
    as_decorator=lambda eqx: eqx.filter_jit(donate="none")(lambda x: x)(1),
    a_wrong_donate=lambda eqx: eqx.filter_jit(lambda x: x, donate="some")(jnp.ones(1)),
    donate_all=lambda eqx: eqx.filter_jit(lambda x: x + 1, donate="all")(jnp.ones(1)),
    donate_deletes=lambda eqx: (
        lambda x: (eqx.filter_jit(lambda x: x + 1, donate="all")(x), x.is_deleted())
    )(jnp.ones(3)),
    donate_but_first=lambda eqx: (
        lambda x, y: (
            eqx.filter_jit(lambda x, y: (x + 1, y + 1), donate="all-except-first")(x, y),
            x.is_deleted(), y.is_deleted(),
        )
    )(jnp.ones(3), jnp.ones(4)),
    static_arguments_of_jax=lambda eqx: eqx.filter_jit(lambda x: x, static_argnums=0),
    inline=lambda eqx: eqx.filter_jit(lambda x: x + 1, inline=True)(jnp.ones(1)),
    nested=lambda eqx: eqx.filter_jit(lambda x: eqx.filter_jit(lambda y, n: y * n)(x, 2))(
        jnp.ones(1)
    ),
    under_jax_jit=lambda eqx: jax.jit(lambda x: eqx.filter_jit(lambda y: y * 2)(x))(jnp.ones(1)),
    under_vmap=lambda eqx: jax.vmap(eqx.filter_jit(lambda y: y * 2))(jnp.ones(2)),
    under_grad=lambda eqx: jax.grad(eqx.filter_jit(lambda y: y**2))(3.0),
    of_a_partial=lambda eqx: eqx.filter_jit(eqx.Partial(lambda a, b: a + b, jnp.ones(1)))(2),
    of_a_class=lambda eqx: eqx.filter_jit(eqx.nn.Linear)(1, 1, key=_key()),
    lower=lambda eqx: eqx.filter_jit(lambda x, n: (x + n, n)).lower(jnp.ones(1), 2).compile()(
        jnp.ones(1), 2
    ),
    lowered_text=lambda eqx: "module" in eqx.filter_jit(lambda x: x).lower(X).as_text(),
    compiled_with_another_static=lambda eqx: eqx.filter_jit(lambda x, n: x + n).lower(
        jnp.ones(1), 2
    ).compile()(jnp.ones(1), 3),
    traces_once=lambda eqx: _traces(eqx, (jnp.ones(1),), (jnp.zeros(1),)),
    traces_by_shape=lambda eqx: _traces(eqx, (jnp.ones(1),), (jnp.zeros(2),)),
    traces_by_number=lambda eqx: _traces(eqx, (1,), (2,), (1,)),
    traces_by_type=lambda eqx: _traces(eqx, (1,), (1.0,), (True,)),
    traces_by_dtype=lambda eqx: _traces(eqx, (jnp.ones(1),), (jnp.ones(1, int),)),
    an_unhashable_static=lambda eqx: eqx.filter_jit(lambda x: 1)({1, 2}),
    a_method_of_a_module=lambda eqx: _jitted_method(eqx),
    clear_caches=lambda eqx: eqx.clear_caches(),
    eval_shape=lambda eqx: eqx.filter_eval_shape(lambda x, n: (x * n, n, "s"), jnp.ones(2), 3),
    eval_shape_of_a_layer=lambda eqx: eqx.filter_eval_shape(eqx.nn.Linear, 2, 3, key=_key()),
    eval_shape_of_a_struct=lambda eqx: eqx.filter_eval_shape(
        lambda x: x + 1, jax.ShapeDtypeStruct((2,), jnp.float32)
    ),
    eval_shape_of_an_error=lambda eqx: eqx.filter_eval_shape(lambda x: x @ x, jnp.ones((2, 3))),
    make_jaxpr_outputs=lambda eqx: eqx.filter_make_jaxpr(lambda x, s: (x + 1, s))(
        jnp.ones(2), "s"
    )[1:],
    make_jaxpr_equations=lambda eqx: [
        eqn.primitive.name
        for eqn in eqx.filter_make_jaxpr(lambda x, n: jnp.sin(x) * n)(jnp.ones(2), 2)[0].eqns
    ],
    make_jaxpr_of_a_linear=lambda eqx: [
        eqn.primitive.name
        for eqn in eqx.filter_make_jaxpr(eqx.nn.Linear(2, 2, key=_key()))(jnp.ones(2))[0].eqns
    ],
    make_jaxpr_consts=lambda eqx: len(
        eqx.filter_make_jaxpr(eqx.nn.Linear(2, 2, key=_key()))(jnp.ones(2))[0].consts
    ),
    closure_convert=lambda eqx: (lambda c: (c(jnp.ones(2)), c.consts))(
        eqx.filter_closure_convert(
            (lambda w: lambda x: jnp.sum(w * x))(jnp.arange(2.0)), jnp.ones(2)
        )
    ),
    closure_convert_outputs=lambda eqx: eqx.filter_closure_convert(
        lambda x: (x, "s", 2), jnp.ones(1)
    )(jnp.zeros(1)),
    closure_convert_with_another_shape=lambda eqx: eqx.filter_closure_convert(
        lambda x: x + 1, jnp.ones(1)
    )(jnp.ones(2)),
    closure_convert_with_another_static=lambda eqx: eqx.filter_closure_convert(
        lambda x, n: x + n, jnp.ones(1), 2
    )(jnp.ones(1), 3),
    closure_convert_keywords=lambda eqx: eqx.filter_closure_convert(
        lambda x, k: x + k, jnp.ones(1), k=jnp.ones(1)
    )(jnp.zeros(1), k=jnp.zeros(1)),
    closure_convert_has_leaves=lambda eqx: len(jax.tree.leaves(eqx.filter(
        eqx.filter_closure_convert((lambda w: lambda x: w * x)(jnp.ones(2)), jnp.ones(2)),
        eqx.is_array))),
    checkpoint=lambda eqx: eqx.filter_grad(
        eqx.filter_checkpoint(lambda x, n: jnp.sum(jnp.sin(x) ** n))
    )(jnp.ones(2), 2),
    checkpoint_outputs=lambda eqx: eqx.filter_checkpoint(lambda x: (x, "s"))(jnp.ones(1)),
    checkpoint_of_a_layer=lambda eqx: eqx.filter_checkpoint(eqx.nn.Linear(1, 1, key=_key()))(
        jnp.ones(1)
    ),
    checkpoint_policy=lambda eqx: jax.grad(eqx.filter_checkpoint(
        lambda x: jnp.sin(x), policy=jax.checkpoint_policies.nothing_saveable))(1.0),
    pure_callback=lambda eqx: eqx.filter_pure_callback(
        lambda x, s: np.asarray(x) * 2 if s == "a" else None, jnp.ones(2), "a",
        result_shape_dtypes=jax.ShapeDtypeStruct((2,), jnp.float32),
    ),
    pure_callback_under_jit=lambda eqx: eqx.filter_jit(lambda x: eqx.filter_pure_callback(
        lambda x, *, k: np.asarray(x) + k, x, k=1,
        result_shape_dtypes=jax.ShapeDtypeStruct((2,), jnp.float32)))(jnp.ones(2)),
    pure_callback_sequential=lambda eqx: jax.vmap(lambda x: eqx.filter_pure_callback(
        lambda x: np.asarray(x) * 2, x, vmap_method="sequential",
        result_shape_dtypes=jax.ShapeDtypeStruct((), jnp.float32)))(jnp.ones(2)),
    pure_callback_vmap_without_method=lambda eqx: jax.vmap(lambda x: eqx.filter_pure_callback(
        lambda x: np.asarray(x) * 2, x,
        result_shape_dtypes=jax.ShapeDtypeStruct((), jnp.float32)))(jnp.ones(2)),
    pure_callback_static_results=lambda eqx: eqx.filter_pure_callback(
        lambda x: (np.asarray(x), "s"), jnp.ones(1),
        result_shape_dtypes=(jax.ShapeDtypeStruct((1,), jnp.float32), "s")),
    shard=lambda eqx: eqx.filter_shard({"a": jnp.ones(2), "b": "s"}, jax.devices()[0]),
    shard_sharding=lambda eqx: eqx.filter_shard(
        [jnp.ones(2), None], jax.sharding.SingleDeviceSharding(jax.devices()[0])
    ),
    shard_under_jit=lambda eqx: eqx.filter_jit(lambda x: eqx.filter_shard(
        x, jax.sharding.SingleDeviceSharding(jax.devices()[0])))([jnp.ones(2), "s"]),
)  # fmt: skip


def _jitted_method(eqx):
    class M(eqx.Module):
        w: jax.Array
        n: int

        @eqx.filter_jit
        def f(self, x, k="k"):
            return self.w * x * self.n, k

    m = M(jnp.arange(2.0), 3)
    return m.f(2.0), M.f(m, 2.0)
