"""Which trace a tracer belongs to: what the attributes of tracers mean."""

import jax
import jax.numpy as jnp

from ecliptic import _jax
from ecliptic._jax._trace import is_mapped_by, trace_tag
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


def test_nothing_is_mapped_by_an_unknown_vmap():
    assert not is_mapped_by(jnp.ones(2), None)


def test_registered_specifications_are_known():
    assert Rows in _jax.spec_types
    assert str not in _jax.spec_types
