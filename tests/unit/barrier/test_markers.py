"""Identities that some transformation is ruled out for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic.barrier import (
    nonbatchable,
    nondifferentiable,
    nondifferentiable_backward,
    nontraceable,
)
from ecliptic.errors import NonBatchableError, NonDifferentiableError, NonTraceableError
from ecliptic.primitive import finalise_make_jaxpr

X = jnp.array([1.0, 2.0])
MARKERS = [nonbatchable, nondifferentiable, nondifferentiable_backward, nontraceable]

VMAP = jax.vmap
JVP = lambda f: lambda x: jax.jvp(f, (x,), (x,))
GRAD = lambda f: jax.grad(lambda x: f(x).sum())
REFUSED = [
    (nontraceable, VMAP, NonTraceableError, RuntimeError, "Detected batching of nontraceable"),
    (nontraceable, JVP, NonTraceableError, RuntimeError, "Detected differentiation of nontrace"),
    (nontraceable, GRAD, NonTraceableError, RuntimeError, "Detected differentiation of nontrace"),
    (nondifferentiable, JVP, NonDifferentiableError, RuntimeError, "Unexpected tangent. This op"),
    (nondifferentiable, GRAD, NonDifferentiableError, RuntimeError, "Unexpected tangent. This op"),
    (nondifferentiable_backward, GRAD, NonDifferentiableError, RuntimeError,
     "Unexpected cotangent. This operation cannot be reverse-mode"),
    (nonbatchable, VMAP, NonBatchableError, ValueError, "Unexpected batch tracer. This operation"),
]  # fmt: skip


@pytest.mark.parametrize("mark", MARKERS)
class TestIdentity:
    def test_any_tree_passes(self, mark):
        tree = {"a": X, "b": (1, 2.0, "c", None, np.ones(2))}
        for out in (mark(tree), jax.jit(lambda: mark(tree)["a"])()):
            assert np.array_equal(jax.tree.leaves(out)[0], X)
        assert mark(tree)["b"][:4] == (1, 2.0, "c", None)

    def test_nothing_is_left_of_it_in_a_final_program(self, mark):
        assert finalise_make_jaxpr(mark)(X).eqns == []

    def test_what_is_not_transformed_passes(self, mark):
        assert np.array_equal(jax.grad(lambda x: (x * mark(X)).sum())(X), X)
        assert np.array_equal(jax.vmap(lambda x: x * mark(2.0))(X), 2 * X)

    def test_loops_pass(self, mark):
        last, _ = jax.lax.scan(lambda c, x: (mark(c) + mark(x), None), 0.0, X)
        assert last == 3


@pytest.mark.parametrize(("mark", "transform", "kind", "builtin", "text"), REFUSED)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_transformation_is_refused(mark, transform, kind, builtin, text, compiled):
    f = jax.jit(mark) if compiled else mark
    with pytest.raises(kind, match=text) as caught:
        transform(f)(X)
    assert isinstance(caught.value, builtin)


ALLOWED = [
    (nondifferentiable, VMAP), (nondifferentiable_backward, VMAP),
    (nondifferentiable_backward, JVP), (nonbatchable, JVP), (nonbatchable, GRAD),
]  # fmt: skip


@pytest.mark.parametrize(("mark", "transform"), ALLOWED)
def test_other_transformations_pass(mark, transform):
    for f in (mark, jax.jit(mark)):
        jax.tree.map(np.testing.assert_array_equal, transform(f)(X), transform(lambda x: x)(X))


@jax.custom_vjp
def counted(x):
    return x, jnp.int32(2)


counted.defvjp(lambda x: (counted(x), None), lambda _, cotangents: (cotangents[0],))


@pytest.mark.parametrize("mark", MARKERS)
def test_an_integer_passes_that_comes_with_what_is_differentiated(mark):
    def f(x):
        y, n = counted(x)
        return y * mark(n).astype(y.dtype)

    assert jax.grad(f)(3.0) == 2
    assert jax.grad(jax.jit(f))(3.0) == 2


@pytest.mark.parametrize(("mark", "transform", "kind", "builtin", "text"), REFUSED)
def test_a_name_is_in_the_message(mark, transform, kind, builtin, text):
    with pytest.raises(kind, match="The answer"):
        transform(lambda x: mark(x, name="The answer"))(X)


@pytest.mark.parametrize(("mark", "transform", "kind", "builtin", "text"), REFUSED[3:])
def test_a_message_takes_the_place_of_the_usual_one(mark, transform, kind, builtin, text):
    with pytest.raises(kind, match=r"^own words"):
        transform(lambda x: mark(x, msg="own words"))(X)


def test_the_message_names_the_leaf():
    with pytest.raises(NonDifferentiableError, match=r"`x\['b'\]` in it depends on"):
        jax.jvp(lambda x: nondifferentiable({"a": X, "b": x})["b"], (X,), (X,))


def test_a_leaf_without_a_cotangent_passes():
    f = lambda x, y: nondifferentiable_backward((x, y))[0].sum()
    assert np.array_equal(jax.grad(f, argnums=1)(X, X), [0, 0])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_cotangent_that_turns_out_to_be_zero_passes(compiled):
    def slope(x, by):
        f = lambda x: (by * nondifferentiable_backward(x, msg="own words", symbolic=False)).sum()
        return jax.grad(f)(x)

    run = jax.jit(slope) if compiled else slope
    assert np.array_equal(run(X, 0.0), [0, 0])
    with pytest.raises(Exception, match="own words"):
        jax.block_until_ready(run(X, 1.0))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_constant_batch_passes_if_that_is_allowed(compiled):
    def one(x):
        return nonbatchable(x, allow_constant_across_batch=True)

    run = jax.vmap(one, in_axes=1, out_axes=None)
    run = jax.jit(run) if compiled else run
    assert np.array_equal(run(jnp.array([[1.0, 1.0], [jnp.nan, jnp.nan]])), [1, np.nan], True)
    with pytest.raises(Exception, match="Nonconstant batch. This operation needs one value"):
        jax.block_until_ready(run(jnp.eye(2)))
