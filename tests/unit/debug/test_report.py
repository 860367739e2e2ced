"""`trace_report`: counts and times, by function."""

import jax
import jax.numpy as jnp

import ecliptic as ec
from ecliptic.debug import trace_report


def _of(name):
    (count,) = [count for count in trace_report() if count.function == name]
    return count


def test_traces_are_counted_and_their_time_is_split():
    @ec.filter_jit
    def counted_once_for_each_shape(x):
        return jnp.sin(x)

    for size in (2, 3, 2, 3, 4):
        counted_once_for_each_shape(jnp.ones(size))
    count = _of("counted_once_for_each_shape")
    assert (count.functions, count.traces, count.compiles) == (1, 3, 3)
    assert min(count.trace_seconds, count.lower_seconds, count.compile_seconds) > 0
    assert count.seconds == count.trace_seconds + count.lower_seconds + count.compile_seconds
    assert count.place.startswith(f"{__file__}:")


def test_functions_with_the_same_code_are_one_line():
    def make(i):
        def made_by_a_factory(x):
            return x + i

        return made_by_a_factory

    for i in range(3):
        ec.filter_jit(make(i))(jnp.ones(2))
    count = _of("made_by_a_factory")
    assert (count.functions, count.traces) == (3, 3)


def test_what_is_traced_inside_is_compiled_with_the_outer():
    @ec.filter_jit
    def inside_of_another(x):
        return x * 2

    @ec.filter_jit
    def around_another(x):
        return inside_of_another(x) + 1

    around_another(jnp.ones(2))
    assert (_of("inside_of_another").traces, _of("inside_of_another").compiles) == (1, 0)
    assert (_of("around_another").traces, _of("around_another").compiles) == (1, 1)


def test_ahead_of_time_counts_too():
    @ec.filter_jit
    def ahead_of_time(x):
        return x * 2

    ahead_of_time.lower(jnp.ones(2)).compile()
    assert (_of("ahead_of_time").traces, _of("ahead_of_time").compiles) == (1, 1)


def test_a_failing_trace_is_counted():
    @ec.filter_jit
    def fails_in_its_trace(x):
        raise ValueError("no")

    for _ in range(2):
        try:
            fails_in_its_trace(jnp.ones(2))
        except ValueError:
            pass
    assert (_of("fails_in_its_trace").traces, _of("fails_in_its_trace").compiles) == (2, 0)


def test_it_prints_as_a_table():
    @ec.filter_jit
    def in_the_table(x):
        return x

    in_the_table(jnp.ones(2))
    report = trace_report()
    lines = str(report).splitlines()
    assert lines[0].split() == ["traces", "compiles", "trace", "lower", "compile", "function"]
    assert len(lines) == len(report) + 1
    assert any(line.split()[:2] == ["1", "1"] and "in_the_table" in line for line in lines)
    assert [c.seconds for c in report] == sorted((c.seconds for c in report), reverse=True)


def test_a_compiled_program_of_jax_is_not_counted():
    @ec.filter_jit
    def same_name(x):
        return x

    same_name(jnp.ones(2))

    def same_name(x):
        return x * 3

    jax.jit(same_name)(jnp.ones(2))
    assert _of("same_name").compiles == 1
