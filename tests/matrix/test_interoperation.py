"""Trees of other libraries in Ecliptic's transformations, and Modules in other libraries.

Equinox is the real one here; nothing stands in for it.
"""

import chex
import diffrax
import equinox
import jax
import jax.numpy as jnp
import lineax
import numpy as np
import optax
import optimistix
import pytest
from flax import struct
from jax.experimental import sparse
from penzai import pz

import ecliptic as ec
from tests.support.mjx import hand_made_data


class Affine(ec.Module):
    """A model of Ecliptic: arrays, a function and a string."""

    weight: jax.Array
    bias: jax.Array
    activation: object = jnp.tanh
    name: str = ec.field(static=True, default="affine")

    def __call__(self, x):
        return self.activation(self.weight * x + self.bias)


class EquinoxAffine(equinox.Module):
    weight: jax.Array
    bias: jax.Array
    activation: object = jnp.tanh
    name: str = equinox.field(static=True, default="affine")

    def __call__(self, x):
        return self.activation(self.weight * x + self.bias)


@struct.dataclass
class FlaxAffine:
    weight: jax.Array
    bias: jax.Array
    activation: object = struct.field(pytree_node=False, default=jnp.tanh)

    def __call__(self, x):
        return self.activation(self.weight * x + self.bias)


@chex.dataclass
class ChexAffine:
    weight: jax.Array
    bias: jax.Array

    def __call__(self, x):
        return jnp.tanh(self.weight * x + self.bias)


@pz.pytree_dataclass
class PenzaiAffine(pz.Struct):
    weight: jax.Array
    bias: jax.Array

    def __call__(self, x):
        return jnp.tanh(self.weight * x + self.bias)


class Holder(ec.Module):
    """Holds a tree of another library, beside things of its own."""

    inner: object
    scale: jax.Array
    label: str = "a leaf"

    def __call__(self, x):
        return self.scale * self.inner(x)


class EquinoxHolder(equinox.Module):
    inner: object
    scale: jax.Array
    label: str = "a leaf"

    def __call__(self, x):
        return self.scale * self.inner(x)


@struct.dataclass
class FlaxHolder:
    inner: object
    scale: jax.Array

    def __call__(self, x):
        return self.scale * self.inner(x)


X = jnp.array([0.5, -1.0])
W, B, TWO = jnp.array([1.0, 2.0]), jnp.array([0.0, 0.5]), jnp.array(2.0)
FOREIGN = [EquinoxAffine, FlaxAffine, ChexAffine, PenzaiAffine]
MODELS = {
    **{cls.__name__: cls(weight=W, bias=B) for cls in [Affine, *FOREIGN]},
    **{f"Holder of {cls.__name__}": Holder(cls(weight=W, bias=B), TWO) for cls in FOREIGN},
    "EquinoxHolder of Affine": EquinoxHolder(Affine(W, B), TWO),
    "FlaxHolder of Affine": FlaxHolder(Affine(W, B), TWO),
    "EquinoxHolder of Holder": EquinoxHolder(Holder(EquinoxAffine(W, B), TWO), TWO),
}
EVERY_MODEL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@pytest.fixture(autouse=True)
def _ordinary_promotion():
    """What the other libraries are written for."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _loss(model, x):
    return jnp.sum(model(x) ** 2)


def _weight(model):
    while hasattr(model, "inner"):
        model = model.inner
    return model.weight


@EVERY_MODEL
def test_a_model_is_compiled_and_differentiated(model):
    value, gradient = ec.filter_jit(ec.filter_value_and_grad(_loss))(model, X)
    np.testing.assert_allclose(value, _loss(model, X), rtol=1e-6)
    step = 1e-2
    moved = ec.apply_updates(model, jax.tree.map(lambda g: -step * g, gradient))
    assert _loss(moved, X) < value
    assert _weight(gradient).shape == (2,)


@EVERY_MODEL
def test_a_model_is_mapped_over(model):
    many = jax.tree.map(lambda x: jnp.stack([x, 2 * x]) if ec.is_array(x) else x, model)
    out = ec.filter_vmap(lambda model, x: model(x), in_axes=(ec.if_array(0), None))(many, X)
    np.testing.assert_allclose(out[0], model(X), rtol=1e-6)


@EVERY_MODEL
def test_a_model_is_the_carry_of_a_loop(model):
    def step(model, x):
        return ec.apply_updates(model, ec.filter_grad(_loss)(model, x)), None

    last, _ = ec.filter_scan(step, model, jnp.stack([X, X]))
    expected, _ = step(step(model, X)[0], X)
    assert jax.tree.structure(last) == jax.tree.structure(model)
    np.testing.assert_allclose(_weight(last), _weight(expected), rtol=1e-5)


@EVERY_MODEL
def test_a_model_is_taken_apart_and_changed(model):
    arrays, rest = ec.partition(model, ec.is_array)
    assert ec.tree_equal(ec.combine(arrays, rest), model)
    changed = ec.tree_at(_weight, model, jnp.zeros(2))
    assert jnp.array_equal(_weight(changed), jnp.zeros(2))
    assert "f32[2]" in ec.tree_pformat(model)


@EVERY_MODEL
def test_a_model_is_written_and_read(model, tmp_path):
    ec.tree_serialise_leaves(tmp_path / "model.eqx", model)
    skeleton = jax.tree.map(lambda x: 0 * x if ec.is_array(x) else x, model)
    assert ec.tree_equal(ec.tree_deserialise_leaves(tmp_path / "model.eqx", skeleton), model)


# The other way round: Equinox's functions on Ecliptic's Modules.


def test_equinox_is_the_real_one():
    assert not issubclass(ec.Module, equinox.Module)
    assert issubclass(diffrax.ODETerm, equinox.Module)


def test_equinox_transforms_a_module():
    model = Holder(Affine(W, B), TWO)
    gradient = equinox.filter_jit(equinox.filter_grad(_loss))(model, X)
    expected = ec.filter_grad(_loss)(model, X)
    assert isinstance(gradient, Holder)
    np.testing.assert_allclose(gradient.inner.weight, expected.inner.weight, rtol=1e-6)


def test_equinox_changes_prints_and_compares_a_module():
    model = Affine(W, B)
    changed = equinox.tree_at(lambda m: m.bias, model, jnp.ones(2))
    assert isinstance(changed, Affine)
    assert not equinox.tree_equal(model, changed)
    assert equinox.tree_pformat(model).startswith("Affine(")


def test_a_layer_of_ecliptic_is_in_a_sequential_of_equinox_and_the_other_way_round():
    ours = ec.nn.Linear(2, 2, key=jax.random.key(0))
    theirs = equinox.nn.Linear(2, 2, key=jax.random.key(0))
    expected = ours(ours(X))
    np.testing.assert_allclose(equinox.nn.Sequential([ours, theirs])(X), expected, rtol=1e-6)
    np.testing.assert_allclose(ec.nn.Sequential([theirs, ours])(X), expected, rtol=1e-6)


def test_optax_trains_a_module():
    model = Holder(EquinoxAffine(W, B), TWO)
    optimiser = optax.adam(0.1)
    state = optimiser.init(ec.filter(model, ec.is_inexact_array))
    gradient = ec.filter_grad(_loss)(model, X)
    updates, _ = optimiser.update(gradient, state, ec.filter(model, ec.is_inexact_array))
    assert _loss(ec.apply_updates(model, updates), X) < _loss(model, X)


class Field(ec.Module):
    """A right-hand side, for Diffrax: y' = -rate * y."""

    rate: jax.Array
    describe: object = str

    def __call__(self, t, y, args):
        return -self.rate * y


def test_diffrax_integrates_a_module_and_differentiates_through_it():
    def final(field):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Euler(), t0=0.0, t1=1.0, dt0=0.25, y0=jnp.array(1.0)
        )
        return solution.ys[0]

    value, gradient = ec.filter_jit(ec.filter_value_and_grad(final))(Field(jnp.array(0.5)))
    np.testing.assert_allclose(value, (1 - 0.5 / 4) ** 4, rtol=1e-6)
    np.testing.assert_allclose(gradient.rate, -((1 - 0.5 / 4) ** 3), rtol=1e-5)


def test_optimistix_finds_a_root_of_a_module():
    def residual(y, model):
        return model(y) - 0.5

    solver = optimistix.Newton(rtol=1e-5, atol=1e-5)
    found = optimistix.root_find(
        residual, solver, jnp.array([0.1, 0.1]), args=Affine(W, B), max_steps=16
    )
    np.testing.assert_allclose(Affine(W, B)(found.value), [0.5, 0.5], rtol=1e-4)


def test_lineax_solves_with_a_module_as_operator():
    operator = lineax.FunctionLinearOperator(
        Affine(W, jnp.zeros(2), activation=lambda x: x), jax.ShapeDtypeStruct((2,), jnp.float32)
    )
    solve = ec.filter_jit(lambda operator, b: lineax.linear_solve(operator, b).value)
    np.testing.assert_allclose(solve(operator, X), X / W, rtol=1e-6)


# Types that have rules of their own.


def test_a_sparse_array_in_a_holder():
    dense = jnp.arange(12.0).reshape(2, 3, 2)
    holder = Holder(sparse.BCOO.fromdense(dense, n_batch=1), jnp.array([1.0, 2.0]))
    out = ec.filter_jit(ec.filter_vmap(lambda h: h.scale * (h.inner @ X)))(holder)
    np.testing.assert_allclose(out, (dense @ X) * jnp.array([[1.0], [2.0]]), rtol=1e-6)


def test_a_state_of_mjx_in_a_holder():
    def step(holder):
        data = holder.inner
        return ec.tree_at(lambda h: h.inner, holder, data.replace(time=data.time + holder.scale))

    holder = Holder(hand_made_data(2), jnp.array([1.0, 2.0]))
    moved = ec.filter_jit(ec.filter_vmap(step))(holder)
    assert type(moved.inner._impl) is type(holder.inner._impl)
    np.testing.assert_allclose(moved.inner.time - holder.inner.time, [1.0, 2.0])
