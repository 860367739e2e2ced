import functools

import jax
import jax.numpy as jnp
import pytest
from jax.test_util import check_grads

from ecliptic.control import maybe_set_p, select_if_vmap_p
from ecliptic.primitive import finalise_fn

TRUE, FALSE = jnp.array(True), jnp.array(False)
PREDS = jnp.array([True, False, True])
X, Y = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])


def selected(pred, x, y):
    return select_if_vmap_p.bind(pred, x, y)


def written(pred, array, value, index):
    return maybe_set_p.bind(pred, array, value, index)[0]


def reference(pred, array, value, index):
    return jnp.where(pred, array.at[index].set(value), array)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
@pytest.mark.parametrize("pred", [TRUE, FALSE])
def test_the_first_is_selected_outside_of_a_batch(pred, transform):
    assert transform(selected)(pred, X, Y).tolist() == X.tolist()


def test_a_batch_of_predicates_selects():
    out = jax.vmap(selected, in_axes=(0, None, None))(PREDS, X, Y)
    assert out.tolist() == [X.tolist(), Y.tolist(), X.tolist()]


@pytest.mark.parametrize("axes", [(None, 0, None), (None, None, 1), (None, 1, 0)])
def test_a_batch_of_values_alone_stays_unselected(axes):
    args = [jnp.arange(4.0).reshape(2, 2) if axis is not None else X for axis in axes[1:]]
    out = jax.vmap(selected, in_axes=axes)(FALSE, *args)
    expected = jnp.moveaxis(args[0], axes[1], 0) if axes[1] is not None else jnp.stack([X, X])
    assert out.tolist() == expected.tolist()


def test_the_selection_of_a_batch_reaches_the_gradient():
    def total(x, y):
        return jax.vmap(selected, in_axes=(0, None, None))(PREDS, x, y).sum()

    dx, dy = jax.grad(total, argnums=(0, 1))(X, Y)
    assert (dx.tolist(), dy.tolist()) == ([2.0, 2.0], [1.0, 1.0])


def test_the_gradient_of_each_element_of_a_batch_is_selected():
    grads = jax.vmap(
        jax.grad(lambda x, y, pred: selected(pred, x, y).sum(), argnums=(0, 1)),
        in_axes=(None, None, 0),
    )(X, Y, PREDS)
    assert grads[0][:, 0].tolist() == [1.0, 0.0, 1.0]
    assert grads[1][:, 0].tolist() == [0.0, 1.0, 0.0]


def test_the_derivatives_of_a_selection_are_right():
    check_grads(functools.partial(selected, TRUE), (X, Y), order=1, modes=["fwd", "rev"])
    check_grads(functools.partial(selected, TRUE, X), (Y,), order=1, modes=["fwd", "rev"])


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
@pytest.mark.parametrize("pred", [TRUE, FALSE])
@pytest.mark.parametrize("index", [0, 2, -1])
def test_a_part_is_written_if_the_predicate_is_true(pred, index, transform):
    args = pred, jnp.arange(3.0), jnp.array(9.0), jnp.array(index)
    assert transform(written)(*args).tolist() == reference(*args).tolist()


@pytest.mark.parametrize("axes", [(0, None, None, None), (None, 1, 0, None), (0, 0, None, 0)])
def test_a_batch_is_written_element_by_element(axes):
    array = jnp.arange(9.0).reshape(3, 3)
    batched = (PREDS, array, jnp.array([7.0, 8.0, 9.0]), jnp.array([0, 1, 2]))
    single = (TRUE, array[0], jnp.array(7.0), jnp.array(1))
    args = [b if axis is not None else s for b, s, axis in zip(batched, single, axes, strict=True)]
    outs = [jax.vmap(fn, in_axes=axes)(*args).tolist() for fn in (written, reference)]
    assert outs[0] == outs[1]


@pytest.mark.parametrize("pred", [TRUE, FALSE])
@pytest.mark.parametrize("argnums", [(0,), (0, 1)])
def test_the_derivatives_of_writing_are_right(pred, argnums):
    def of(fn):
        return lambda array, value: fn(pred, array, value, jnp.array(1)) ** 3

    primals = jnp.arange(6.0).reshape(3, 2), jnp.array([8.0, 9.0])
    for derivative in (jax.jacfwd, jax.jacrev):
        ours, right = (
            jax.jit(derivative(of(fn), argnums))(*primals) for fn in (written, reference)
        )
        assert [part.tolist() for part in ours] == [part.tolist() for part in right]


@pytest.mark.parametrize("index", [1, -1])
def test_the_gradient_of_what_is_written_comes_from_where_it_is(index):
    grad = jax.grad(lambda v: written(TRUE, jnp.zeros(3), v, jnp.array(index))[-1])(1.0)
    assert float(grad) == (1.0 if index == -1 else 0.0)


def test_both_become_operations_of_jax_when_finalised():
    def both(pred, x, y):
        return written(pred, selected(pred, x, y), y[0], jnp.array(0))

    program = str(jax.make_jaxpr(finalise_fn(both))(TRUE, X, Y))
    assert "select_if_vmap" not in program
    assert "maybe_set" not in program
    assert finalise_fn(both)(TRUE, X, Y).tolist() == [3.0, 2.0]
