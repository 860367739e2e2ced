"""Abstract attributes."""

import dataclasses
from typing import Any, ClassVar

import jax
import pytest

import ecliptic as ec
from ecliptic.errors import AbstractError, DefinitionError


class Base(ec.Module):
    x: ec.AbstractVar[int]


class ClassBase(ec.Module):
    c: ec.AbstractClassVar[int]


def test_an_abstract_class_is_refused_with_its_name_and_what_it_lacks():
    with pytest.raises(AbstractError, match=r"class Base with abstract attributes {'x'}") as caught:
        Base()
    assert isinstance(caught.value, TypeError)
    with pytest.raises(AbstractError, match=r"ClassBase with abstract class attributes {'c'}"):
        ClassBase()


def test_an_abstract_attribute_is_no_field():
    assert dataclasses.fields(Base) == ()


def test_a_field_fulfils_an_abstract_attribute():
    class M(Base):
        x: int

    assert M(1).x == 1


def test_a_property_fulfils_an_abstract_attribute():
    class M(Base):
        @property
        def x(self):
            return 4

    assert M().x == 4


def test_a_class_attribute_fulfils_both_kinds():
    class M(Base, ClassBase):
        x = 1
        c: ClassVar[int] = 2

    assert (M().x, M().c, M.c) == (1, 2, 2)
    assert jax.tree.leaves(M()) == []


def test_a_field_with_default_fulfils_an_abstract_class_attribute():
    class M(ClassBase):
        c: int = 2

    assert M().c == M.c == 2


def test_a_field_without_default_fulfils_an_abstract_class_attribute():
    class M(ClassBase):
        c: int

    class Hand(ClassBase):
        c: int

        def __init__(self):
            self.c = 3

    assert (M(2).c, Hand().c) == (2, 3)


def test_a_bare_annotation_as_class_variable_fulfils_no_instance_attribute():
    class M(Base):
        x: ClassVar[int]

    with pytest.raises(AbstractError, match="abstract attributes {'x'}"):
        M()


def test_the_bases_may_come_in_any_order():
    class Mixin(ec.Module):
        x: int

    class First(Base, Mixin):
        pass

    class Second(Mixin, Base):
        pass

    assert First(1).x == Second(1).x == 1


def test_a_subclass_may_declare_abstract_again():
    class M(Base):
        x: int

    class Again(M):
        x: ec.AbstractVar[int]

    class Concrete(Again):
        x: int

    with pytest.raises(AbstractError, match="{'x'}"):
        Again(1)
    assert Concrete(2).x == 2


def test_an_abstract_attribute_stays_abstract_over_generations():
    class Middle(Base):
        y: int

    class M(Middle):
        x: int

    with pytest.raises(AbstractError, match="Middle"):
        Middle(1)
    m = M(1, 2)
    assert (m.y, m.x) == (1, 2)


@pytest.mark.parametrize("marker", [ec.AbstractVar, ec.AbstractClassVar])
def test_an_abstract_attribute_must_not_have_a_value(marker):
    with pytest.raises(DefinitionError, match=rf"`x` of `M` .*without `{marker.__name__}`"):

        class M(ec.Module):
            x: marker[int] = 1


@pytest.mark.parametrize("marker", [ec.AbstractVar, ec.AbstractClassVar])
def test_the_marker_needs_a_type(marker):
    with pytest.raises(DefinitionError, match="The annotation of `x` in `M` is unsubscripted"):

        class M(ec.Module):
            x: marker


def test_a_class_variable_without_a_value_fulfils_an_abstract_one():
    class M(ec.Module):
        x: ec.AbstractClassVar[int]

    class N(M):
        x: ClassVar[int]

    assert N.__abstractclassvars__ == frozenset()


def test_what_is_abstract_can_be_asked_of_the_class():
    class M(Base, ClassBase):
        pass

    assert M.__abstractvars__ == {"x"}
    assert M.__abstractclassvars__ == {"c"}


def test_an_ordinary_class_can_fulfil_an_abstract_attribute():
    class Mixin:
        x = 3

    class M(Base, Mixin):
        y: Any

    assert M(1).x == 3


@pytest.mark.parametrize("annotation", [ClassVar[int], ClassVar, dataclasses.InitVar[int]])
def test_an_annotation_that_makes_no_field_fulfils_nothing(annotation):
    class M(Base):
        x: annotation

    with pytest.raises(AbstractError, match="{'x'}"):
        M()


def test_an_annotation_of_an_ordinary_class_fulfils_nothing():
    class Mixin:
        x: int

    class M(Base, Mixin):
        pass

    with pytest.raises(AbstractError, match="{'x'}"):
        M()


def test_what_is_abstract_on_the_class_stays_so():
    class M(ClassBase):
        c: ec.AbstractVar[int]

    assert (M.__abstractvars__, M.__abstractclassvars__) == (frozenset(), frozenset({"c"}))
