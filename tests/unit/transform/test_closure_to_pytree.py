import functools
import inspect

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.transform import closure_to_pytree
from ecliptic.tree import tree_equal


def line(slope, name="line"):
    def inner(x):
        return slope * x

    return inner


def twice(slope):
    once = line(slope)

    def outer(x, shift=slope):
        return once(once(x)) + shift

    return outer


def scaled(slope):
    def inner(x, *, by=slope):
        return by * x

    return inner


def power(base):
    def inner(n):
        return 1 if n == 0 else base * inner(n - 1)

    return inner


def mutual(base):
    def even(n):
        return 0 if n == 0 else base + odd(n - 1)

    def odd(n):
        return even(n - 1)

    return even


MAKERS = [line, twice, scaled, power]


@pytest.mark.parametrize("make", MAKERS)
def test_it_is_called_like_the_function(make):
    fn = make(jnp.array(3))
    assert closure_to_pytree(fn)(4) == fn(4)


@pytest.mark.parametrize("make", MAKERS)
def test_captured_arrays_are_the_only_leaves(make):
    array = jnp.array(3)
    leaves = jax.tree.leaves(closure_to_pytree(make(array)))
    assert leaves
    assert all(leaf is array for leaf in leaves)


@pytest.mark.parametrize("make", MAKERS)
def test_functions_of_one_def_have_one_structure(make):
    structures = {jax.tree.structure(closure_to_pytree(make(jnp.array(i)))) for i in range(2)}
    assert len(structures) == 1


@pytest.mark.parametrize("make", MAKERS)
def test_other_leaves_make_another_function(make):
    doubled = jax.tree.map(lambda x: 2 * x, closure_to_pytree(make(jnp.array(3))))
    assert doubled(4) == make(jnp.array(6))(4)


def test_functions_that_call_each_other_are_converted():
    closed = closure_to_pytree(mutual(jnp.array(2)))
    assert int(closed(4)) == 4
    assert int(jax.tree.map(lambda x: x + 1, closed)(4)) == 6


def test_different_functions_differ_in_structure():
    structures = {jax.tree.structure(closure_to_pytree(make(1))) for make in MAKERS}
    assert len(structures) == len(MAKERS)


def test_the_same_code_with_other_global_names_is_another_structure():
    spaces = [{"scale": 1}, {"scale": 2}]
    for space in spaces:
        exec("def fn(x): return scale * x", space)
    one, other = (closure_to_pytree(space["fn"]) for space in spaces)
    assert jax.tree.structure(one) != jax.tree.structure(other)


def test_functions_in_a_tree_are_converted_and_other_leaves_are_left():
    partial = functools.partial(line, 3)
    tree = {"fn": line(2), "array": jnp.ones(2), "tanh": jnp.tanh, "partial": partial, "n": None}
    closed = closure_to_pytree(tree)
    assert closed["fn"](3) == 6
    assert all(closed[name] is tree[name] for name in tree if name != "fn")


def test_functions_inside_what_is_captured_are_converted():
    held = {"fns": [line(jnp.array(2))]}
    closed = closure_to_pytree(lambda x: held["fns"][0](x))
    assert [int(leaf) for leaf in jax.tree.leaves(closed)] == [2]
    assert closed(3) == 6


def test_a_variable_without_a_value_stays_without_one():
    def early():
        return late

    closed = closure_to_pytree(early)
    with pytest.raises(NameError, match="late"):
        closed()
    late = 3
    assert closure_to_pytree(early)() == late


def test_a_compiled_program_takes_other_closures_without_a_new_trace():
    traces = []

    @jax.jit
    def call(fn, x):
        traces.append(None)
        return fn(x)

    results = [int(call(closure_to_pytree(line(jnp.array(i))), jnp.array(2))) for i in range(3)]
    assert (results, len(traces)) == ([0, 2, 4], 1)


def test_it_can_be_mapped_and_differentiated_without_filtering():
    closed = closure_to_pytree(line(jnp.array([1.0, 2.0])))
    assert jax.vmap(lambda fn: fn(3.0))(closed).tolist() == [3.0, 6.0]
    grads = jax.grad(lambda fn: fn(3.0).sum())(closed)
    assert tree_equal(grads.captured, (jnp.array([3.0, 3.0]),))


def test_it_has_the_name_and_the_signature_of_the_function():
    closed = closure_to_pytree(twice(1))
    assert closed.__name__ == "outer"
    assert str(inspect.signature(closed)) == "(x, shift=1)"


def test_a_model_that_holds_functions_is_converted_inside():
    class Layer(ec.Module):
        activation: object

    layer = closure_to_pytree(Layer(line(jnp.array(2.0))))
    assert ec.filter_jit(lambda layer, x: layer.activation(x))(layer, jnp.array(3.0)) == 6.0


def nested(slope):
    once = line(slope)
    return lambda x: once(once(x))


@pytest.mark.parametrize("make", [line, nested])
def test_array_leaves_and_results_are_those_of_equinox(make):
    fn = make(jnp.array(3))
    ours, theirs = closure_to_pytree(fn), eqxi.closure_to_pytree(fn)
    arrays = ec.filter(jax.tree.leaves(theirs), ec.is_array)
    assert tree_equal(jax.tree.leaves(ours), [leaf for leaf in arrays if leaf is not None])
    assert ours(2) == theirs(2)
