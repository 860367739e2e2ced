"""Half-made instances, errors and threads during construction; unusual classes."""

import dataclasses
import functools
import inspect
import threading
import types
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.errors import FrozenError, InitialisationError
from ecliptic.module._initialise import initialising


class Pair(ec.Module):
    a: Any
    b: Any = 2


class Custom(ec.Module):
    a: Any
    b: Any = 2

    def __init__(self, a):
        self.a = a


@pytest.mark.parametrize("stage", ["init", "post_init", "converter", "check", "unset"])
def test_an_exception_leaves_nothing_behind(stage):
    class Broken(ec.Module):
        a: Any = ec.field(converter=lambda x: 1 / 0 if stage == "converter" else x)
        b: Any = ec.field(init=False)

        def __post_init__(self):
            if stage == "post_init":
                raise ZeroDivisionError
            if stage != "unset":
                self.b = 1

        def __check_init__(self):
            raise ZeroDivisionError

    class BrokenHand(ec.Module):
        a: Any

        def __init__(self, a):
            raise ZeroDivisionError

    before = set(initialising)
    with pytest.raises((ZeroDivisionError, InitialisationError)):
        (BrokenHand if stage == "init" else Broken)(1)
    assert initialising == before


def test_an_instance_whose_init_failed_is_frozen():
    kept = []

    class M(ec.Module):
        a: Any

        def __init__(self):
            kept.append(self)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        M()
    with pytest.raises(FrozenError):
        kept[0].a = 1


def test_an_instance_can_be_mapped_over_inside_its_init():
    class M(ec.Module):
        a: Any
        s: str = ec.field(static=True)
        b: Any

        def __init__(self):
            self.a = 1
            copy = jax.tree.map(lambda x: x + 1, self)
            assert not hasattr(copy, "b")
            assert not hasattr(copy, "s")
            self.s = "x"
            copy = jax.tree.map(lambda x: x + 1, self)
            assert copy.s == "x"
            self.b = copy.a

    assert jax.tree.leaves(M()) == [1, 2]


def test_paths_of_a_half_made_instance_are_attribute_paths():
    class M(ec.Module):
        a: Any
        b: Any

        def __init__(self):
            self.b = 1
            ((path, leaf),) = jax.tree_util.tree_leaves_with_path(self)
            assert (jax.tree_util.keystr(path), leaf) == (".b", 1)
            self.a = 2

    assert M().a == 2


def test_a_jitted_method_can_be_called_inside_init():
    class M(ec.Module):
        a: Any
        b: Any

        def __init__(self):
            self.a = jnp.ones(2)
            self.b = self.double()

        @jax.jit
        def double(self):
            return 2 * self.a

    assert M().b.sum() == 4.0


def test_modules_can_be_made_inside_the_init_of_another():
    class M(ec.Module):
        inner: Any
        a: int

        def __init__(self):
            self.inner = Custom(Custom(1))
            with pytest.raises(FrozenError):
                self.inner.a = 2
            self.a = 3

    assert M().inner.a.a == 1


def test_construction_in_eight_threads():
    errors = []

    def work():
        try:
            for i in range(300):
                m = Custom(Pair(i, Custom(i)))
                assert m.a.b.a == i
                with pytest.raises(FrozenError):
                    m.a = 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert not initialising


def test_a_class_can_be_used_first_by_eight_threads_at_once():
    class M(ec.Module):
        a: Any
        s: Any = ec.field(static=True, default="s")

    barrier = threading.Barrier(8)
    results: list = []

    def work():
        barrier.wait(10)
        m = M(1)
        results.append((jax.tree.leaves(m), jax.tree.map(lambda x: x + 1, m), hash(m)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [([1], M(2), hash(M(1)))] * 8


def test_an_instance_initialising_in_one_thread_does_not_thaw_others():
    started, done = threading.Event(), threading.Event()

    class Slow(ec.Module):
        a: int

        def __init__(self):
            started.set()
            done.wait(10)
            self.a = 1

    made = []
    thread = threading.Thread(target=lambda: made.append(Slow()))
    thread.start()
    started.wait(10)
    try:
        with pytest.raises(FrozenError):
            Pair(1).a = 2
    finally:
        done.set()
        thread.join()
    assert made[0].a == 1


def test_modules_can_be_weakly_referenced():
    m = Pair(1)
    ref = weakref.ref(m)
    assert ref() is m
    del m
    assert ref() is None


def test_construction_leaves_no_cyclic_garbage():
    import gc

    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            Custom(Pair(1))
            Custom(Pair(1)).a
        assert gc.collect() == 0
    finally:
        gc.enable()


# Unusual classes


def test_a_user_new_is_called_and_its_instance_initialised():
    class M(ec.Module):
        a: int

        def __new__(cls, a):
            self = super().__new__(cls)
            object.__setattr__(self, "note", a)
            return self

    m = M(3)
    assert (m.a, m.note) == (3, 3)
    assert jax.tree.leaves(m) == [3]


def test_a_user_new_may_return_something_else():
    class M(ec.Module):
        a: int

        def __new__(cls, a):
            return "other"

    assert M(1) == "other"


def test_a_user_setattr_is_called_in_a_custom_init():
    log = []

    class M(ec.Module):
        a: int

        def __init__(self):
            self.a = 1

        def __setattr__(self, name, value):
            log.append(name)
            super().__setattr__(name, value)

    m = M()
    assert (m.a, log) == (1, ["a"])
    with pytest.raises(FrozenError):
        m.a = 2


def test_classes_made_by_the_metaclass_and_by_new_class():
    A = type(ec.Module)("A", (ec.Module,), {"__annotations__": {"x": int}})
    B = types.new_class("B", (A,), {}, lambda ns: ns.update(__annotations__={"y": int}, y=2))
    assert A(1).x == 1
    assert jax.tree.leaves(B(1)) == [1, 2]
    assert jax.tree.map(lambda x: x + 1, B(1)) == B(2, 3)


def test_make_dataclass_with_a_module_base():
    M = dataclasses.make_dataclass("M", [("x", int)], bases=(ec.Module,), repr=False, eq=False)
    assert jax.tree.leaves(M(3)) == [3]


def test_an_init_assigned_to_the_class_later_is_used():
    class M(ec.Module):
        x: int

    def init(self):
        self.x = 5

    M.__init__ = init
    assert M().x == 5


def test_deep_nesting():
    m: Any = Pair(0)
    for _ in range(300):
        m = Pair(m)
    assert len(jax.tree.leaves(m)) == 302
    assert jax.tree.map(lambda x: x, m) == m


def test_wrong_arguments_give_the_usual_type_error():
    with pytest.raises(
        TypeError, match=r"__init__\(\) missing 1 required positional argument: 'a'"
    ):
        Pair()


def test_an_init_that_is_no_function_counts_as_custom():
    def init(self, a, b):
        self.a = (a, b)

    class M(ec.Module):
        a: Any
        c: Any = 3

        __init__ = functools.partialmethod(init, 1)

    assert jax.tree.leaves(M(2)) == [1, 2, 3]


def test_an_attribute_signature_of_the_user_wins():
    class M(ec.Module):
        a: Any

        __signature__ = inspect.Signature()

    assert str(inspect.signature(M)) == "()"


def test_a_super_call_of_setattr_from_outside_is_refused():
    with pytest.raises(FrozenError):
        ec.Module.__setattr__(Pair(1), "a", 2)
