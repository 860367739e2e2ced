"""The names that libraries import from `equinox._module._module`, used as they use them."""

import jax
import jax.numpy as jnp
import pytest

import ecliptic.compat.equinox as eqx
from ecliptic.compat.equinox._module._module import (
    _currently_initialising,
    _has_dataclass_init,
    _ModuleMeta,
    is_abstract_module,
)
from ecliptic.errors import FrozenError


class Point(eqx.Module):
    x: jax.Array
    label: str = eqx.field(static=True, default="origin")
    tags: list[str] = eqx.field(static=True, default_factory=list)

    def __init__(self, x):
        self.x = x


class Shape(eqx.Module):
    size: eqx.AbstractVar[int]


def make(cls, *args):
    """As a metaclass does that makes instances without `ModuleMeta.__call__`."""
    self = cls.__new__(cls, *args)
    _currently_initialising.add(self)
    try:
        cls.__init__(self, *args)
    finally:
        _currently_initialising.remove(self)
    return self


def test_an_instance_that_another_metaclass_makes_is_like_any_other():
    assert eqx.tree_equal(make(Point, jnp.ones(2)), Point(jnp.ones(2)))
    assert repr(make(Point, jnp.ones(2))) == repr(Point(jnp.ones(2)))


def test_it_is_frozen_once_it_is_made():
    point = make(Point, jnp.ones(2))
    with pytest.raises(FrozenError, match="cannot assign to field 'x'"):
        point.x = jnp.zeros(2)


def test_it_is_frozen_when_its_initialisation_fails():
    kept = []

    class Failing(eqx.Module):
        x: int

        def __init__(self):
            kept.append(self)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make(Failing)
    with pytest.raises(FrozenError, match="cannot assign to field 'x'"):
        kept[0].x = 1


def test_a_class_tells_who_wrote_its_init():
    class Written(eqx.Module):
        x: int

    assert _has_dataclass_init[Written]
    assert not _has_dataclass_init[Point]
    with pytest.raises(KeyError):
        _has_dataclass_init[int]


def test_a_class_tells_whether_it_is_abstract():
    assert is_abstract_module(Shape)
    assert not is_abstract_module(Point)
    assert not is_abstract_module(int)


def test_the_metaclass_is_that_of_modules():
    assert type(Point) is _ModuleMeta
