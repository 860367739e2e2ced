"""A Module class is written as a dataclass, with all that dataclasses offer."""

import dataclasses
import inspect
from dataclasses import KW_ONLY, InitVar
from typing import Any, ClassVar

import jax
import pytest

import ecliptic as ec
from ecliptic.errors import DefinitionError


def test_positional_and_keyword_arguments_fill_the_fields_in_order():
    class M(ec.Module):
        a: Any
        b: Any

    m = M(1, b=2)
    assert (m.a, m.b) == (1, 2)


def test_a_default_is_used_only_when_no_argument_is_given():
    class M(ec.Module):
        a: int = 3

    assert (M().a, M(4).a) == (3, 4)


def test_a_default_factory_makes_a_new_value_for_each_instance():
    class M(ec.Module):
        a: list = ec.field(default_factory=list)

    given: list = [1]
    assert M().a == []
    assert M().a is not M().a
    assert M(given).a is given


def test_a_field_outside_init_takes_its_default_and_no_argument():
    class M(ec.Module):
        a: int = ec.field(init=False, default=5)
        b: list = ec.field(init=False, default_factory=list)

    assert (M().a, M().b) == (5, [])
    with pytest.raises(TypeError, match="unexpected keyword argument 'a'"):
        M(a=1)


def test_a_field_outside_init_may_be_set_in_post_init():
    class M(ec.Module):
        a: int
        double: int = ec.field(init=False)

        def __post_init__(self):
            self.double = 2 * self.a

    assert M(4).double == 8


def test_keyword_only_fields_come_after_the_positional_ones():
    class M(ec.Module):
        a: int = ec.field(kw_only=True)
        b: int

    assert str(inspect.signature(M)) == "(b: int, *, a: int) -> None"
    m = M(1, a=2)
    assert (m.a, m.b) == (2, 1)
    with pytest.raises(TypeError, match="positional argument"):
        M(1, 2)


def test_fields_after_the_kw_only_marker_are_keyword_only():
    class M(ec.Module):
        a: int
        _: KW_ONLY
        b: int = 2
        c: list = ec.field(default_factory=list)

    assert str(inspect.signature(M)).startswith("(a: int, *, b: int = 2, c: list = <factory>)")
    assert jax.tree.leaves(M(1, b=5)) == [1, 5]


def test_an_init_variable_goes_to_post_init_and_is_no_field():
    class M(ec.Module):
        a: int
        scale: InitVar[int]

        def __post_init__(self, scale):
            self.a = self.a * scale

    m = M(2, 3)
    assert m.a == 6
    assert [f.name for f in dataclasses.fields(m)] == ["a"]
    assert not hasattr(m, "scale")


def test_an_init_variable_may_have_a_default():
    class M(ec.Module):
        a: int
        scale: InitVar[int] = 10

        def __post_init__(self, scale):
            self.a = self.a * scale

    assert (M(1).a, M(1, 2).a) == (10, 2)


def test_init_variables_come_to_post_init_in_the_order_of_the_class_body():
    class M(ec.Module):
        first: InitVar[str] = dataclasses.field(kw_only=True)
        second: InitVar[str]
        got: Any = ec.field(init=False)

        def __post_init__(self, *given):
            self.got = given

    @dataclasses.dataclass
    class D:
        first: InitVar[str] = dataclasses.field(kw_only=True)
        second: InitVar[str]
        got: Any = dataclasses.field(init=False)

        def __post_init__(self, *given):
            self.got = given

    assert M("b", first="a").got == ("a", "b") == D("b", first="a").got


def test_a_class_variable_is_no_field():
    class M(ec.Module):
        count: ClassVar[int] = 3
        a: int

    assert [f.name for f in dataclasses.fields(M)] == ["a"]
    assert M(1).count == 3


def test_a_subclass_appends_its_fields():
    class A(ec.Module):
        a: int

    class B(A):
        b: int

    assert str(inspect.signature(B)) == "(a: int, b: int) -> None"
    assert jax.tree.leaves(B(1, 2)) == [1, 2]


def test_a_subclass_that_overrides_a_field_keeps_its_place():
    class A(ec.Module):
        a: int
        b: int = 2

    class B(A):
        a: float = 0.5

    m = B()
    assert (m.a, m.b) == (0.5, 2)
    assert [f.name for f in dataclasses.fields(B)] == ["a", "b"]


def test_an_ordinary_field_can_be_made_static_by_a_subclass_and_back():
    class A(ec.Module):
        a: Any

    class B(A):
        a: Any = ec.field(static=True)

    class C(B):
        a: Any

    assert [len(jax.tree.leaves(K(1))) for K in (A, B, C)] == [1, 0, 1]


def test_static_survives_an_empty_subclass():
    class A(ec.Module):
        a: int = ec.field(static=True)

    class B(A):
        pass

    assert jax.tree.leaves(B(1)) == []


def test_a_function_around_field_keeps_all_its_options():
    def my_field(**kwargs):
        return ec.field(metadata={"unit": "m"}, static=True, converter=str, **kwargs)

    class A(ec.Module):
        a: str = my_field()

    class B(A):
        pass

    m = B(3)
    assert m.a == "3"
    assert jax.tree.leaves(m) == []
    assert dataclasses.fields(B)[0].metadata["unit"] == "m"


def test_a_non_default_field_after_a_default_is_refused_as_in_dataclasses():
    with pytest.raises(TypeError, match="non-default argument 'b' follows default argument"):

        class M(ec.Module):
            a: int = 1
            b: int


def test_a_mutable_default_is_refused_as_in_dataclasses():
    with pytest.raises(ValueError, match="use default_factory"):

        class M(ec.Module):
            a: list = []


@pytest.mark.parametrize("option", ["static", "converter"])
def test_metadata_must_not_use_the_keys_of_options(option):
    with pytest.raises(DefinitionError, match=rf"has the key '{option}' .*`field\({option}=...\)`"):
        ec.field(metadata={option: True})


def test_a_converter_must_be_callable():
    with pytest.raises(
        DefinitionError, match="converter=...*must be callable; got 3 of type `int`"
    ):
        ec.field(converter=3)


def test_every_option_of_dataclasses_field_is_accepted():
    class M(ec.Module):
        a: int = ec.field(
            default=1, init=True, repr=False, hash=False, compare=False,
            metadata={"k": 2}, kw_only=True,
        )  # fmt: skip

    (declared,) = dataclasses.fields(M)
    assert (declared.default, declared.repr, declared.hash, declared.compare) == (
        1, False, False, False,
    )  # fmt: skip
    assert declared.metadata["k"] == 2
    assert declared.kw_only


def test_metadata_static_of_dataclasses_field_means_static():
    class M(ec.Module):
        a: int = dataclasses.field(metadata={"static": True})

    assert jax.tree.leaves(M(1)) == []
