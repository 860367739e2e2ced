"""grad, value_and_grad, jacobians, jvp, vjp, custom rules."""

import jax
import jax.numpy as jnp
import numpy as np

from conformance.parity._table import Table

TABLE = Table("derivatives")
V = np.arange(3.0, dtype=np.float32)


def _key():
    return jax.random.PRNGKey(0)


def _mlp(eqx):
    return eqx.nn.MLP(2, 1, 2, 1, key=_key())


def _loss(model, x):
    return jnp.sum(model(x) ** 2)


TABLE.rows(
    grad=lambda eqx: eqx.filter_grad(lambda x: jnp.sum(x**2))(V),
    grad_of_a_tree=lambda eqx: eqx.filter_grad(lambda t: jnp.sum(t["a"]) * t["c"])(
        {"a": jnp.ones(2), "b": "s", "c": 2, "d": jnp.arange(2)}
    ),
    grad_of_a_python_float=lambda eqx: eqx.filter_grad(lambda x: x**2)(3.0),
    grad_of_integers=lambda eqx: eqx.filter_grad(lambda x: jnp.sum(x) * 1.0)(jnp.arange(2)),
    grad_of_a_model=lambda eqx: eqx.filter_grad(_loss)(_mlp(eqx), jnp.ones(2)),
    grad_under_jit=lambda eqx: eqx.filter_jit(eqx.filter_grad(_loss))(_mlp(eqx), jnp.ones(2)),
    grad_of_a_vector=lambda eqx: eqx.filter_grad(lambda x: x)(V),
    grad_of_an_integer_output=lambda eqx: eqx.filter_grad(lambda x: jnp.array(1))(V),
    grad_of_none=lambda eqx: eqx.filter_grad(lambda x: None)(V),
    grad_has_aux=lambda eqx: eqx.filter_grad(lambda x: (jnp.sum(x), "aux"), has_aux=True)(V),
    grad_has_aux_missing=lambda eqx: eqx.filter_grad(lambda x: jnp.sum(x), has_aux=True)(V),
    grad_keywords=lambda eqx: eqx.filter_grad(lambda x, *, k: jnp.sum(x) * k)(V, k=2.0),
    grad_with_more_arguments=lambda eqx: eqx.filter_grad(lambda x, y, s: jnp.sum(x * y))(V, V, "s"),
    grad_without_arguments=lambda eqx: eqx.filter_grad(lambda: 1.0)(),
    grad_as_decorator=lambda eqx: eqx.filter_grad(has_aux=False)(jnp.sum)(V),
    grad_argnums=lambda eqx: eqx.filter_grad(lambda x, y: jnp.sum(x * y), argnums=1)(V, V),
    grad_holomorphic=lambda eqx: eqx.filter_grad(lambda x: x**2, holomorphic=True)(
        jnp.array(1.0 + 2j)
    ),
    grad_of_a_complex_input=lambda eqx: eqx.filter_grad(lambda x: jnp.abs(x) ** 2)(
        jnp.array(1.0 + 2j)
    ),
    grad_of_a_complex_output=lambda eqx: eqx.filter_grad(lambda x: x * 1j)(jnp.array(1.0)),
    grad_twice=lambda eqx: eqx.filter_grad(lambda x: jnp.sum(eqx.filter_grad(
        lambda y: jnp.sum(y**3))(x)))(V),
    grad_of_a_half=lambda eqx: eqx.filter_grad(lambda x: jnp.sum(x))(jnp.ones(2, jnp.float16)),
    grad_allow_int=lambda eqx: eqx.filter_grad(lambda x: 1.0, allow_int=True)(V),
    value_and_grad=lambda eqx: eqx.filter_value_and_grad(_loss)(_mlp(eqx), jnp.ones(2)),
    value_and_grad_has_aux=lambda eqx: eqx.filter_value_and_grad(
        lambda x: (jnp.sum(x), {"a": 1}), has_aux=True)(V),
    grad_name=lambda eqx: eqx.filter_grad(_loss).__name__,
    grad_closes_over=lambda eqx: (lambda y: eqx.filter_grad(lambda x: jnp.sum(x * y))(V))(V + 1),
    jacfwd=lambda eqx: eqx.filter_jacfwd(lambda x: x**2)(V),
    jacrev=lambda eqx: eqx.filter_jacrev(lambda x: x**2)(V),
    jacfwd_of_a_tree=lambda eqx: eqx.filter_jacfwd(lambda t: t["a"] * 2)(
        {"a": jnp.ones(2), "b": "s"}),
    jacrev_has_aux=lambda eqx: eqx.filter_jacrev(lambda x: (x**2, "aux"), has_aux=True)(V),
    jacfwd_has_aux=lambda eqx: eqx.filter_jacfwd(lambda x: (x**2, "aux"), has_aux=True)(V),
    jacrev_of_a_layer=lambda eqx: eqx.filter_jacrev(lambda m: m(jnp.ones(2)))(
        eqx.nn.Linear(2, 2, key=_key())),
    hessian=lambda eqx: eqx.filter_hessian(lambda x: jnp.sum(x**3))(V),
    hessian_has_aux=lambda eqx: eqx.filter_hessian(lambda x: (jnp.sum(x**3), 1), has_aux=True)(V),
    jvp=lambda eqx: eqx.filter_jvp(lambda x, y: x * y, (V, V), (V + 1, V)),
    jvp_none=lambda eqx: eqx.filter_jvp(lambda x, y: x * y, (V, V), (V + 1, None)),
    jvp_other=lambda eqx: eqx.filter_jvp(lambda x, s: (x * 2, s), (V, "s"), (V, None)),
    jvp_of_a_list=lambda eqx: eqx.filter_jvp(lambda x: x * 2, [V], [V]),
    jvp_of_a_bare_array=lambda eqx: eqx.filter_jvp(lambda x: x * 2, V, V),
    jvp_lengths=lambda eqx: eqx.filter_jvp(lambda x: x * 2, (V,), (V, V)),
    jvp_keywords=lambda eqx: eqx.filter_jvp(lambda x, k: x * k, (V,), (V,), k=3),
    jvp_of_integers=lambda eqx: eqx.filter_jvp(lambda x, n: x * n, (V, jnp.arange(3)), (V, None)),
    jvp_integer_output=lambda eqx: eqx.filter_jvp(lambda x: (x, jnp.arange(2)), (V,), (V,)),
    jvp_wrong_shape=lambda eqx: eqx.filter_jvp(lambda x: x, (V,), (jnp.ones(2),)),
    jvp_of_a_model=lambda eqx: eqx.filter_jvp(
        lambda m, x: m(x), (eqx.nn.Linear(2, 1, key=_key()), jnp.ones(2)), (None, jnp.ones(2))),
    vjp=lambda eqx: (lambda out, pull: (out, pull(jnp.ones(3))))(
        *eqx.filter_vjp(lambda x, y: x * y, V, V + 1)),
    vjp_other=lambda eqx: (lambda out, pull: (out, pull(jnp.ones(3))))(
        *eqx.filter_vjp(lambda x, s: x * 2, V, "s")),
    vjp_has_aux=lambda eqx: (lambda out, pull, aux: (out, pull(jnp.ones(3)), aux))(
        *eqx.filter_vjp(lambda x: (x * 2, "aux"), V, has_aux=True)),
    vjp_of_a_model=lambda eqx: (lambda out, pull: pull(jnp.ones(1)))(
        *eqx.filter_vjp(lambda m: m(jnp.ones(2)), eqx.nn.Linear(2, 1, key=_key()))),
    vjp_wrong_cotangent=lambda eqx: eqx.filter_vjp(lambda x: x * 2, V)[1](jnp.ones(2)),
    vjp_of_integers=lambda eqx: eqx.filter_vjp(lambda n, x: x * n, jnp.arange(3), V)[1](V),
    vjp_static_outputs=lambda eqx: (lambda out, pull: (out, pull((jnp.ones(3), None))))(
        *eqx.filter_vjp(lambda x: (x * 2, "s"), V)),
)  # fmt: skip


def _custom_jvp(eqx):
    @eqx.filter_custom_jvp
    def f(x, y):
        return x * y

    @f.def_jvp
    def rule(primals, tangents):
        x, y = primals
        tx, ty = tangents
        return f(x, y), 100.0 * tx + (0.0 if ty is None else 7 * ty)

    return f


def _custom_jvp_static(eqx):
    @eqx.filter_custom_jvp
    def f(x, fn, *, k):
        return fn(x) * k

    @f.def_jvp
    def rule(primals, tangents, *, k):
        x, fn = primals
        tx, tfn = tangents
        assert tfn is None
        return fn(x) * k, tx * k * 10

    return f


def _custom_vjp(eqx):
    @eqx.filter_custom_vjp
    def f(x, y):
        return jnp.sum(x["a"]) * y

    @f.def_fwd
    def fwd(perturbed, x, y):
        return f(x, y), perturbed

    @f.def_bwd
    def bwd(residuals, g, perturbed, x, y):
        assert residuals == perturbed
        return {"a": jnp.full_like(x["a"], 50.0) * g, "b": None}

    return f


def _old_custom_vjp(eqx):
    @eqx.filter_custom_vjp
    def f(x, y):
        return x * y

    f.defvjp(lambda x, y: (f(x, y), None), lambda residuals, g, x, y: 42.0 * g)
    return f


def _custom_vjp_with_bad_rule(eqx):
    @eqx.filter_custom_vjp
    def f(x):
        return x * 2

    f.def_fwd(lambda perturbed, x: (x * 2, None))
    f.def_bwd(lambda residuals, g, perturbed, x: (g, g))
    return f


TABLE.rows(
    custom_jvp_value=lambda eqx: _custom_jvp(eqx)(V, V),
    custom_jvp_grad=lambda eqx: eqx.filter_grad(lambda x: _custom_jvp(eqx)(x, 2.0))(jnp.array(3.0)),
    custom_jvp_second=lambda eqx: jax.grad(lambda y: _custom_jvp(eqx)(jnp.array(3.0), y))(2.0),
    custom_jvp_static=lambda eqx: jax.grad(
        lambda x: _custom_jvp_static(eqx)(x, jnp.sin, k=2.0))(1.0),
    custom_jvp_jit=lambda eqx: eqx.filter_jit(jax.grad(lambda x: _custom_jvp(eqx)(x, 2.0)))(
        jnp.array(3.0)),
    custom_jvp_vmap=lambda eqx: jax.vmap(jax.grad(lambda x: _custom_jvp(eqx)(x, 2.0)))(V),
    custom_jvp_without_a_rule=lambda eqx: jax.grad(eqx.filter_custom_jvp(lambda x: x))(1.0),
    custom_jvp_perturbed_keyword=lambda eqx: jax.grad(
        lambda k: _custom_jvp_static(eqx)(1.0, jnp.sin, k=k))(2.0),
    custom_vjp_value=lambda eqx: _custom_vjp(eqx)({"a": V, "b": 1}, 2.0),
    custom_vjp_grad=lambda eqx: eqx.filter_grad(lambda x: _custom_vjp(eqx)(x, 2.0))(
        {"a": V, "b": 1}),
    custom_vjp_jit=lambda eqx: eqx.filter_jit(eqx.filter_grad(lambda x: _custom_vjp(eqx)(x, 2.0)))(
        {"a": V, "b": 1}),
    custom_vjp_of_another_argument=lambda eqx: jax.grad(
        lambda y: _custom_vjp(eqx)({"a": V, "b": 1}, y))(2.0),
    custom_vjp_without_rules=lambda eqx: jax.grad(eqx.filter_custom_vjp(lambda x: x))(1.0),
    custom_vjp_old=lambda eqx: jax.grad(lambda x: _old_custom_vjp(eqx)(x, 2.0))(3.0),
    custom_vjp_bad_rule=lambda eqx: jax.grad(_custom_vjp_with_bad_rule(eqx))(1.0),
    custom_vjp_jvp=lambda eqx: jax.jvp(_custom_vjp_with_bad_rule(eqx), (1.0,), (1.0,)),
)  # fmt: skip
