"""Why `filter_jit` traced again: each cause is found, by path, with a way out."""

import functools
import gc
import itertools
import os
import subprocess
import sys
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import ecliptic as ec
from ecliptic.debug import Change, explain_retraces

X = jnp.ones(3)


class Model(ec.Module):
    weight: jax.Array
    n: int = ec.field(static=True, default=1)
    activation: object = None

    def __call__(self, x):
        return self.weight * x


_line = itertools.count(1)


def _jitted():
    """A compiled function whose code no other has."""

    def f(model, *, flag=None):
        return jnp.zeros(())

    f.__code__ = f.__code__.replace(co_firstlineno=next(_line))
    return ec.filter_jit(f)


def make_function(i):
    return lambda x: x + i


MESH = jax.make_mesh((4,), ("a",), axis_types=(AxisType.Explicit,))


def _on_mesh(*spec):
    return jax.device_put(jnp.ones(4), NamedSharding(MESH, PartitionSpec(*spec)))


# What is passed first, what then, and the change that is found.
CAUSES = {
    "shape": ((X,), (jnp.ones(5),), ("model", "shape", "(3,)", "(5,)")),
    "dtype": (
        ({"a": X},),
        ({"a": X.astype(jnp.bfloat16)},),
        ("model['a']", "dtype", "float32", "bfloat16"),
    ),
    "weak type": (
        (jnp.asarray(1.0),),
        (jnp.asarray(1.0, jnp.float32),),
        ("model", "weak type", "float32, weak", "float32, not weak"),
    ),
    "static leaf": (([X, 3],), ([X, 4],), ("model[1]", "static", "3", "4")),
    "static leaf of another type": (([X, 3],), ([X, "a"],), ("model[1]", "static", "3", "'a'")),
    "signed zero": ((0.0,), (-0.0,), ("model", "static", "0.0", "-0.0")),
    "static field": (
        (Model(X, n=1),),
        (Model(X, n=2),),
        ("model.n", "static field", "1", "2"),
    ),
    "function made anew": (
        (Model(X, activation=make_function(1)),),
        (Model(X, activation=make_function(2)),),
        ("model.activation", "new function", "make_function", "another function with the same"),
    ),
    "another function": (
        (jnp.sin,),
        (jnp.cos,),
        ("model", "static", "sin", "cos"),
    ),
    "array or not": (
        ([X, 1.0],),
        ([X, jnp.ones(())],),
        ("model[1]", "array or not", "1.0", "an array of shape () and dtype float32"),
    ),
    "longer list": (
        ([X, X],),
        ([X, X, X],),
        ("model", "structure", "a list of 2", "a list of 3"),
    ),
    "another key": (
        ({"a": X},),
        ({"b": X},),
        ("model", "structure", "with the entries [\"['a']\"]", "with the entries [\"['b']\"]"),
    ),
    "another node": (([X],), ((X,),), ("model", "structure", "[f32[3]]", "(f32[3],)")),
    "leaf and node": ((X,), (None,), ("model", "structure", "an array of shape (3,)", "None")),
    "sharding": (
        (_on_mesh("a"),),
        (_on_mesh(None),),
        ("model", "sharding", "'a'", "None"),
    ),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_is_named_by_path(cause):
    before, after, (path, kind, was, now) = CAUSES[cause]
    f = _jitted()
    with explain_retraces(None) as report:
        f(*before)
        f(*before)
        f(*after)
    assert len(report) == 1
    (change,) = report[0].changes
    assert (change.path, change.kind) == (path, kind)
    assert was in change.before
    assert now in change.after
    assert change.advice
    assert (report[0].number, report[0].nearest) == (2, 1)


def test_passing_by_keyword_is_named():
    f = _jitted()
    with explain_retraces(None) as report:
        f(X)
        f(model=X)
    (change,) = report[0].changes
    assert change == Change(
        "model", "calling", "passed by position", "passed by keyword", change.advice
    )


def test_an_argument_that_was_not_given_is_named():
    f = _jitted()
    with explain_retraces(None) as report:
        f(X)
        f(X, flag=True)
    (change,) = report[0].changes
    assert (change.path, change.kind, change.after) == ("flag", "structure", "given by keyword")


def test_options_are_named():
    def f(x):
        return x + 1

    with explain_retraces(None) as report:
        ec.filter_jit(f)(X)
        ec.filter_jit(f, donate="all")(X + 0)
    (change,) = report[0].changes
    assert change.kind == "option"
    assert (change.path, change.before) == ("filter_jit(donation=...)", "'none'")


def test_an_option_of_jax_is_named():
    f = _jitted()
    with explain_retraces(None) as report:
        f(X)
        with jax.default_matmul_precision("highest"):
            f(X)
    (change,) = report[0].changes
    assert (change.path, change.kind) == ("jax_default_matmul_precision", "configuration")


def test_a_mesh_is_named():
    f = _jitted()
    with explain_retraces(None) as report:
        f(X)
        with jax.set_mesh(MESH):
            f(X)
    assert [change.kind for change in report[0].changes] == ["configuration"]


def test_a_function_that_is_compiled_anew_in_a_loop_is_named():
    with explain_retraces(None) as report:
        for i in range(3):
            ec.filter_jit(make_function(i))(X)
    assert [[c.kind for c in retrace.changes] for retrace in report] == [["wrapped anew"]] * 2
    assert "function object number 3" in report[1].changes[0].after


def test_another_function_of_the_same_code_is_compared_too():
    one, other = [ec.filter_jit(lambda x, i=i: x + i) for i in range(2)]
    with explain_retraces(None) as report:
        one(X)
        other(jnp.ones(5))
    assert [change.kind for change in report[0].changes] == ["wrapped anew", "shape"]


def _move(x, device):
    return jax.device_put(x, jax.devices()[device])


def test_another_device_is_named_though_nothing_is_traced():
    f = ec.filter_jit(lambda model: jax.tree.leaves(model))
    with explain_retraces(None) as report:
        f({"a": _move(X, 0), "b": 1})
        for _ in range(6):
            f({"a": _move(X, 1), "b": 1})
    (retrace,) = report
    (change,) = retrace.changes
    assert not retrace.traced
    assert (change.path, change.kind) == ("model['a']", "sharding")
    assert ("0" in change.before, "1" in change.after) == (True, True)
    assert "is compiled again, without a trace" in str(retrace)


def test_another_device_is_named_for_a_program_from_before():
    f = ec.filter_jit(lambda model: jax.tree.leaves(model))
    for _ in range(6):
        f(_move(X, 0))
    with explain_retraces(None) as report:
        f(_move(X, 0))
        f(_move(X, 1))
    assert [(c.path, c.kind) for r in report for c in r.changes] == [("arguments", "sharding")]
    for _ in range(6):
        f(_move(X, 2))
    assert len(report) == 1


def test_another_device_of_a_callable_tree_is_named():
    class Callable(Model):
        def __call__(self, x):
            return self.weight * x

    with explain_retraces(None) as report:
        for device in (0, 1):
            ec.filter_jit(Callable(_move(X, device)))(_move(X, device))
    assert [change.path for change in report[0].changes] == ["Callable.weight", "x"]


def test_donated_arrays_are_no_hindrance():
    f = ec.filter_jit(lambda x: x + 1, donate="all")
    with explain_retraces(None) as report:
        for device in (0, 1):
            f(_move(X + 0, device))
    assert [change.path for change in report[0].changes] == ["x"]


def test_cleared_caches_are_named():
    f = _jitted()
    with explain_retraces(None) as report:
        f(X)
        jax.clear_caches()
        f(X)
    assert [change.kind for change in report[0].changes] == ["forgotten"]


def test_the_nearest_earlier_trace_is_the_one_compared_with():
    f = _jitted()
    with explain_retraces(None) as report:
        f([X, 1, 2])
        f([jnp.ones(5), 3, 4])
        f([X, 1, 3])
    assert [(r.number, r.nearest) for r in report] == [(2, 1), (3, 1)]
    assert [change.path for change in report[1].changes] == ["model[2]"]


def test_traces_from_before_are_compared_with():
    f = _jitted()
    f(X)
    with explain_retraces(None) as report:
        f(jnp.ones(5))
    f(jnp.ones(6))
    assert len(report) == 1


def test_a_first_trace_is_no_retrace():
    with explain_retraces(None) as report:
        ec.filter_jit(functools.partial(lambda x, y: x, X))(X)
    assert len(report) == 0
    assert str(report) == "Nothing was traced again."


def test_a_leaf_of_a_callable_tree_is_named():
    class Callable(Model):
        def __call__(self, x):
            return self.weight * x

    f = ec.filter_jit(Callable(X))
    with explain_retraces(None) as report:
        f(X)
        ec.filter_jit(Callable(jnp.ones(1)))(X)
    (change,) = report[0].changes
    assert (change.path, change.kind) == ("Callable.weight", "shape")


def test_a_loop_outside_of_a_trace_names_the_function_made_anew():
    with explain_retraces(None) as report:
        for _ in range(2):
            ec.filter_scan(lambda carry, x: (carry + x, None), jnp.zeros(()), X)
    (change,) = report[0].changes
    assert change.kind == "wrapped anew"


def test_it_is_printed_with_a_way_out(capsys):
    f = _jitted()
    with explain_retraces() as report:
        f([X, 1])
        f([X, 2])
    out = capsys.readouterr().out
    assert out == f"{report[0]}\n" == f"{report}\n"
    assert "`f` (" in out
    assert "is traced, for the 2nd time" in out
    assert "since trace 1, `model[1]` (static): was 1, is 2. What is no array" in out


def test_nothing_is_remembered_of_a_function_that_is_gone():
    class Tag:
        pass

    tag = Tag()
    f = ec.filter_jit(lambda x, tag: x)
    f(X, tag)
    alive = weakref.ref(tag)
    del f, tag
    gc.collect()
    assert alive() is None


def test_a_node_that_cannot_hold_descriptions_is_told_by_number():
    class Strict:
        def __init__(self, value, n):
            if not isinstance(value, jax.Array | np.ndarray) or n > 9:
                raise TypeError("no array")
            self.value, self.n = value, n

    jax.tree_util.register_pytree_node(
        Strict, lambda s: ((s.value,), s.n), lambda n, children: Strict(*children, n)
    )
    f = _jitted()
    with explain_retraces(None) as report:
        f(Strict(X, 1))
        f(Strict(jnp.ones(5), 1))
        f(Strict(jnp.ones(5), 2))
    assert [c.path for r in report for c in r.changes] == ["leaf 0 of the arguments", "arguments"]


def test_the_environment_switches_it_on():
    code = (
        "import ecliptic as ec, ecliptic.debug\n"
        "f = ec.filter_jit(lambda x, n: n)\n"
        "import numpy as np\n"
        "for n in (1, 2): f(np.ones(2), n)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "ECLIPTIC_EXPLAIN_RETRACES": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "`n` (static): was 1, is 2" in run.stderr
