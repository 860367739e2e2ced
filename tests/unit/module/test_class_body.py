"""What else of dataclasses and classes a Module's body may use."""

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import pytest
import typing_extensions

import ecliptic as ec


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
    assert M(self=1, cls=2, args=3, kwargs=4) == m


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
