"""What happens between the call of a class and the frozen instance."""

import dataclasses
import threading
import types
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import EclipticWarning, FieldError, FrozenError, InitialisationError
from ecliptic.module._initialise import initialising


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

    with pytest.raises(InitialisationError, match=r"Field `c` of `.*B` was not initialised"):
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
    with pytest.warns(EclipticWarning, match="both an `__init__` method and a `__post_init__`") as w:

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


# `__check_init__`


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


# What is refused


def test_an_unset_field_is_named_with_its_class_and_the_way_out():
    class M(ec.Module):
        a: int
        b: int

        def __init__(self):
            self.a = 1

    with pytest.raises(
        InitialisationError, match=r"Field `b` of `.*M` was not initialised.*Assign `self.b = ...`"
    ) as caught:
        M()
    assert isinstance(caught.value, TypeError)


def test_several_unset_fields_are_all_named():
    class M(ec.Module):
        a: int
        b: int

        def __init__(self):
            pass

    with pytest.raises(InitialisationError, match=r"Fields `a`, `b` of `.*M` were not initialised"):
        M()


def test_an_unset_field_outside_init_is_refused_for_a_generated_init():
    class M(ec.Module):
        a: int = ec.field(init=False)

    with pytest.raises(InitialisationError, match="Field `a`"):
        M()


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (1, "int"),
        ("s", "str"),
        (jnp.ones(2), "jax.Array"),
        (jnp.ones(2).__array__(), "np.ndarray"),
        (None, "Any"),
        (len, "Callable"),
        (Pair(1), "Pair"),
    ],
)
def test_an_undeclared_field_gets_the_annotation_line_to_add(value, annotation):
    class M(ec.Module):
        a: int

        def __init__(self):
            self.extra = value

    with pytest.raises(FrozenError, match=rf"`extra: {annotation}` to the body of `.*M`"):
        M()


def test_assignment_after_initialisation_names_the_calls_that_make_a_copy():
    with pytest.raises(FrozenError, match="cannot assign to field 'a'.*`Pair`") as caught:
        Pair(1).a = 2
    assert isinstance(caught.value, dataclasses.FrozenInstanceError)
    assert "tree_at(lambda m: m.a, module, value)" in str(caught.value)
    assert "dataclasses.replace(module, a=value)" in str(caught.value)


def test_the_calls_named_by_the_frozen_error_work():
    module, value = Pair(1), 5
    assert ec.tree_at(lambda m: m.a, module, value).a == 5
    assert dataclasses.replace(module, a=value).a == 5


def test_assignment_of_an_undeclared_name_after_initialisation_says_so():
    with pytest.raises(FrozenError, match=r"declares no such field\. Declare `c: int`"):
        Pair(1).c = 2


def test_deletion_names_the_way_out():
    with pytest.raises(FrozenError, match=r"cannot delete field 'a'.*tree_at\(lambda m: m.a"):
        del Pair(1).a


def test_augmented_assignment_is_refused_and_changes_nothing():
    m = Pair(1)
    with pytest.raises(FrozenError):
        m.a += 1
    assert m.a == 1


def test_a_field_can_be_deleted_and_set_again_in_init():
    class M(ec.Module):
        a: int

        def __init__(self, again):
            self.a = 1
            del self.a
            if again:
                self.a = 2

    assert M(again=True).a == 2
    with pytest.raises(InitialisationError, match="Field `a`"):
        M(again=False)


@pytest.mark.parametrize(
    ("cls", "name", "calls"),
    [
        ("generated", "data", ["tree_at(lambda m: m.data", "dataclasses.replace(module, data="]),
        ("generated", "static", ["dataclasses.replace(module, static="]),
        ("custom", "data", ["tree_at(lambda m: m.data"]),
        ("custom", "static", ["give `static` its value in `__init__`"]),
    ],
)
def test_the_frozen_error_names_only_calls_that_work(cls, name, calls):
    class Generated(ec.Module):
        data: int = 1
        static: int = ec.field(static=True, default=2)

    class ByHand(Generated):
        def __init__(self):
            pass

    with pytest.raises(FrozenError) as caught:
        setattr((Generated if cls == "generated" else ByHand)(), name, 5)
    text = str(caught.value)
    every = ["tree_at(lambda m", "dataclasses.replace(", "its value in `__init__`"]
    assert all(call in text for call in calls)
    assert sum(call in text for call in every) == len(calls)


def test_modules_made_by_tree_map_are_frozen():
    with pytest.raises(FrozenError):
        jax.tree.map(lambda x: x, Pair(1)).a = 2


def test_object_setattr_still_works():
    m = Pair(1)
    object.__setattr__(m, "a", 5)
    assert (m.a, jax.tree.leaves(m)) == (5, [5, 2])


def test_a_property_with_a_setter_works_in_init_and_is_frozen_after():
    class M(ec.Module):
        hidden: int

        @property
        def shown(self):
            return self.hidden

        @shown.setter
        def shown(self, value):
            self.hidden = value

        def __init__(self):
            self.shown = 3

    m = M()
    assert m.hidden == 3
    with pytest.raises(FrozenError, match="cannot assign to property 'shown'.*tree_at"):
        m.shown = 4


@pytest.mark.parametrize("place", ["plain", "list", "tuple", "dict", "nested", "Partial", "jax"])
def test_storing_an_own_bound_method_is_refused(place):
    class M(ec.Module):
        callback: Any

        def __init__(self):
            wrap = {"plain": lambda x: x, "list": lambda x: [x], "tuple": lambda x: (x,),
                    "dict": lambda x: {"k": x}, "nested": lambda x: [({"k": x},)],
                    "Partial": lambda x: ec.Partial(x, 1), "jax": jax.tree_util.Partial,
                    }[place]  # fmt: skip
            self.callback = wrap(self.f)

        def f(self):
            pass

    with pytest.raises(
        FieldError, match=r"Cannot assign methods in __init__.*`callback` of `.*M`.*`self.f`"
    ) as caught:
        M()
    assert isinstance(caught.value, ValueError)
    assert "def callback(self, ...): return self.f(...)" in str(caught.value)


def test_storing_an_own_bound_method_in_post_init_is_refused():
    class M(ec.Module):
        callback: Any = ec.field(init=False)

        def __post_init__(self):
            self.callback = self.f

        def f(self):
            pass

    with pytest.raises(FieldError, match="Cannot assign methods"):
        M()


def test_storing_a_bound_method_of_another_instance_is_allowed():
    class Other(ec.Module):
        w: Any

        def f(self, x):
            return self.w * x

    m = Pair(Other(3).f)
    assert m.a(2) == 6
    assert jax.tree.leaves(m) == [3, 2]


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, lambda f: jax.jit(jax.vmap(f))])
def test_a_transformed_module_in_a_field_is_warned_of(transform):
    class Layer(ec.Module):
        w: Any

        def __call__(self, x):
            return self.w * x

    with pytest.warns(EclipticWarning, match=r"field `a` of `Pair`.*`.*Layer` that holds arrays") as w:
        Pair(transform(Layer(jnp.ones(2))))
    assert "ecliptic.filter_vmap(module)" in str(w[0].message)
    assert w[0].filename == __file__


def test_a_transformed_bound_method_in_a_field_is_warned_of():
    class Layer(ec.Module):
        w: Any

        def f(self, x):
            return self.w * x

    with pytest.warns(EclipticWarning, match="hidden inside the function"):
        Pair(jax.vmap(Layer(jnp.ones(2)).f))


def test_a_function_jitted_in_init_is_warned_of():
    class M(ec.Module):
        fn: Any

        def __init__(self):
            def local(x):
                return x

            self.fn = jax.jit(local)

    with pytest.warns(EclipticWarning, match=r"field `fn` of `.*M`.*compiles again for each") as w:
        M()
    assert w[0].filename == __file__


def test_a_transformed_plain_function_in_a_field_is_fine():
    assert callable(Pair(jax.jit(jnp.sin)).a)
    assert callable(Pair(jax.vmap(jnp.sin)).a)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (jnp.ones((2, 3)), "JAX"),
        (jnp.ones((2, 3)).__array__(), "NumPy"),
        ((1, jnp.ones((2, 3))), "JAX"),
        (Pair(jnp.ones((2, 3))), "JAX"),
    ],
)
def test_an_array_in_a_static_field_is_warned_of(value, kind):
    class M(ec.Module):
        s: Any = ec.field(static=True)

    with pytest.warns(
        EclipticWarning,
        match=rf"A {kind} array is being set as static!.*`s` of `.*M`.*\(2, 3\).*float32",
    ) as w:
        M(value)
    assert "Drop `static=True` from `s`" in str(w[0].message)
    assert w[0].filename == __file__


def test_a_transformed_module_in_a_list_is_warned_of():
    class Layer(ec.Module):
        w: Any

        def __call__(self, x):
            return self.w * x

    with pytest.warns(EclipticWarning, match=r"field `a` of `Pair`.*hidden inside the function"):
        Pair([jnp.tanh, jax.vmap(Layer(jnp.ones(2)))])


@pytest.mark.parametrize(
    "value",
    [1, "s", None, (1, 2), len, int, jax.nn.relu, jnp.float32, (np.float32(1), 2), np.int64(3)],
)
def test_other_values_in_static_fields_are_fine(value):
    class M(ec.Module):
        s: Any = ec.field(static=True)

    assert M(value).s is value


# Half-made instances, errors, threads


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
    with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required positional argument: 'a'"):
        Pair()
