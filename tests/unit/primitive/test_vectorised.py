"""Vectorised primitives: the rules of an element are those of a batch, however it is made."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import _jax
from ecliptic.primitive import create_vprim, finalise_make_jaxpr

zeros = []


def _impl(x, y, *, k):
    assert x.shape == y.shape == (2,)
    return [k * x * y, jnp.sum(x)]


def _abstract(x, y, *, k):
    assert type(x) is _jax.ShapedArray
    assert x.shape == (2,)
    return [x, _jax.ShapedArray((), x.dtype)]


def _jvp(primals, tangents, *, k):
    (x, y), (tx, ty) = primals, tangents
    zero = [type(t) is _jax.Zero for t in tangents]
    zeros.append(zero)
    out = prim.bind(x, y, k=k)
    if zero[0]:
        return out, [prim.bind(x, ty, k=k)[0], _jax.Zero(jax.typeof(out[1]).to_tangent_aval())]
    t_out = prim.bind(tx, y, k=k)
    return out, [t_out[0] if zero[1] else t_out[0] + prim.bind(x, ty, k=k)[0], t_out[1]]


def _transpose(cts, x, y, *, k):
    zeros.append([type(ct) is _jax.Zero for ct in cts])
    first, second = (_jax.instantiate_zeros(ct) for ct in cts)
    if _jax.is_undefined_primal(x):
        assert x.aval.shape == (2,)
        return [k * first * y + second, None]
    return [None, k * first * x]


prim = create_vprim("scaled", _impl, _abstract, _jvp, _transpose)


def f(x, y):
    return prim.bind(x, y, k=3.0)


def plain(x, y):
    return [3.0 * x * y, jnp.sum(x)]


X = jnp.arange(6.0).reshape(3, 2) + 1
Y = X[::-1] + 0.5
AXES = [((0, 0), (X, Y)), ((0, None), (X, Y[0])), ((None, 0), (X[0], Y)), ((1, 0), (X.T, Y))]


def same(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), one, other)


@pytest.mark.parametrize(("axes", "args"), AXES)
class TestBatch:
    def test_values(self, axes, args):
        expected = jax.vmap(plain, axes)(*args)
        same(jax.vmap(f, axes)(*args), expected)
        same(jax.jit(jax.vmap(f, axes))(*args), expected)
        same(jax.vmap(jax.jit(f), axes)(*args), expected)

    def test_it_is_one_operation_with_its_parameters(self, axes, args):
        program = jax.make_jaxpr(jax.vmap(f, axes))(*args)
        (eqn,) = (eqn for eqn in program.eqns if eqn.primitive.name == "scaled")
        assert eqn.params == {"k": 3.0}

    def test_derivatives(self, axes, args):
        for wrt in ((0,), (1,), (0, 1)):
            tangents = [x if i in wrt else jnp.zeros_like(x) for i, x in enumerate(args)]

            def along(g, wrt=wrt, tangents=tangents):
                some = [args[i] for i in wrt]
                fill = lambda s: [s[wrt.index(i)] if i in wrt else a for i, a in enumerate(args)]
                return jax.jvp(
                    lambda *s: jax.vmap(g, axes)(*fill(s)), some, [tangents[i] for i in wrt]
                )

            same(along(f), along(plain))

    def test_gradients(self, axes, args):
        def loss(g):
            def of(*args):
                a, b = jax.vmap(g, axes)(*args)
                return jnp.sum(jnp.sin(a)) + jnp.sum(b**2)

            return of

        same(jax.grad(loss(f), (0, 1))(*args), jax.grad(loss(plain), (0, 1))(*args))
        compiled = jax.jit(jax.grad(jax.checkpoint(loss(f)), (0, 1)))
        same(compiled(*args), jax.grad(loss(plain), (0, 1))(*args))

    def test_it_is_finalised(self, axes, args):
        program = finalise_make_jaxpr(jax.vmap(f, axes))(*args)
        assert "scaled" not in str(program)
        same(jax.jit(jax.vmap(f, axes))(*args), jax.vmap(plain, axes)(*args))


def test_zeros_stay_known_through_batches():
    zeros.clear()
    jax.jvp(lambda x: jax.vmap(f, (0, None))(x, Y[0]), (X,), (X,))
    assert zeros[0] == [False, True]
    zeros.clear()
    jax.linear_transpose(lambda x: jax.vmap(f)(x, Y)[0], X)(X)
    assert zeros == [[False, True]]


@pytest.mark.parametrize("axes", [((0, None), (None, 0)), ((0, 0), (1, None))])
def test_a_batch_of_batches(axes):
    inner, outer = axes
    x = jnp.arange(12.0).reshape(2, 3, 2) if axes[1][0] is not None else X
    y = X if axes[1][1] is None else jnp.arange(4.0).reshape(2, 2)
    if outer[0] == 1:
        x = jnp.moveaxis(x, 0, 1)
    nest = lambda g: jax.vmap(jax.vmap(g, inner), outer)
    same(nest(f)(x, y), nest(plain)(x, y))
    loss = lambda g: lambda x, y: sum(jnp.sum(a**2) for a in nest(g)(x, y))
    same(jax.grad(loss(f), (0, 1))(x, y), jax.grad(loss(plain), (0, 1))(x, y))
    assert "scaled" not in str(finalise_make_jaxpr(nest(f))(x, y))


def test_what_is_the_same_for_all_elements_is_not_batched():
    def both(x):
        return f(X[0], Y[0])[0], f(x, Y[0])[0]

    same(jax.vmap(both, out_axes=(None, 0))(X)[0], plain(X[0], Y[0])[0])


def test_second_derivatives():
    loss = lambda g: lambda x: jnp.sum(jnp.sin(g(x, x)[0])) + g(x, x)[1]
    same(jax.hessian(loss(f))(X[0]), jax.hessian(loss(plain))(X[0]))


def test_it_runs_inside_of_a_scan():
    def step(g):
        return lambda c, y: (jnp.tanh(g(c, y)[0]), None)

    def loss(g):
        return lambda c: jnp.sum(jax.lax.scan(step(g), c, Y)[0])

    same(jax.grad(loss(f))(X[0]), jax.grad(loss(plain))(X[0]))


def test_the_axis_has_its_name():
    summed = create_vprim(
        "summed", lambda x: [jax.lax.psum(x, "i")], lambda x: [x], None, None
    )  # fmt: skip
    out = jax.vmap(summed.bind, axis_name="i")(jnp.arange(3.0))
    same(out, [jnp.full(3, 3.0)])
