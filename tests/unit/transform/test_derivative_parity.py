"""The derivatives against those of Equinox, on its own Modules: same values, same Nones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import transform

eqx = pytest.importorskip("equinox")

X, DX = jnp.array([0.5, -1.0]), jnp.array([1.0, 3.0])


class Layer(eqx.Module):
    weight: jax.Array
    activation: object
    name: str
    size: int = eqx.field(static=True, default=2)

    def __call__(self, x):
        return {"out": self.activation(self.weight * x), "bare": self.weight, "s": self.name}


LAYER = Layer(jnp.array([1.0, 2.0]), jnp.sin, "layer")
TANGENT = Layer(DX, None, None)


def custom_jvp(library):
    fun = library.filter_custom_jvp(lambda layer, x, *, k: (layer.weight * x * k, x + 0))

    def rule(primals, tangents, *, k):
        (layer, x), (dlayer, dx) = primals, tangents
        slope = 0 * x if dlayer.weight is None else 10 * dlayer.weight * x
        return fun(layer, x, k=k), (slope, dx)

    fun.def_jvp(rule)
    return fun


def custom_vjp(library):
    fun = library.filter_custom_vjp(lambda layer, x, *, k: (layer.weight * x, layer.weight * k))
    fun.def_fwd(lambda perturbed, layer, x, *, k: (fun(layer, x, k=k), (x, perturbed.weight)))

    def bwd(residuals, grad_out, perturbed, layer, x, *, k):
        used = sum(g for g in grad_out if g is not None)
        grad = 10 * used * residuals[0] if residuals[1] and perturbed.weight else None
        return Layer(grad, None, None)

    fun.def_bwd(bwd)
    return fun


def numbers(layer, x):
    return layer.activation(layer.weight * x), {"n": None, "total": layer.weight.sum()}


TWO = jnp.array(2.0)
CASES = {
    "jvp": lambda lib: lib.filter_jvp(lambda m, x: m(x), (LAYER, X), (TANGENT, None)),
    "jvp of the other": lambda lib: lib.filter_jvp(
        lambda m, x: m(x), (LAYER, X), (Layer(None, None, None), DX)
    ),
    "jvp of jit": lambda lib: lib.filter_jvp(
        jax.jit(lambda x, y: (x * y, y * 2, 3)), (X, X), (DX, None)
    ),
    "vjp": lambda lib: lib.filter_vjp(lambda m, x: m(x), LAYER, X)[1](
        {"out": DX, "bare": X, "s": None}
    ),
    "jacfwd": lambda lib: lib.filter_jacfwd(numbers)(LAYER, X),
    "jacrev": lambda lib: lib.filter_jacrev(numbers)(LAYER, X),
    "hessian": lambda lib: lib.filter_hessian(numbers)(LAYER, X),
    "jacrev with aux": lambda lib: lib.filter_jacrev(lambda m, x: (m.weight * x, "aux"), True)(
        LAYER, X
    ),
    "custom_jvp": lambda lib: lib.filter_jvp(
        lambda m, x: custom_jvp(lib)(m, x, k=TWO), (LAYER, X), (TANGENT, None)
    ),
    "custom_jvp, nested": lambda lib: lib.filter_jvp(
        lambda x: lib.filter_jvp(
            lambda m: custom_jvp(lib)(m, x, k=TWO), (LAYER,), (TANGENT,)
        )[1],
        (X,),
        (DX,),
    ),
    "custom_jvp of vmap": lambda lib: jax.grad(
        lambda w: jax.vmap(
            lambda x: custom_jvp(lib)(Layer(w, jnp.sin, "s"), x, k=TWO)[0]
        )(jnp.stack([X, DX])).sum()
    )(X),
    "custom_vjp": lambda lib: lib.filter_grad(
        lambda m: sum(map(jnp.sum, custom_vjp(lib)(m, X, k=TWO)))
    )(LAYER),
    "custom_vjp, one output": lambda lib: jax.jit(
        jax.grad(lambda w: custom_vjp(lib)(Layer(w, jnp.sin, "s"), X, k=TWO)[1].sum())
    )(X),
    "custom_vjp of vmap": lambda lib: jax.grad(
        lambda w: jax.vmap(
            lambda x: custom_vjp(lib)(Layer(w, jnp.sin, "s"), x, k=TWO)[0]
        )(jnp.stack([X, DX])).sum()
    )(X),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_values_and_nones_are_those_of_equinox(case):
    expected, found = CASES[case](eqx), CASES[case](transform)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        if eqx.is_array(other):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
        else:
            assert one == other
