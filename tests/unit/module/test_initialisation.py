"""What happens between the call of a class and the frozen instance."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.errors import EclipticWarning, InitialisationError


class Pair(ec.Module):
    a: Any
    b: Any = 2


class Custom(ec.Module):
    a: Any
    b: Any = 2

    def __init__(self, a):
        self.a = a


# Custom `__init__` and `__post_init__`


def test_post_init_may_change_a_field_that_init_set():
    class M(ec.Module):
        a: int

        def __post_init__(self):
            self.a = self.a + 1

    assert M(1).a == 2


def test_post_init_is_inherited():
    class A(ec.Module):
        a: int
        c: int = ec.field(init=False)

        def __post_init__(self):
            self.c = self.a

    class B(A):
        b: int

    assert B(1, 2).c == 1


def test_post_init_can_call_that_of_its_base():
    class A(ec.Module):
        a: int
        log: list = ec.field(init=False)

        def __post_init__(self):
            self.log = ["A"]

    class B(A):
        def __post_init__(self):
            super().__post_init__()
            self.log = [*self.log, "B"]

    assert B(1).log == ["A", "B"]


def test_a_custom_init_is_inherited():
    class B(Custom):
        pass

    assert B(5).a == 5


def test_a_subclass_with_new_fields_inherits_a_custom_init_and_class_defaults_apply():
    class B(Custom):
        c: int = 7

    m = B(5)
    assert (m.a, m.b, m.c) == (5, 2, 7)


def test_a_subclass_with_new_unset_fields_and_an_inherited_custom_init_is_refused():
    class B(Custom):
        c: int

    with pytest.raises(InitialisationError, match=r"Field 'c' was not initialized.*`.*B` ended"):
        B(5)


def test_a_custom_init_can_call_the_generated_one_of_its_base():
    class B(Pair):
        c: int

        def __init__(self, c):
            super().__init__(1, 3)
            self.c = c

    assert jax.tree.leaves(B(4)) == [1, 3, 4]


def test_a_custom_init_can_call_that_of_its_base():
    class B(Custom):
        c: int

        def __init__(self, a, c):
            super().__init__(a)
            self.c = c

    assert jax.tree.leaves(B(1, 3)) == [1, 2, 3]


def test_class_defaults_are_real_values_after_a_custom_init():
    m = Custom(1)
    assert m.__dict__["b"] == 2
    assert jax.tree.leaves(m) == [1, 2]
    assert ec.tree_at(lambda n: n.b, m, 9).b == 9
    stacked = jax.vmap(lambda x: Custom(x))(jnp.arange(3.0))
    assert stacked.b.shape == (3,)
    carry, _ = jax.lax.scan(lambda c, _: (c, None), stacked, None, length=2)
    assert jax.tree.structure(carry) == jax.tree.structure(stacked)


def test_class_defaults_can_be_read_and_overridden_in_a_custom_init():
    class M(ec.Module):
        a: int = 3
        log: list = ec.field(default_factory=list)

        def __init__(self):
            self.log.append(self.a)
            self.a = 4

    m = M()
    assert (m.a, m.log) == (4, [3])
    assert M().log == [3]


def test_post_init_beside_a_custom_init_is_warned_of():
    with pytest.warns(
        EclipticWarning, match="both an `__init__` method and a `__post_init__`"
    ) as w:

        class M(ec.Module):
            a: int

            def __init__(self):
                self.a = 1

            def __post_init__(self):
                self.a = 2

    assert w[0].filename == __file__
    assert M().a == 1


def test_a_custom_init_that_calls_post_init_is_not_warned_of():
    class M(ec.Module):
        a: int

        def __init__(self):
            self.__post_init__()

        def __post_init__(self):
            self.a = 2

    assert M().a == 2


def test_a_diamond_runs_each_init_once():
    log = []

    class A(ec.Module):
        a: int

        def __init__(self):
            log.append("A")
            self.a = 1

    class B(A):
        b: int

        def __init__(self):
            log.append("B")
            super().__init__()
            self.b = 2

    class C(A):
        c: int

        def __init__(self):
            log.append("C")
            super().__init__()
            self.c = 3

    class D(B, C):
        pass

    m = D()
    assert log == ["B", "C", "A"]
    assert (m.a, m.b, m.c) == (1, 2, 3)


def test_the_nearest_init_of_a_diamond_decides():
    class A(ec.Module):
        a: int

    class Hand(A):
        def __init__(self):
            self.a = 1

    class Generated(A):
        b: int = 2

    class First(Hand, Generated):
        pass

    class Second(Generated, Hand):
        pass

    assert (First().a, First().b) == (1, 2)
    assert (Second(5).a, Second(5).b) == (5, 2)


def test_an_init_compiled_from_a_string_counts_as_custom():
    scope: dict = {"ec": ec}
    exec(
        "class M(ec.Module):\n"
        "    a: int\n"
        "    b: int = 2\n"
        "    def __init__(self):\n"
        "        self.a = 1\n"
        "class Mixin:\n"
        "    def __init__(self):\n"
        "        self.a = 7\n"
        "class N(Mixin, ec.Module):\n"
        "    a: int\n"
        "    b: int = 3\n",
        scope,
    )
    assert jax.tree.leaves(scope["M"]()) == [1, 2]
    assert jax.tree.leaves(scope["N"]()) == [7, 3]


# Converters


def test_converters_run_on_arguments_and_defaults():
    class M(ec.Module):
        a: float = ec.field(converter=float)
        b: float = ec.field(converter=float, default=2)
        c: tuple = ec.field(converter=tuple, default_factory=list)
        d: float = ec.field(converter=float, init=False, default=4)

    m = M(1)
    assert [type(x) for x in (m.a, m.b, m.c, m.d)] == [float, float, tuple, float]


def test_converters_run_on_what_post_init_set():
    class M(ec.Module):
        a: float = ec.field(converter=float, init=False)

        def __post_init__(self):
            self.a = 1

    assert type(M().a) is float


def test_converters_run_on_what_a_custom_init_set_and_on_defaults_that_it_left():
    class M(ec.Module):
        a: float = ec.field(converter=float)
        b: float = ec.field(converter=float, default=2)

        def __init__(self):
            self.a = 1

    assert [type(x) for x in (M().a, M().b)] == [float, float]


def test_converters_run_once_for_each_instance():
    calls = []

    def note(x):
        calls.append(x)
        return x

    class A(ec.Module):
        a: int = ec.field(converter=note)

        def __init__(self, a):
            self.a = a

    class B(A):
        def __init__(self):
            super().__init__(1)
            self.a = 2

    B()
    assert calls == [2]


def test_converters_do_not_run_when_a_tree_is_rebuilt():
    class M(ec.Module):
        a: Any = ec.field(converter=jnp.asarray)

    assert jax.tree.map(lambda x: None, M(1.0), is_leaf=lambda x: False).a is None
    assert jax.tree.map(lambda x: "text", M(1.0)).a == "text"


@pytest.mark.parametrize("kind", ["base", "empty", "overridden", "custom"])
def test_initialisers_see_unconverted_values_whoever_defines_them(kind):
    seen = []

    class A(ec.Module):
        a: float = ec.field(converter=float)

        def __post_init__(self):
            seen.append(type(self.a))

    class Empty(A):
        pass

    class Overridden(A):
        def __post_init__(self):
            seen.append(type(self.a))

    class Hand(ec.Module):
        a: float = ec.field(converter=float)

        def __init__(self, a):
            self.a = a
            seen.append(type(self.a))

    cls = {"base": A, "empty": Empty, "overridden": Overridden, "custom": Hand}[kind]
    m = cls(1)
    assert seen == [int]
    assert type(m.a) is float


def test_a_subclass_can_replace_and_drop_a_converter():
    class A(ec.Module):
        a: Any = ec.field(converter=float)

    class Other(A):
        a: Any = ec.field(converter=str)

    class Plain(A):
        a: Any

    assert [K(1).a for K in (A, Other, Plain)] == [1.0, "1", 1]
