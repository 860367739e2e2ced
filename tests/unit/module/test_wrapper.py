"""Modules that look like what they wrap."""

import copy
import functools
import inspect
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.errors import DefinitionError


class Wrapper(ec.Module):
    """The wrapper's own."""

    fn: Any
    w: Any = 1

    @property
    def __wrapped__(self):
        return self.fn

    def __call__(self, *args):
        return self.fn(*args)


def increment(x: int) -> int:
    """Adds one."""
    return x + 1


def test_name_docstring_and_signature_are_those_of_the_wrapped():
    w = ec.module_update_wrapper(Wrapper(increment))
    assert (w.__name__, w.__qualname__, w.__doc__) == ("increment", "increment", "Adds one.")
    assert str(inspect.signature(w)) == "(x: int) -> int"
    assert w(1) == 2


def test_the_same_instance_comes_back_and_keeps_its_class():
    w = Wrapper(increment)
    assert ec.module_update_wrapper(w) is w
    assert type(w) is Wrapper
    assert (Wrapper.__name__, Wrapper.__doc__) == ("Wrapper", "The wrapper's own.")


@pytest.mark.parametrize(
    "way", [lambda w: jax.tree.map(lambda x: x, w), copy.copy, copy.deepcopy, lambda w: w]
)
def test_the_look_survives(way):
    w = way(ec.module_update_wrapper(Wrapper(increment)))
    assert (w.__name__, w.__doc__) == ("increment", "Adds one.")


def test_wrapping_leaves_no_trace_in_the_structure():
    w = ec.module_update_wrapper(Wrapper(increment))
    assert jax.tree.structure(w) == jax.tree.structure(Wrapper(increment))
    assert w == Wrapper(increment)
    assert hash(w) == hash(Wrapper(increment))


def test_wrappers_nest():
    w = ec.module_update_wrapper(Wrapper(ec.module_update_wrapper(Wrapper(increment))))
    assert (w.__name__, w.__doc__) == ("increment", "Adds one.")
    assert str(inspect.signature(w)) == "(x: int) -> int"
    assert inspect.unwrap(w) is increment


def test_a_bound_method_can_be_wrapped():
    class M(ec.Module):
        a: Any

        def f(self, x):
            """F."""
            return self.a * x

    w = ec.module_update_wrapper(Wrapper(M(jnp.array(2.0)).f))
    assert (w.__name__, w.__doc__, w(3.0)) == ("f", "F.", 6.0)
    assert str(inspect.signature(w)) == "(x)"
    assert len(jax.tree.leaves(w)) == 2


def test_a_wrapper_needs_the_property():
    class M(ec.Module):
        fn: Any

    with pytest.raises(DefinitionError, match=r"must supply `__wrapped__` as a property.*`.*M`"):
        ec.module_update_wrapper(M(increment))


def test_a_name_that_the_wrapped_lacks_is_an_attribute_error():
    w = ec.module_update_wrapper(Wrapper(functools.partial(increment)))
    with pytest.raises(AttributeError):
        w.__name__
    assert not hasattr(w, "absent")


def test_a_getattr_of_the_user_is_still_asked_for_other_names():
    class M(Wrapper):
        def __getattr__(self, name):
            if name == "extra":
                return 5
            raise AttributeError(name)

    w = ec.module_update_wrapper(M(increment))
    assert (w.extra, w.__name__) == (5, "increment")
    assert not hasattr(w, "absent")


def test_a_subclass_of_a_wrapper_looks_like_what_it_wraps():
    ec.module_update_wrapper(Wrapper(increment))

    class Sub(Wrapper):
        """Of the subclass."""

    w = ec.module_update_wrapper(Sub(increment))
    assert (w.__name__, w.__doc__, Sub.__doc__) == ("increment", "Adds one.", "Of the subclass.")
