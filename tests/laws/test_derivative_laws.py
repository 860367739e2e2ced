"""Laws of the derivatives, for any tree: they agree with JAX and with each other."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.tree_util import tree_leaves, tree_structure

from ecliptic.transform import (
    filter_custom_jvp,
    filter_custom_vjp,
    filter_grad,
    filter_jacfwd,
    filter_jacrev,
    filter_jvp,
    filter_linearize,
    filter_vjp,
)
from ecliptic.tree import is_array, is_inexact_array
from tests.unit.tree.nodes import Affine, Pair

numbers = st.integers(-3, 3).map(float)
arrays = st.builds(
    lambda shape, value: jnp.full(shape, value), st.sampled_from([(), (2,), (2, 1)]), numbers
)
held = st.sampled_from(["text", None, jnp.tanh, 3, True, 2.5]) | st.builds(jnp.arange, st.just(2))


def _nodes(children):
    return (
        st.lists(children, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), children, max_size=3)
        | st.builds(Affine, children, children, st.sampled_from(["x", "y"]))
        | st.builds(Pair, children, children)
    )


trees = st.recursive(arrays | held, _nodes, max_leaves=6)
few = settings(max_examples=40)


def is_inexact(leaf):
    return is_inexact_array(leaf)


def swirl(tree, scale):
    """A function of a tree with an output of the same structure, each leaf of which needs all."""
    total = sum(jnp.sum(x) for x in tree_leaves(tree) if is_inexact(x))
    return jax.tree.map(lambda x: jnp.sin(x) * total * scale if is_inexact(x) else x, tree)


def directions(tree, seed):
    """A tangent for each leaf that has one; some are None."""
    leaves = tree_leaves(tree)
    chosen = [(seed >> i) % 2 == 0 for i in range(len(leaves))]
    out = [
        jnp.full(jnp.shape(x), 1.0 + i) if is_inexact(x) and choose else None
        for i, (x, choose) in enumerate(zip(leaves, chosen, strict=True))
    ]
    return tree_structure(tree).unflatten(out)


def flat(tree):
    return [x for x in tree_leaves(tree) if is_inexact(x)]


def dense(tree, derivative):
    """The leaves of a derivative, with zeros for None."""
    values = tree_structure(tree).flatten_up_to(derivative)
    return [
        jnp.zeros(jnp.shape(x)) if value is None else value
        for x, value in zip(tree_leaves(tree), values, strict=True)
        if is_inexact(x)
    ]


def assert_close(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def on_arrays(tree, fun):
    """`fun` of the arrays of a tree alone, for plain JAX."""
    leaves, treedef = jax.tree_util.tree_flatten(tree)

    def of_list(values):
        rest = iter(values)
        return flat(fun(treedef.unflatten([next(rest) if is_inexact(x) else x for x in leaves])))

    return of_list


seeds = st.integers(0, 63)


@few
@given(trees, seeds)
def test_jvp_is_that_of_jax_on_the_arrays(tree, seed):
    tangent = directions(tree, seed)
    out, slope = filter_jvp(swirl, (tree, jnp.array(2.0)), (tangent, None))
    expected, slopes = jax.jvp(
        on_arrays(tree, lambda t: swirl(t, jnp.array(2.0))), (flat(tree),), (dense(tree, tangent),)
    )
    assert_close(flat(out), expected)
    assert_close(dense(out, slope), slopes)


@few
@given(trees, seeds)
def test_the_output_keeps_what_is_no_array(tree, seed):
    out, _ = filter_jvp(swirl, (tree, jnp.array(2.0)), (directions(tree, seed), None))
    assert tree_structure(out) == tree_structure(tree)
    for one, other in zip(tree_leaves(out), tree_leaves(tree), strict=True):
        assert one is other or is_array(other)


@few
@given(trees, seeds)
def test_linearize_is_jvp_at_each_tangent(tree, seed):
    tangent = directions(tree, seed)
    _, slope = filter_jvp(swirl, (tree, jnp.array(2.0)), (tangent, None))
    out, push = filter_linearize(swirl, tree, jnp.array(2.0))
    assert_close(dense(out, push(tangent, None)), dense(out, slope))


@few
@given(trees, seeds, seeds)
def test_vjp_is_the_transpose_of_jvp(tree, seed, other_seed):
    tangent, cotangent = directions(tree, seed), directions(tree, other_seed)
    _, slope = filter_jvp(swirl, (tree, jnp.array(2.0)), (tangent, None))
    _, pull = filter_vjp(swirl, tree, jnp.array(2.0))
    back = pull(cotangent)[0]
    forth_and = sum(
        jnp.vdot(a, b) for a, b in zip(dense(tree, slope), dense(tree, cotangent), strict=True)
    )
    and_back = sum(
        jnp.vdot(a, b) for a, b in zip(dense(tree, tangent), dense(tree, back), strict=True)
    )
    np.testing.assert_allclose(forth_and, and_back, rtol=1e-3, atol=1e-3)


@few
@given(trees)
def test_the_cotangent_of_a_scalar_is_the_gradient(tree):
    def loss(t):
        return sum((jnp.sum(x) for x in flat(swirl(t, 1.0))), jnp.array(0.0))

    if flat(tree):
        _, pull = filter_vjp(loss, tree)
        assert_close(flat(pull(1.0)[0]), flat(filter_grad(loss)(tree)))


@settings(max_examples=12)
@given(trees.filter(lambda tree: flat(tree)))
def test_both_jacobians_are_that_of_jax_on_the_arrays(tree):
    expected = jax.jacfwd(on_arrays(tree, lambda t: swirl(t, 1.0)))(flat(tree))
    blocks = [block for row in expected for block in row]
    for jacobian in (filter_jacfwd, filter_jacrev):
        found = jacobian(lambda t: flat(swirl(t, 1.0)))(tree)
        assert_close(tree_leaves(found), blocks)
        for row in found:
            assert tree_structure(row, is_leaf=lambda x: x is None) == tree_structure(
                jax.tree.map(lambda x: 0, tree), is_leaf=lambda x: x is None
            )


@few
@given(trees, seeds)
def test_own_rules_that_say_the_truth_change_nothing(tree, seed):
    with_jvp = filter_custom_jvp(swirl)

    @with_jvp.def_jvp
    def _(primals, tangents):
        return filter_jvp(swirl, primals, tangents)

    with_vjp = filter_custom_vjp(swirl)

    @with_vjp.def_fwd
    def _(perturbed, tree, scale):
        return filter_vjp(lambda tree: swirl(tree, scale), tree)

    @with_vjp.def_bwd
    def _(pull, grad_out, perturbed, tree, scale):
        return pull(grad_out)[0]

    tangent = directions(tree, seed)
    out, slope = filter_jvp(swirl, (tree, 2.0), (tangent, None))
    assert_close(
        dense(out, filter_jvp(with_jvp, (tree, 2.0), (tangent, None))[1]), dense(out, slope)
    )
    (expected, _) = filter_vjp(swirl, tree, 2.0)[1](tangent)
    for fun in (with_jvp, with_vjp):
        for wrap in (lambda f: f, jax.jit):
            back = wrap(lambda arrays, fun=fun: _pull_back(fun, tree, arrays, tangent))(flat(tree))
            assert_close(back, flat(expected))


def _pull_back(fun, tree, arrays, cotangent):
    leaves, treedef = jax.tree_util.tree_flatten(tree)
    rest = iter(arrays)
    filled = treedef.unflatten([next(rest) if is_inexact(x) else x for x in leaves])
    return flat(filter_vjp(fun, filled, 2.0)[1](cotangent)[0])
