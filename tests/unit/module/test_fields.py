"""A Module class is written as a dataclass, with all that dataclasses offer."""

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar
from typing import Any, ClassVar, Generic, TypeVar

import jax
import jax.numpy as jnp
import pytest
import typing_extensions

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
    with pytest.raises(DefinitionError, match="converter=...*must be callable; got 3 of type `int`"):
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


def test_a_generic_module_can_be_subscripted_and_keeps_the_class():
    T = TypeVar("T")

    class M(ec.Module, Generic[T]):
        a: T

    class N(M[int]):
        b: T

    assert type(M[int](1)) is M
    assert typing.get_args(M[int]) == (int,)
    assert jax.tree.leaves(N(1, 2)) == [1, 2]


def test_class_getitem_of_a_user_is_called():
    class M(ec.Module):
        def __class_getitem__(cls, item):
            return cls, item

    assert M[3] == (M, 3)


@pytest.mark.parametrize("protocol", [typing.Protocol, typing_extensions.Protocol])
@pytest.mark.parametrize("module_first", [True, False])
def test_a_protocol_can_be_a_base_in_any_order(protocol, module_first):
    class Sized(protocol):
        def size(self) -> int: ...

    bases = (ec.Module, Sized) if module_first else (Sized, ec.Module)

    class M(*bases):
        a: int

        def size(self) -> int:
            return self.a

    assert M(3).size() == 3
    assert str(inspect.signature(M)) == "(a: int) -> None"


@pytest.mark.parametrize("protocol", [typing.Protocol, typing_extensions.Protocol])
def test_a_protocol_base_with_a_runtime_check_finds_modules(protocol):
    @typing_extensions.runtime_checkable
    class Sized(protocol):
        def size(self) -> int: ...

    class Explicit(ec.Module, Sized):
        def size(self):
            return 1

    class Implicit(ec.Module):
        def size(self):
            return 2

    class Not(ec.Module):
        pass

    assert isinstance(Explicit(), Sized)
    assert isinstance(Implicit(), Sized)
    assert not isinstance(Not(), Sized)


def test_an_attribute_of_a_protocol_is_no_field():
    class Named(typing.Protocol):
        name: str

    class M(ec.Module, Named):
        a: int

    assert [f.name for f in dataclasses.fields(M)] == ["a"]


def test_properties_are_computed_from_the_fields():
    class M(ec.Module):
        a: int

        @property
        def double(self):
            return 2 * self.a

    assert M(3).double == 6
    assert jax.tree.map(lambda x: x + 1, M(3)).double == 8


def test_class_and_static_methods_work_on_class_and_instance():
    class M(ec.Module):
        a: int

        @classmethod
        def make(cls, a):
            return cls(a)

        @staticmethod
        def double(x):
            return 2 * x

    class N(M):
        pass

    assert type(N.make(1)) is N
    assert type(N(1).make(2)) is N
    assert (M.double(2), M(1).double(3)) == (4, 6)


def test_replace_makes_a_changed_copy_and_runs_the_converter():
    class M(ec.Module):
        a: float = ec.field(converter=float)
        b: int = 2

    m = M(1)
    n = dataclasses.replace(m, a=3)
    assert (type(n.a), n.a, n.b) == (float, 3.0, 2)
    assert m.a == 1.0


def test_asdict_and_astuple_descend_into_modules():
    class Inner(ec.Module):
        x: int

    class Outer(ec.Module):
        inner: Inner
        parts: list

    m = Outer(Inner(1), [Inner(2)])
    assert dataclasses.asdict(m) == {"inner": {"x": 1}, "parts": [{"x": 2}]}
    assert dataclasses.astuple(m) == ((1,), [(2,)])


def test_modules_are_dataclasses_with_match_args():
    class M(ec.Module):
        a: int
        b: int

    assert dataclasses.is_dataclass(M)
    match M(1, 2):
        case M(a, b):
            assert (a, b) == (1, 2)
        case _:
            pytest.fail("no match")


def test_a_function_as_default_stays_a_function_and_no_method():
    def double(x):
        return 2 * x

    class Generated(ec.Module):
        fn: Callable = double

    class Custom(ec.Module):
        fn: Callable = double

        def __init__(self):
            pass

    assert Generated().fn is double
    assert Custom().fn is double
    assert Custom().fn(2) == 4


def test_a_property_over_an_inherited_field_replaces_it():
    class A(ec.Module):
        x: int

    class B(A):
        y: int

        @property
        def x(self):
            return 10 * self.y

    m = B(3)
    assert m.x == 30
    assert jax.tree.leaves(m) == [3]
    assert jax.jit(lambda b: b.x)(m) == 30


def test_a_class_attribute_over_an_abstract_one_leaves_only_real_leaves():
    class A(ec.Module):
        flag: ec.AbstractVar[bool]
        w: Any

    class B(A):
        flag = True
        w: Any

    m = B(jnp.ones(2))
    assert m.flag is True
    assert len(jax.tree.leaves(m)) == 1
    assert jax.jit(lambda b: b.w.sum())(m) == 2.0


def test_a_property_over_an_abstract_attribute_leaves_only_real_leaves():
    class A(ec.Module):
        flag: ec.AbstractVar[bool]

    class B(A):
        w: Any

        @property
        def flag(self):
            return True

    assert jax.jit(lambda b: b.w if b.flag else 0)(B(2)) == 2
    assert jax.tree.leaves(B(2)) == [2]


def test_a_cached_property_is_computed_once_and_stays_out_of_the_tree():
    calls = []

    class M(ec.Module):
        a: int

        @functools.cached_property
        def double(self):
            calls.append(1)
            return 2 * self.a

    m, fresh = M(3), M(3)
    assert (m.double, m.double) == (6, 6)
    assert len(calls) == 1
    assert jax.tree.leaves(m) == [3]
    assert jax.tree.structure(m) == jax.tree.structure(fresh)
    assert m == fresh
    assert jax.tree.map(lambda x: x + 1, m).double == 8


def test_fields_may_have_the_names_of_arguments():
    class M(ec.Module):
        self: int
        cls: int
        args: int
        kwargs: int
        spec: int = 5

    m = M(1, cls=2, args=3, kwargs=4)
    assert jax.tree.leaves(m) == [1, 2, 3, 4, 5]
    assert M(**{"self": 1, "cls": 2, "args": 3, "kwargs": 4}) == m


def test_private_names_are_mangled_as_in_any_class():
    class M(ec.Module):
        __hidden: int

        def read(self):
            return self.__hidden

    assert M(3).read() == 3
    assert jax.tree.leaves(M(3)) == [3]


def test_hundreds_of_fields():
    names = [f"f{i}" for i in range(400)]
    M = type(ec.Module)("M", (ec.Module,), {"__annotations__": dict.fromkeys(names, int)})
    m = M(*range(400))
    assert jax.tree.leaves(m) == list(range(400))
    assert jax.tree.map(lambda x: x + 1, m).f399 == 400
    assert m == M(**dict(zip(names, range(400), strict=True)))


def test_the_signature_of_a_class_is_that_of_its_init():
    class Generated(ec.Module):
        a: int
        b: float = 1.5

    class Custom(ec.Module):
        a: int

        def __init__(self, size: int, *, key=None):
            self.a = size

    assert str(inspect.signature(Generated)) == "(a: int, b: float = 1.5) -> None"
    assert str(inspect.signature(Custom)) == "(size: int, *, key=None)"


def test_a_converted_field_shows_what_its_converter_takes():
    def parse(text: str) -> int:
        return int(text)

    class M(ec.Module):
        a: int = ec.field(converter=parse)
        b: float = ec.field(converter=float, default=1.0)

    assert str(inspect.signature(M)) == "(a: str, b: Any = 1.0) -> None"
    assert M.__annotations__["a"] in (int, "int")


@pytest.mark.parametrize(
    "converter",
    [
        ec.Partial(jnp.asarray, dtype=jnp.float32),
        functools.partial(jnp.asarray, dtype=jnp.float32),
        jax.jit(lambda x: x.astype(jnp.float32)),
        jnp.float32,
    ],
)
def test_any_callable_is_a_converter(converter):
    class M(ec.Module):
        a: Any = ec.field(converter=converter)

    assert M(jnp.array(1)).a.dtype == jnp.float32
    assert list(inspect.signature(M).parameters) == ["a"]


def test_user_slots_hold_fields():
    class M(ec.Module):
        __slots__ = ("a",)
        a: int
        b: int

    m = M(1, 2)
    assert (m.a, m.b) == (1, 2)
    assert "a" not in m.__dict__
    doubled = jax.tree.map(lambda x: 2 * x, m)
    assert (doubled.a, doubled.b) == (2, 4)


def test_a_field_declared_like_a_method_name_of_the_base_becomes_a_field():
    class A(ec.Module):
        def f(self):
            return 1

    class B(A):
        f: Callable

    assert B(len).f is len
