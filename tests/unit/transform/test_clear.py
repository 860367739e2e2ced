"""`clear_caches`: what is dropped, and that nothing is left behind."""

import gc
import linecache
import subprocess
import sys
import weakref

import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError
from ecliptic.transform import cached_filter_eval_shape, clear_caches

X = jnp.ones(2)


@pytest.fixture
def traced():
    """A function that tells of its traces, and the list of these."""
    traces = []

    def f(x, tag=None):
        traces.append(tag)
        return x + 1

    return f, traces


@pytest.mark.parametrize("which", ["wrapper", "function", "all"])
def test_a_function_is_traced_again(traced, which):
    f, traces = traced
    jitted = ec.filter_jit(f)
    # As often as it takes for each way that a call can take.
    for _ in range(6):
        jitted(X)
    clear_caches(*{"wrapper": [jitted], "function": [f], "all": []}[which])
    for _ in range(6):
        jitted(X)
    assert len(traces) == 2


def test_others_stay(traced):
    f, traces = traced
    kept = ec.filter_jit(f)
    kept(X)
    other = ec.filter_jit(lambda x: x)
    other(X)
    clear_caches(other)
    kept(X)
    assert len(traces) == 1


@pytest.mark.parametrize("everything", [True, False])
def test_a_loop_outside_of_a_trace_is_traced_again(everything):
    traces = []

    def step(carry, x):
        traces.append(None)
        return carry + x, None

    def run():
        traces.clear()
        ec.filter_scan(step, jnp.zeros(()), X)
        return len(traces)

    first = run()
    assert run() == 0
    clear_caches(*([] if everything else [step]))
    assert run() == first > 0


def test_shapes_that_are_remembered_are_forgotten(traced):
    f, traces = traced
    for _ in range(2):
        cached_filter_eval_shape(f, X)
    clear_caches()
    cached_filter_eval_shape(f, X)
    assert len(traces) == 2


def test_static_values_are_let_go(traced):
    class Tag:
        pass

    f, traces = traced
    jitted, tag = ec.filter_jit(f), Tag()
    for _ in range(6):
        jitted(X, tag)
    alive = weakref.ref(tag)
    traces.clear()
    del tag
    clear_caches(jitted)
    gc.collect()
    assert alive() is None


def test_the_source_of_a_collector_goes_with_it(traced):
    f, _ = traced
    jitted = ec.filter_jit(f)
    before = set(linecache.cache)
    for _ in range(6):
        jitted(X)
    assert set(linecache.cache) - before
    clear_caches(jitted)
    gc.collect()
    assert not set(linecache.cache) - before


def test_what_was_never_compiled_is_refused():
    with pytest.raises(ArgumentError, match="it was given to no `filter_jit`"):
        clear_caches(lambda x: x)


_MANY = """
import gc
import jax, jax.numpy as jnp
import ecliptic as ec
from ecliptic.transform import clear_caches, lineages

def make(i):
    return lambda x: (x + i, 'text')

def many(count):
    for i in range(count):
        f = ec.filter_jit(make(i))
        f(x)
        clear_caches(f)
    clear_caches()
    gc.collect()
    return len(gc.get_objects())

x = jnp.ones(2)
many(8)
before = many(8)
after = many(60)
print(after - before, len(lineages()))
held = [ec.filter_jit(make(i)) for i in range(8)]
for f in held:
    f(x)
clear_caches()
jax.clear_caches()
for f in held:
    f(x)
"""


def test_many_functions_leave_no_growth_and_no_crash_at_exit():
    run = subprocess.run([sys.executable, "-c", _MANY], capture_output=True, text=True, check=True)
    grown, lineages = map(int, run.stdout.split())
    # (52 more functions, of which each would leave dozens of objects.)
    assert grown < 52
    assert lineages == 1
    assert run.stderr == ""
