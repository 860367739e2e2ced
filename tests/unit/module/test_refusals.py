"""What a Module refuses or warns of, and what it says then."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import EclipticWarning, FieldError, FrozenError, InitialisationError


class Pair(ec.Module):
    a: Any
    b: Any = 2


class Custom(ec.Module):
    a: Any
    b: Any = 2

    def __init__(self, a):
        self.a = a


def test_an_unset_field_is_named_with_its_class_and_the_way_out():
    class M(ec.Module):
        a: int
        b: int

        def __init__(self):
            self.a = 1

    with pytest.raises(
        InitialisationError,
        match=r"Field 'b' was not initialized.*`.*M` ended.*Assign `self.b = ...`",
    ) as caught:
        M()
    assert isinstance(caught.value, TypeError)


def test_several_unset_fields_are_all_named():
    class M(ec.Module):
        a: int
        b: int

        def __init__(self):
            pass

    with pytest.raises(InitialisationError, match=r"Fields 'a', 'b' were not initialized.*`.*M`"):
        M()


def test_an_unset_field_outside_init_is_refused_for_a_generated_init():
    class M(ec.Module):
        a: int = ec.field(init=False)

    with pytest.raises(InitialisationError, match="Field 'a'"):
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
    with pytest.raises(InitialisationError, match="Field 'a'"):
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

    with pytest.warns(
        EclipticWarning, match=r"field `a` of `Pair`.*`.*Layer` that holds arrays"
    ) as w:
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
