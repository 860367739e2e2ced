"""String annotations mean the same as real ones."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from dataclasses import KW_ONLY, InitVar
from typing import Any, ClassVar

import jax
import pytest

import ecliptic
import ecliptic as ec
from ecliptic import AbstractClassVar, AbstractVar
from ecliptic.errors import AbstractError, DefinitionError


def test_the_annotations_here_are_strings():
    class M(ec.Module):
        a: int

    assert M.__annotations__ == {"a": "int"}


def test_fields_class_variables_init_variables_and_the_kw_only_marker():
    class M(ec.Module):
        a: int
        c: ClassVar[int] = 3
        scale: InitVar[int]
        _: KW_ONLY
        k: int = ec.field(default=5, static=True)

        def __post_init__(self, scale):
            self.a = self.a * scale

    m = M(2, 3)
    assert (m.a, m.c, m.k) == (6, 3, 5)
    assert [f.name for f in dataclasses.fields(M)] == ["a", "k"]
    assert list(inspect.signature(M).parameters) == ["a", "scale", "k"]
    assert jax.tree.leaves(m) == [6]


def test_a_name_not_known_at_run_time_is_fine():
    class M(ec.Module):
        a: OnlyForTheTypeChecker

    assert M(1).a == 1


class Shape(ec.Module):
    sides: AbstractVar[int]
    name: ec.AbstractVar[str]
    order: AbstractClassVar[int]
    other: ecliptic.AbstractClassVar[Any]


def test_abstract_attributes_are_found_under_every_spelling():
    assert Shape.__abstractvars__ == {"sides", "name"}
    assert Shape.__abstractclassvars__ == {"order", "other"}
    with pytest.raises(AbstractError, match=r"attributes {'name', 'sides'} .*{'order', 'other'}"):
        Shape()
    assert dataclasses.fields(Shape) == ()


def test_abstract_attributes_are_fulfilled():
    class Polygon(Shape):
        sides: int
        order: ClassVar[int] = 1
        other = None

        @property
        def name(self):
            return "polygon"

    assert (Polygon(5).sides, Polygon(5).name) == (5, "polygon")


def test_a_class_variable_does_not_fulfil_an_instance_attribute():
    class M(Shape):
        sides: ClassVar[int]
        name: str
        order = 1
        other = 2

    with pytest.raises(AbstractError, match="abstract attributes {'sides'}"):
        M("x")


def test_an_abstract_attribute_with_a_value_is_refused():
    with pytest.raises(DefinitionError, match="attribute `x` of `M` cannot have value 1"):

        class M(ec.Module):
            x: AbstractVar[int] = 1


def test_an_abstract_attribute_in_a_subclass_of_a_local_alias():
    from ecliptic import AbstractVar as Wanted

    class M(ec.Module):
        x: Wanted[int]

    class N(M):
        x: int

    assert N(1).x == 1


def test_type_hints_resolve():
    assert typing.get_type_hints(Nested)["inner"] is Leaf


class Leaf(ec.Module):
    a: int


class Nested(ec.Module):
    inner: Leaf
