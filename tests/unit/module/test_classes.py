"""What a Module class can be combined with: metaclasses, abstract and ordinary classes."""

import abc
import dataclasses
import inspect
import pydoc
from typing import Any

import jax
import pytest

import ecliptic as ec
from ecliptic.errors import AbstractError
from ecliptic.module import ModuleMeta


def test_class_keywords_reach_init_subclass():
    class A(ec.Module):
        def __init_subclass__(cls, tag=None, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.tag = tag

    class B(A, tag="b"):
        pass

    class C(A, tag="c", strict=True):
        pass

    assert (B.tag, C.tag) == ("b", "c")


def test_an_unknown_class_keyword_is_refused():
    with pytest.raises(TypeError, match="__init_subclass__.*takes no keyword arguments"):

        class A(ec.Module, tag="b"):
            pass


def test_init_subclass_that_reads_an_abstract_class_attribute_runs_once():
    seen = []

    class A(ec.Module):
        name: ec.AbstractClassVar[str]

        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__(**kwargs)
            seen.append(cls.name)

    class B(A):
        name = "b"

    assert seen == ["b"]
    assert B().name == "b"


@pytest.mark.parametrize("strict", [True, False])
def test_strict_is_accepted(strict):
    class A(ec.Module, strict=strict):
        a: int

    assert A(1).a == 1


def test_strict_none_makes_a_class_abstract_but_not_its_subclass():
    class AbstractA(ec.Module, strict=None):
        a: int

    class B(AbstractA):
        pass

    with pytest.raises(
        AbstractError, match="abstract class .*AbstractA with `strict=None`, which declares"
    ):
        AbstractA(1)
    assert B(1).a == 1


def test_a_metaclass_can_override_call():
    class Counting(ModuleMeta):
        made = 0

        def __call__(cls, *args, **kwargs):
            Counting.made += 1
            return super().__call__(*args, **kwargs)

    class A(ec.Module, metaclass=Counting):
        a: int

    class B(A):
        def __init__(self):
            self.a = 2

    assert (A(1).a, B().a, Counting.made) == (1, 2, 2)
    jax.tree.map(lambda x: x, A(1))
    assert Counting.made == 3


def test_a_metaclass_can_override_instancecheck():
    class Anything(ModuleMeta):
        def __instancecheck__(cls, instance):
            return instance == "magic" or super().__instancecheck__(instance)

    class A(ec.Module, metaclass=Anything):
        pass

    assert isinstance("magic", A)
    assert isinstance(A(), A)
    assert not isinstance(1, A)


def test_a_metaclass_can_override_new_and_take_keywords():
    class Tagging(ModuleMeta):
        def __new__(mcs, name, bases, namespace, tag=None, **kwargs):
            cls = super().__new__(mcs, name, bases, namespace, **kwargs)
            cls.tag = tag
            return cls

        def __init__(cls, *args, tag=None, **kwargs):
            super().__init__(*args, **kwargs)

    class A(ec.Module, metaclass=Tagging, tag=3):
        a: int

    assert (A.tag, A(1).tag, A(1).a) == (3, 3, 1)


def test_the_metaclass_is_an_abstract_base_class_metaclass():
    assert isinstance(ec.Module, abc.ABCMeta)


def test_virtual_subclasses_can_be_registered():
    class A(ec.Module):
        pass

    A.register(int)
    assert isinstance(3, A)


def test_an_instance_of_a_registered_class_is_not_taken_for_a_module():
    class A(ec.Module):
        pass

    class Other:
        def __call__(self, x):
            return x

    A.register(Other)
    A.register(dict)
    other = Other()
    twice = ec.filter_jit(lambda f, x: {"y": f(x["x"])})
    for _ in range(8):
        assert twice(other, {"x": 1}) == {"y": 1}
    assert ec.nn.inference_mode({"a": other}) == {"a": other}
    assert hash(A()) == hash(A())
    assert not ec.debug.diagnose([other])


@pytest.mark.parametrize("abc_first", [True, False])
def test_an_abstract_base_class_with_its_own_init_mixes_in(abc_first):
    class Base(abc.ABC):
        def __init__(self, z=1):
            self.z = z

        @abc.abstractmethod
        def f(self): ...

    bases = (Base, ec.Module) if abc_first else (ec.Module, Base)

    class A(*bases):
        z: Any
        w: Any = 5

        def f(self):
            return self.z

    class Lacking(*bases):
        z: Any

    m = A(3)
    assert m.f() == 3
    assert jax.tree.leaves(m) == [3, 5]
    with pytest.raises(AbstractError, match="abstract methods {'f'}"):
        Lacking()


@pytest.mark.parametrize("mixin_first", [True, False])
def test_an_ordinary_class_without_init_mixes_in(mixin_first):
    class Mixin:
        constant = 7

        def double(self):
            return 2 * self.a

    bases = (Mixin, ec.Module) if mixin_first else (ec.Module, Mixin)

    class A(*bases):
        a: Any

    m = A(3)
    assert (m.double(), m.constant) == (6, 7)
    assert jax.tree.leaves(m) == [3]


@pytest.mark.parametrize("mixin_first", [True, False])
def test_an_ordinary_class_with_a_cooperative_init_mixes_in(mixin_first):
    class Mixin:
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    class A(ec.Module):
        a: Any

        def __init__(self, a):
            self.a = a

    bases = (Mixin, A) if mixin_first else (A, Mixin)

    class B(*bases):
        b: int = 4

    assert jax.tree.leaves(B(3)) == [3, 4]


def test_a_plain_dataclass_as_base_gives_no_fields_but_its_init_is_replaced():
    @dataclasses.dataclass
    class Plain:
        a: int

    class A(Plain, ec.Module):
        b: int

    m = A(1, 2)
    assert (m.a, m.b) == (1, 2)
    assert jax.tree.leaves(m) == [1, 2]


def test_an_abstract_method_is_required_until_it_is_there():
    class A(ec.Module):
        @abc.abstractmethod
        def f(self): ...

        @property
        @abc.abstractmethod
        def p(self): ...

    class B(A):
        def f(self):
            return 1

    class C(B):
        p = 2

    with pytest.raises(AbstractError, match=r"abstract methods {'f', 'p'}") as caught:
        A()
    assert isinstance(caught.value, TypeError)
    with pytest.raises(AbstractError, match=r"abstract methods {'p'}"):
        B()
    assert C().f() == 1


def test_a_function_assigned_to_the_class_later_becomes_a_method():
    class A(ec.Module):
        a: Any

    def f(self, x):
        return self.a + x

    A.f = f
    assert A(1).f(2) == 3
    assert isinstance(A(1).f, ec.Module)
    del A.f
    assert not hasattr(A(1), "f")


def test_a_class_attribute_can_be_changed_later():
    class A(ec.Module):
        constant = 1

    A.constant = 2
    assert A().constant == 2


def test_help_shows_methods_signature_and_docstrings():
    class A(ec.Module):
        """About A."""

        a: int

        def f(self, x: int) -> int:
            """About f."""
            return x

    text = pydoc.render_doc(A, renderer=pydoc.plaintext)
    for part in ("class A(", "A(a: int) -> None", "About A.", "f(self, x: int) -> int", "About f."):
        assert part in text
    assert "About f." in pydoc.render_doc(A(1).f, renderer=pydoc.plaintext)
    pydoc.render_doc(A(1))


def test_source_and_members_can_be_inspected():
    class A(ec.Module):
        a: int

        def f(self):
            return self.a

    assert "def f(self)" in inspect.getsource(A.f)
    assert "def f(self)" in inspect.getsource(A(1).f)
    assert dict(inspect.getmembers(A, inspect.isfunction))["f"] is A.f
    assert "f" in dir(A(1))


def test_generated_code_is_shown_by_tracebacks():
    import traceback

    class A(ec.Module):
        a: Any = ec.field(converter=lambda x: 1 / x)

    with pytest.raises(ZeroDivisionError) as caught:
        A(0)
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "v0 = convert_0(v0)" in lines


def test_a_user_docstring_stays_and_none_is_made_up():
    class A(ec.Module):
        """Mine."""

    class B(ec.Module):
        a: int

    assert A.__doc__ == "Mine."
    assert B.__name__ == "B"
