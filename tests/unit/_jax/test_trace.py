"""Which trace a tracer belongs to: what the attributes of tracers mean."""

import inspect

import jax
import jax.numpy as jnp
import pytest

from ecliptic import _jax
from ecliptic._jax._trace import (
    current_trace,
    is_mapped_by,
    is_of_jit,
    is_part_of,
    trace_tag,
)
from tests.support.vmappables import Rows


def test_the_values_of_one_vmap_have_its_tag():
    tags = []
    jax.vmap(lambda x, y: tags.extend(map(trace_tag, (x, y, x + y))))(jnp.ones(2), jnp.ones(2))
    assert tags[0] is not None
    assert all(tag is tags[0] for tag in tags)


def test_an_array_has_no_tag():
    assert trace_tag(jnp.ones(2)) is None


def test_a_value_is_mapped_by_the_vmap_that_made_it():
    found = []

    def outer(x):
        def inner(y):
            tag = trace_tag(y)
            found.append([is_mapped_by(v, tag) for v in (y, x + y, x, x * 2, jnp.ones(2))])
            return y

        return jax.vmap(inner)(jnp.ones(3))

    jax.vmap(outer)(jnp.ones(2))
    assert found == [[True, True, False, False, False]]


def test_jax_jit_is_on_the_stack_while_it_traces():
    def of_jit(x):
        return [is_of_jit(info.frame.f_code) for info in inspect.stack()]

    seen = []
    jax.jit(lambda x: seen.extend(of_jit(x)))(jnp.ones(2))
    assert any(seen)
    assert not any(of_jit(jnp.ones(2)))


def test_nothing_is_mapped_by_an_unknown_vmap():
    assert not is_mapped_by(jnp.ones(2), None)


def test_registered_specifications_are_known():
    assert Rows in _jax.spec_types
    assert str not in _jax.spec_types


def test_the_current_trace_is_that_of_the_tracers_in_it():
    seen = []

    def f(x):
        seen.append((current_trace(), (x + 1)._trace, _jax.trace_ctx.trace))
        return x

    jax.jit(f)(1.0)
    ((trace, of_tracer, in_context),) = seen
    assert trace is of_tracer is in_context
    assert isinstance(trace, _jax.DynamicJaxprTrace)
    assert current_trace() is not trace


def _asked(transform):
    """Whether the inside of a transformation is a part of the program around it."""
    answers = []

    def program(x):
        trace = current_trace()

        def inner(x):
            answers.append(is_part_of(trace))
            return x * 2

        return transform(inner)(x)

    jax.jit(program)(1.0)
    return set(answers)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        jax.grad,
        jax.value_and_grad,
        jax.jacfwd,
        lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x])),
        lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, x])),
        lambda f: lambda x: jax.linearize(f, x)[0],
    ],
)
def test_what_is_differentiated_or_mapped_is_a_part_of_a_program(transform):
    assert _asked(transform) == {True}


@pytest.mark.parametrize(
    "transform",
    [
        jax.jit,
        jax.checkpoint,
        lambda f: jax.grad(jax.jit(f)),
        lambda f: lambda x: jax.lax.cond(x > 0, f, f, x),
        lambda f: lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    ],
)
def test_a_program_of_its_own_is_no_part_of_the_one_that_calls_it(transform):
    assert _asked(transform) == {False}
