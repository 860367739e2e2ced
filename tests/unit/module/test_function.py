"""`StaticFunction`: a function that is structure, and trees that go through plain JAX with it."""

import copy
import functools
import inspect
import io
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentTypeError
from ecliptic.module import StaticFunction, plain_jax_problems, unwrap_functions, wrap_functions


def double(x):
    """Twice as much."""
    return x * 2


@jax.custom_jvp
def halve(x):
    return x / 2


halve.defjvp(lambda primals, tangents: (primals[0] / 2, tangents[0] / 2))


class Unhashable:
    __hash__ = None

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    def __eq__(self, other):
        return isinstance(other, Unhashable) and other.factor == self.factor


FUNCTIONS = {
    "function": double,
    "builtin": abs,
    "custom_jvp": halve,
    "custom_jvp of jax": jax.nn.relu,
    "jitted": jnp.tanh,
    "numpy ufunc": np.positive,
    "partial": functools.partial(jnp.add, 1.0),
    "partial with an array": functools.partial(jnp.add, np.ones(())),
    "unhashable": Unhashable(3),
}
EACH = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


class Model(ec.Module):
    net: ec.nn.MLP
    scale: jax.Array

    def __call__(self, x):
        return self.net(x) * self.scale


def make(activation=jax.nn.relu, seed=0):
    net = ec.nn.MLP(2, 2, 8, 1, activation, key=jax.random.key(seed))
    return Model(net, jnp.array(0.5))


@EACH
def test_it_has_no_leaves(function):
    assert jax.tree.leaves(StaticFunction(function)) == []


@EACH
def test_it_is_called_as_the_function_is(function):
    x = jnp.array([0.5])
    assert jnp.array_equal(StaticFunction(function)(x), function(x))


@EACH
def test_two_of_the_same_function_are_one_structure(function):
    one, other = StaticFunction(function), StaticFunction(function)
    assert one == other
    assert hash(one) == hash(other)
    assert jax.tree.structure(one) == jax.tree.structure(other)


def test_two_of_different_functions_differ():
    assert StaticFunction(double) != StaticFunction(abs)
    assert jax.tree.structure(StaticFunction(double)) != jax.tree.structure(StaticFunction(abs))
    assert StaticFunction(double) != double


def test_partials_are_equal_if_they_consist_of_the_same():
    def wrapped(*args, **kwargs):
        return StaticFunction(functools.partial(*args, **kwargs))

    assert wrapped(double, 1) == wrapped(double, 1)
    assert wrapped(double, a=np.ones(2)) == wrapped(double, a=np.ones(2))
    assert wrapped(functools.partial(double), 1) == wrapped(double, 1)
    assert wrapped(double, 1) != wrapped(double, 2)
    assert wrapped(double, 1) != wrapped(abs, 1)
    assert wrapped(double, a=1) != wrapped(double, b=1)


@EACH
def test_it_prints_as_the_function_does(function):
    assert repr(StaticFunction(function)) == ec.tree_pformat(function)
    assert ec.tree_pformat([StaticFunction(function)]) == ec.tree_pformat([function])


def test_it_looks_like_the_function():
    wrapped = StaticFunction(double)
    assert (wrapped.__name__, wrapped.__doc__) == ("double", "Twice as much.")
    assert inspect.signature(wrapped) == inspect.signature(double)
    assert wrapped.function is double
    assert StaticFunction(Unhashable(3)).factor == 3
    with pytest.raises(AttributeError):
        wrapped._no_such_attribute


@EACH
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_is_equal(function, duplicate):
    wrapped = [StaticFunction(function)]
    assert jax.tree.structure(duplicate(wrapped)) == jax.tree.structure(wrapped)


@pytest.mark.parametrize("thing", [1, "name", None])
def test_what_cannot_be_called_is_refused(thing):
    with pytest.raises(
        ArgumentTypeError, match=r"wraps a function; got .*, which cannot be called"
    ):
        StaticFunction(thing)


@pytest.mark.parametrize(
    "thing", [make(), StaticFunction(abs), jax.tree_util.Partial(abs), make().net.__call__]
)
def test_a_pytree_is_refused(thing):
    with pytest.raises(ArgumentTypeError, match="is a PyTree already: use it as it is"):
        StaticFunction(thing)


def test_a_model_goes_through_a_plain_scan():
    def step(carry, _):
        (model,), x = carry
        return ([model], model(x)), None

    model, x = make(), jnp.ones(2)
    with pytest.raises(TypeError):
        jax.lax.scan(step, ([model], x), length=200)
    (last,), y = jax.lax.scan(step, ([wrap_functions(model)], x), length=200)[0]
    (_, expected), _ = ec.filter_scan(step, ([model], x), length=200)
    assert jnp.array_equal(y, expected)
    assert ec.tree_equal(unwrap_functions(last), model)


@pytest.mark.parametrize(
    "activation", [jax.nn.relu, jnp.tanh, double, halve, functools.partial(jnp.add, 1.0)]
)
def test_a_model_goes_through_plain_transformations(activation):
    model, x = make(activation), jnp.ones(2)
    plain = wrap_functions(model)
    assert plain_jax_problems(plain) == {}

    def loss(model, x):
        return jnp.sum(model(x) ** 2)

    assert jnp.allclose(jax.jit(loss)(plain, x), loss(model, x), atol=1e-6)
    gradient, expected = jax.grad(loss)(plain, x), ec.filter_grad(loss)(model, x)
    assert jax.tree.structure(gradient) == jax.tree.structure(plain)
    for one, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected), strict=True):
        assert jnp.allclose(one, other, atol=1e-6)
    models = [make(activation, seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *xs: jnp.stack(xs), *map(wrap_functions, models))
    together = jax.vmap(loss, in_axes=(0, None))(stacked, x)
    assert jnp.allclose(together, jnp.stack([loss(m, x) for m in models]), atol=1e-6)


def test_an_equal_model_is_not_compiled_again():
    traces = []

    @jax.jit
    def apply(model, x):
        traces.append(1)
        return model(x)

    for seed in range(3):
        apply(wrap_functions(make(functools.partial(jnp.add, 1.0), seed)), jnp.ones(2))
    assert traces == [1]


def test_unwrapping_undoes_wrapping():
    tree = {"f": double, "x": jnp.ones(2), "s": "s", "n": None, "m": make()}
    assert ec.tree_equal(unwrap_functions(wrap_functions(tree)), tree, typematch=True)
    assert unwrap_functions(wrap_functions(tree))["f"] is double


def test_wrapping_twice_is_wrapping_once():
    plain = wrap_functions(make())
    assert ec.tree_equal(wrap_functions(plain), plain)


def test_types_stay_as_they_are():
    assert wrap_functions([jnp.float32, int]) == [jnp.float32, int]


def test_surgery_replaces_a_wrapped_function():
    plain = wrap_functions(make())
    changed = ec.tree_at(lambda m: m.net.activation, plain, StaticFunction(jnp.tanh))
    assert changed.net.activation == StaticFunction(jnp.tanh)
    changed = ec.tree_at(lambda m: m.scale, plain, jnp.array(2.0))
    assert changed.net.activation == plain.net.activation


def test_a_file_holds_the_same_with_and_without():
    file = io.BytesIO()
    ec.tree_serialise_leaves(file, make())
    file.seek(0)
    loaded = ec.tree_deserialise_leaves(file, wrap_functions(make(seed=1)))
    assert ec.tree_equal(loaded, wrap_functions(make()))


def test_layers_take_it():
    wrapped = StaticFunction(jax.nn.relu)
    x = jnp.array([-1.0, 1.0])
    assert ec.nn.Lambda(wrapped)(x).tolist() == [0, 1]
    assert ec.nn.Sequential([wrapped, StaticFunction(double)])(x).tolist() == [0, 2]
    layer = ec.nn.MLP(2, 2, 4, 1, wrapped, StaticFunction(jnp.tanh), key=jax.random.key(0))
    bare = ec.nn.MLP(2, 2, 4, 1, jax.nn.relu, jnp.tanh, key=jax.random.key(0))
    assert jnp.allclose(layer(x), bare(x), atol=1e-6)


def test_what_is_in_the_way_is_listed_by_path():
    tree = {"m": make(), "d": ec.nn.Dropout(0.5), "s": "name", "a": np.array(["x"]), "t": int}
    problems = plain_jax_problems(tree)
    assert list(problems) == [
        "['a']", "['d'].p", "['d'].inference",
        "['m'].net.activation", "['m'].net.final_activation", "['s']", "['t']",
    ]  # fmt: skip
    assert "an array of dtype <U1, which JAX does not have" in problems["['a']"]
    assert "0.5, a Python `float`: JAX traces it as an array" in problems["['d'].p"]
    assert "False, a Python `bool`" in problems["['d'].inference"]
    assert "a function: use `ecliptic.wrap_functions`" in problems["['m'].net.activation"]
    assert "'name', of type `str`: make it a static field" in problems["['s']"]
    assert "of type `type`: make it" in problems["['t']"]


def test_the_path_of_a_leaf_alone_is_a_point():
    assert list(plain_jax_problems("name")) == ["."]


def test_arrays_of_any_kind_are_no_problem():
    tree = [jnp.ones(2), np.ones(2), np.float32(1), jax.random.key(0), jnp.ones(1, jnp.bfloat16)]
    assert plain_jax_problems([*tree, None, ec.Static("s")]) == {}
