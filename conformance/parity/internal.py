"""The rest of `internal`: ω, primitives, barriers, hashable partition, numbers next to numbers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from conformance.parity._table import Table

TABLE = Table("internal")
T, U = {"a": jnp.arange(2.0), "b": 3.0}, {"a": jnp.ones(2), "b": 2.0}


def _omega(fn):
    def program(eqx):
        w = eqx.internal.ω
        return fn(T**w, U**w, w).ω

    return program


TABLE.rows(
    omega_add=_omega(lambda a, b, w: a + b),
    omega_sub=_omega(lambda a, b, w: a - b),
    omega_mul=_omega(lambda a, b, w: a * b),
    omega_div=_omega(lambda a, b, w: a / b),
    omega_number=_omega(lambda a, b, w: 2 * a + 1),
    omega_neg=_omega(lambda a, b, w: -a),
    omega_pow=_omega(lambda a, b, w: a**2),
    omega_abs=_omega(lambda a, b, w: abs(-a)),
    omega_compare=_omega(lambda a, b, w: a < b),
    omega_equal=_omega(lambda a, b, w: a == b),
    omega_call=_omega(lambda a, b, w: a.call(jnp.sin)),
    omega_floordiv=_omega(lambda a, b, w: a // b),
    omega_mod=_omega(lambda a, b, w: a % b),
    omega_matmul=lambda eqx: (
        [jnp.ones((2, 2))] ** eqx.internal.ω @ [jnp.ones(2)] ** eqx.internal.ω
    ).ω,
    omega_item=lambda eqx: ([jnp.arange(3)] ** eqx.internal.ω)[1].ω,
    omega_at=lambda eqx: ([jnp.arange(3)] ** eqx.internal.ω).at[1].set(
        [9] ** eqx.internal.ω).ω,
    omega_at_add=lambda eqx: ([jnp.arange(3)] ** eqx.internal.ω).at[1].add(
        [jnp.array(5)] ** eqx.internal.ω).ω,
    omega_made=lambda eqx: eqx.internal.ω([1, 2]).ω,
    omega_repr=lambda eqx: repr(eqx.internal.ω([1, 2])),
    omega_different_trees=lambda eqx: ([1] ** eqx.internal.ω + [1, 2] ** eqx.internal.ω).ω,
    omega_plus_a_tree=lambda eqx: ([1] ** eqx.internal.ω + [1]).ω,
    omega_is_leaf=lambda eqx: eqx.internal.ω([None, 1], is_leaf=lambda x: x is None).call(
        lambda x: "none" if x is None else x).ω,
    omega_bool=lambda eqx: bool(eqx.internal.ω([1])),
    omega_is_frozen=lambda eqx: setattr(eqx.internal.ω([1]), "value", 3),
    nextafter=lambda eqx: eqx.internal.nextafter(jnp.array([0.0, 1.0, -1.0, jnp.inf])),
    prevbefore=lambda eqx: eqx.internal.prevbefore(jnp.array([0.0, 1.0, -1.0, -jnp.inf])),
    nextafter_gradient=lambda eqx: jax.grad(eqx.internal.nextafter)(1.0),
    unvmap_any=lambda eqx: jax.vmap(eqx.internal.unvmap_any, out_axes=None)(
        jnp.array([False, True])),
    unvmap_all=lambda eqx: jax.vmap(eqx.internal.unvmap_all, out_axes=None)(
        jnp.array([False, True])),
    unvmap_max=lambda eqx: jax.vmap(eqx.internal.unvmap_max, out_axes=None)(jnp.array([4, 7])),
    unvmap_outside=lambda eqx: [eqx.internal.unvmap_any(True), eqx.internal.unvmap_max(3)],
    left_broadcast_to=lambda eqx: eqx.internal.left_broadcast_to(jnp.arange(2), (2, 3)),
    left_broadcast_to_bad=lambda eqx: eqx.internal.left_broadcast_to(jnp.arange(2), (3, 2)),
    static=lambda eqx: (lambda s: (s.value, jax.tree.leaves(s)))(eqx.internal.Static("text")),
    static_equal=lambda eqx: eqx.internal.Static((1, "a")) == eqx.internal.Static((1, "a")),
    static_under_jit=lambda eqx: jax.jit(lambda s: s)(eqx.internal.Static(3)).value,
    str2jax=lambda eqx: str(eqx.internal.str2jax("text")),
    str2jax_under_jit=lambda eqx: str(jax.jit(lambda s: s)(eqx.internal.str2jax("text"))),
    hashable=lambda eqx: (lambda parts: (
        parts[0], hash(parts[1]) is not None, eqx.internal.hashable_combine(*parts)))(
            eqx.internal.hashable_partition([jnp.ones(1), "a", 3], eqx.is_array)),
    eval_empty=lambda eqx: jax.tree.map(jnp.shape, eqx.internal.eval_empty(
        lambda x: {"a": x}, jnp.ones(2))),
    eval_zero=lambda eqx: eqx.internal.eval_zero(lambda x: (x, x[0]), jnp.ones(2)),
    cached_eval_shape=lambda eqx: eqx.internal.cached_filter_eval_shape(
        lambda x, s: (x + 1, s), jnp.ones(2), "s"),
    materialise_zeros=lambda eqx: eqx.internal.materialise_zeros(jnp.ones(2), None),
    materialise_zeros_kept=lambda eqx: eqx.internal.materialise_zeros(jnp.ones(2), jnp.ones(2)),
    materialise_zeros_integers=lambda eqx: eqx.internal.materialise_zeros(jnp.arange(2), None),
    noinline=lambda eqx: eqx.internal.noinline(lambda x, s: (x * 2, s))(jnp.ones(2), "s"),
    noinline_under_jit=lambda eqx: jax.jit(eqx.internal.noinline(lambda x: x * 2))(jnp.ones(2)),
    noinline_gradient=lambda eqx: jax.grad(eqx.internal.noinline(lambda x: x**2))(3.0),
    noinline_vmap=lambda eqx: jax.vmap(eqx.internal.noinline(lambda x: x * 2))(jnp.ones(2)),
    nondifferentiable=lambda eqx: eqx.internal.nondifferentiable(jnp.ones(1)),
    nondifferentiable_grad=lambda eqx: jax.grad(eqx.internal.nondifferentiable)(1.0),
    nondifferentiable_jvp=lambda eqx: jax.jvp(eqx.internal.nondifferentiable, (1.0,), (1.0,)),
    backward_jvp=lambda eqx: jax.jvp(
        eqx.internal.nondifferentiable_backward, (1.0,), (1.0,)),
    backward_grad=lambda eqx: jax.grad(eqx.internal.nondifferentiable_backward)(1.0),
    nonbatchable=lambda eqx: jax.vmap(eqx.internal.nonbatchable)(jnp.ones(2)),
    nonbatchable_constant=lambda eqx: jax.vmap(lambda x: eqx.internal.nonbatchable(
        x, allow_constant_across_batch=True))(jnp.ones(2)),
    nonbatchable_outside=lambda eqx: eqx.internal.nonbatchable([jnp.ones(2), "s"]),
    nontraceable=lambda eqx: eqx.internal.nontraceable(jnp.ones(1)),
    nontraceable_jit=lambda eqx: jax.jit(eqx.internal.nontraceable)(1.0),
    assert_dce_dead=lambda eqx: eqx.filter_jit(
        lambda x: (eqx.internal.assert_dce(x, "alive"), x)[1])(jnp.ones(1)),
    assert_dce_alive=lambda eqx: eqx.filter_jit(
        lambda x: eqx.internal.assert_dce(x, "alive"))(jnp.ones(1)),
    finalise=lambda eqx: [e.primitive.name for e in eqx.internal.finalise_jaxpr(
        jax.make_jaxpr(lambda x: eqx.internal.unvmap_any(x))(jnp.array([True]))).eqns],
    finalise_fn=lambda eqx: eqx.internal.finalise_fn(
        lambda x: eqx.internal.nondifferentiable(x) * 2)(jnp.ones(1)),
    finalise_make_jaxpr=lambda eqx: [e.primitive.name for e in eqx.internal.finalise_make_jaxpr(
        lambda x: eqx.internal.unvmap_any(x))(jnp.array([True])).eqns],
    closure_to_pytree=lambda eqx: [x.shape for x in jax.tree.leaves(eqx.filter(
        eqx.internal.closure_to_pytree((lambda w: lambda x: w * x)(jnp.ones(2))), eqx.is_array))],
    closure_to_pytree_called=lambda eqx: eqx.internal.closure_to_pytree(
        (lambda w: lambda x: w * x)(jnp.ones(2)))(3.0),
    get_key=lambda eqx: (lambda k: (k(), k()))(eqx.internal.GetKey(3)),
    get_key_same=lambda eqx: bool(jnp.all(eqx.internal.GetKey(3)() == eqx.internal.GetKey(3)())),
    doc_repr=lambda eqx: eqx.internal.doc_repr(3, "three"),
    doc_remove_args=lambda eqx: eqx.internal.doc_remove_args("y")(lambda x, y=1: x + y)(1),
    container=lambda eqx: (lambda C: (len(C), C[C.a]))(
        eqx.internal.ContainerMeta("C", (), {"a": "A", "b": "B"})),
    vprim=lambda eqx: _vprim(eqx)[0](jnp.ones(2), jnp.ones(2)),
    vprim_grad=lambda eqx: jax.grad(lambda x: jnp.sum(_vprim(eqx)[0](x, jnp.ones(2))))(
        jnp.ones(2)),
    vprim_vmap=lambda eqx: jax.vmap(_vprim(eqx)[0])(jnp.ones((3, 2)), jnp.ones((3, 2))),
    vprim_jit=lambda eqx: jax.jit(_vprim(eqx)[0])(jnp.ones(2), jnp.ones(2)),
    filter_primitive=lambda eqx: _vprim(eqx)[1](),
)  # fmt: skip


@functools.cache
def _vprim(eqx):
    """A product, as a vectorised primitive of filtered rules."""
    i = eqx.internal

    @i.filter_primitive_def
    def impl(x, y, name):
        return x * y, name

    @i.filter_primitive_def
    def abstract(x, y, name):
        return x, name

    @i.filter_primitive_jvp
    def jvp(primals, tangents):
        x, y, name = primals
        tx, ty, _ = tangents
        tx = jnp.zeros_like(x) if tx is None else tx
        ty = jnp.zeros_like(y) if ty is None else ty
        return i.filter_primitive_bind(prim, x, y, name), (tx * y + x * ty, None)

    @i.filter_primitive_transpose
    def transpose(inputs, cotangents):
        raise NotImplementedError

    prim = i.create_vprim("parity_product", impl, abstract, jvp, transpose)
    return (
        lambda x, y: i.filter_primitive_bind(prim, x, y, "name")[0],
        lambda: i.filter_primitive_bind(prim, jnp.ones(1), np.ones(1, np.float32), "name"),
    )
