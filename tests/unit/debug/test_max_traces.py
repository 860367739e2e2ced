"""`assert_max_traces`: it counts traces, names what changed, and refuses the wrong order."""

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.debug import assert_max_traces, get_num_traces
from ecliptic.errors import ArgumentError, ArgumentTypeError, DebugError

X = jnp.ones(2)


@pytest.mark.parametrize("jit", [jax.jit, ec.filter_jit])
def test_traces_are_counted_and_not_calls(jit):
    @jit
    @assert_max_traces(max_traces=2)
    def f(x):
        return 2 * x

    assert [get_num_traces(f) for x in (X, X, X, jnp.ones(3)) if f(x) is not None] == [1, 1, 1, 2]
    with pytest.raises(DebugError, match=r"`x` \(shape\): was \(2,\), is \(4,\)") as caught:
        f(jnp.ones(4))
    assert "can only be traced 2 times. However, it has now been traced 3 times" in str(
        caught.value
    )
    assert get_num_traces(f) == 3


@pytest.mark.parametrize("jit", [jax.jit, ec.filter_jit, lambda f: ec.filter_vmap(jax.jit(f))])
def test_the_wrong_order_is_refused(jit):
    with pytest.raises(DebugError, match="double', which is compiled already.*Exchange"):

        @assert_max_traces(max_traces=1)
        @jit
        def double(x):
            return 2 * x


def test_calls_outside_of_any_trace_count_and_are_explained():
    f = assert_max_traces(lambda x: x, max_traces=1)
    assert f(3) == 3
    with pytest.raises(DebugError, match="outside of any trace, where each call counts"):
        f(3)


def test_a_trace_for_the_same_arguments_is_explained():
    @ec.filter_jit
    @assert_max_traces(max_traces=1)
    def f(x):
        return x

    f(X)
    jax.clear_caches()
    with pytest.raises(DebugError, match="arguments are those of an earlier trace"):
        f(X)


def test_no_limit_counts_only():
    f = ec.filter_jit(assert_max_traces(lambda x: x, max_traces=None))
    for size in range(4):
        f(jnp.ones(size))
    assert get_num_traces(f) == 4


def test_it_is_a_tree_with_the_leaves_of_the_function():
    class Model(ec.Module):
        weight: jax.Array

        def __call__(self, x):
            """Multiplies."""
            return self.weight * x

    checked = assert_max_traces(Model(X), max_traces=1)
    assert [leaf is X for leaf in jax.tree.leaves(checked)] == [True]
    doubled = jax.tree.map(lambda w: 2 * w, checked)
    step = ec.filter_jit(lambda model, x: model(x))
    assert step(checked, X).tolist() == [1.0, 1.0]
    assert step(doubled, X).tolist() == [2.0, 2.0]
    assert get_num_traces(checked) == get_num_traces(doubled) == 1


def test_a_method_is_counted_through_an_instance():
    class Model(ec.Module):
        weight: jax.Array

        @ec.filter_jit
        @assert_max_traces(max_traces=1)
        def scale(self, x):
            return self.weight * x

    Model(X).scale(X)
    Model(2 * X).scale(X)
    assert get_num_traces(Model.scale) == get_num_traces(Model(X).scale) == 1


def test_it_looks_like_the_function():
    @assert_max_traces(max_traces=1)
    def named(x):
        """Says what it does."""

    assert (named.__name__, named.__doc__) == ("named", "Says what it does.")


def test_what_is_no_such_function_is_refused():
    with pytest.raises(ArgumentError, match="does not appear to be wrapped with `ecliptic.debug"):
        get_num_traces(jax.jit(lambda x: x))
    with pytest.raises(ArgumentTypeError, match="`assert_max_traces` needs a callable"):
        assert_max_traces(3, max_traces=1)
