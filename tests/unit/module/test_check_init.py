"""`__check_init__`: the last step of an initialisation."""

import jax
import pytest

import ecliptic as ec
from ecliptic.errors import FrozenError


def test_check_init_runs_for_each_class_of_the_mro_without_super():
    log = []

    class A(ec.Module):
        def __check_init__(self):
            log.append("A")

    class B(A):
        def __check_init__(self):
            log.append("B")

    class C(A):
        def __check_init__(self):
            log.append("C")

    class D(B, C):
        pass

    D()
    assert log == ["B", "C", "A"]


def test_check_init_of_an_ordinary_class_in_the_mro_runs_too():
    log = []

    class Mixin:
        def __check_init__(self):
            log.append("Mixin")

    class M(ec.Module, Mixin):
        pass

    M()
    assert log == ["Mixin"]


@pytest.mark.parametrize("custom", [False, True])
def test_check_init_sees_converted_values_and_defaults(custom):
    seen = []

    class M(ec.Module):
        a: float = ec.field(converter=float)
        b: float = ec.field(converter=float, default=2)

        if custom:

            def __init__(self, a):
                self.a = a

        def __check_init__(self):
            seen.append((self.a, self.b, type(self.a), type(self.b)))

    M(1)
    assert seen == [(1.0, 2.0, float, float)]


def test_check_init_cannot_assign():
    class M(ec.Module):
        a: int

        def __check_init__(self):
            self.a = 2

    with pytest.raises(FrozenError, match="frozen once initialised"):
        M(1)


def test_an_error_of_check_init_reaches_the_caller():
    class M(ec.Module):
        a: int

        def __check_init__(self):
            if self.a < 0:
                raise ValueError("negative")

    M(1)
    with pytest.raises(ValueError, match="negative"):
        M(-1)


def test_check_init_does_not_run_when_a_tree_is_rebuilt():
    class M(ec.Module):
        a: int

        def __check_init__(self):
            assert self.a == 1

    assert jax.tree.map(lambda x: 2, M(1)).a == 2
