"""`Partial`."""

import functools

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentTypeError


def collect(*args, **kwargs):
    return args, kwargs


def test_stored_arguments_come_first_and_keywords_of_the_call_win():
    p = ec.Partial(collect, 1, 2, k=3, j=4)
    assert p(5, k=6) == ((1, 2, 5), {"k": 6, "j": 4})
    assert p(5, k=6) == functools.partial(collect, 1, 2, k=3, j=4)(5, k=6)


def test_calling_does_not_change_the_stored_keywords():
    p = ec.Partial(collect, k=3)
    p(k=4)
    assert p() == ((), {"k": 3})


def test_any_keyword_can_be_stored_and_given():
    p = ec.Partial(collect, self=1, func=2)
    assert p(args=3, keywords=4) == ((), {"self": 1, "func": 2, "args": 3, "keywords": 4})


def test_function_and_arguments_are_children():
    p = ec.Partial(collect, 1, k=2)
    pairs = jax.tree_util.tree_leaves_with_path(p)
    assert [(jax.tree_util.keystr(path), leaf) for path, leaf in pairs] == [
        (".func", collect), (".args[0]", 1), (".keywords['k']", 2),
    ]  # fmt: skip
    assert (p.func, p.args, p.keywords) == (collect, (1,), {"k": 2})


def test_arrays_among_the_arguments_are_differentiated():
    def f(w, x, b):
        return w * x + b

    p = ec.Partial(f, jnp.array(2.0), b=jnp.array(1.0))
    arrays, static = ec.partition(p, ec.is_array)
    grads = jax.grad(lambda a: ec.combine(a, static)(3.0))(arrays)
    assert (grads.args[0], grads.keywords["b"]) == (3.0, 1.0)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(ArgumentTypeError, match="callable as its first argument; got 3 of .*`int`"):
        ec.Partial(3)


def test_a_bound_method_can_be_stored():
    class M(ec.Module):
        w: int

        def f(self, x):
            return self.w * x

    p = ec.Partial(M(2).f, 3)
    assert p() == 6
    assert jax.tree.leaves(p) == [2, 3]


def test_two_partials_of_the_same_arguments_are_equal():
    assert ec.Partial(collect, 1) == ec.Partial(collect, 1)
    assert ec.Partial(collect, 1) != ec.Partial(collect, 2)
