"""Bound methods are PyTrees and cost no more than they must."""

import asyncio
import doctest
import functools
import inspect
import pickle
import sys
import types
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec


class Scale(ec.Module):
    w: Any
    name: str = ec.field(static=True, default="scale")

    def apply(self, x: float, *, shift: float = 0.0) -> float:
        """Scales.

        >>> Scale(2).apply(3)
        6.0
        """
        return self.w * x + shift

    def __call__(self, x):
        """Calls apply."""
        return self.apply(x)

    @jax.jit
    def jitted(self, x):
        """Jitted."""
        return self.w * x


class Child(Scale):
    def apply(self, x, *, shift=0.0):
        return 10 * super().apply(x, shift=shift)


def test_a_bound_method_is_a_module():
    m = Scale(2)
    assert isinstance(m.apply, ec.Module)
    assert isinstance(m.__call__, ec.Module)
    assert isinstance(m.jitted, ec.Module)


def test_a_method_can_be_called_with_all_kinds_of_arguments():
    m = Scale(2)
    assert (m.apply(3), m.apply(x=3, shift=1), m(3)) == (6, 7, 6)
    assert Scale.apply(m, 3) == 6


def test_methods_may_have_parameters_of_any_name():
    class M(ec.Module):
        a: int

        def f(this, self, args, kwargs, function=1):
            return this.a, self, args, kwargs, function

        def g(*args, **kwargs):
            return args[0].a, args[1:], kwargs

    assert M(0).f(self=1, args=2, kwargs=3, function=4) == (0, 1, 2, 3, 4)
    assert M(0).g(1, self=2) == (0, (1,), {"self": 2})


def test_the_leaves_of_a_bound_method_are_those_of_its_instance():
    m = Scale(2)
    assert jax.tree.leaves(m.apply) == [2]
    ((path, _),) = jax.tree_util.tree_leaves_with_path(m.apply)
    assert jax.tree_util.keystr(path) == ".__self__.w"


def test_a_mapped_bound_method_is_that_of_the_mapped_instance():
    doubled = jax.tree.map(lambda x: 2 * x, Scale(2).apply)
    assert doubled(3) == 12
    assert doubled == Scale(4).apply


def test_a_bound_method_equals_itself_and_hashes_equal():
    m = Scale(2)
    assert m.apply == m.apply
    assert hash(m.apply) == hash(m.apply)
    assert m.__call__ == m.__call__
    assert jax.tree.structure(m.apply) == jax.tree.structure(m.apply)


def test_bound_methods_of_equal_instances_are_equal_and_of_others_not():
    assert Scale(2).apply == Scale(2).apply
    assert Scale(2).apply != Scale(3).apply
    assert Scale(2).apply != Scale(2).__call__
    assert Scale(2).apply != Child(2).apply


def test_a_bound_method_with_arrays_equals_itself_and_names_the_field_without_hash():
    m = Scale(jnp.ones(2))
    assert m.apply == m.apply
    with pytest.raises(TypeError, match="field `w` of|its field `w`"):
        hash(m.apply)


def test_a_bound_method_of_a_static_module_does_not_retrace():
    class Fixed(ec.Module):
        n: int = ec.field(static=True)

        def f(self, x):
            return self.n * x

    traces = []

    @functools.partial(jax.jit, static_argnums=0)
    def run(method, x):
        traces.append(1)
        return method(x)

    m = Fixed(2)
    assert [run(m.f, 3), run(m.f, 3), run(Fixed(2).f, 3)] == [6, 6, 6]
    assert len(traces) == 1


def test_name_qualname_docstring_and_signature_are_those_of_the_function():
    f = Scale(2).apply
    assert f.__name__ == "apply"
    assert f.__qualname__ == "Scale.apply"
    assert f.__doc__ == Scale.apply.__doc__
    assert f.__doc__.startswith("Scales.")
    assert str(inspect.signature(f)) == "(x: float, *, shift: float = 0.0) -> float"
    assert Scale(2).__call__.__doc__ == "Calls apply."
    assert Scale(2).jitted.__name__ == "jitted"
    assert Scale(2).jitted.__doc__ == "Jitted."
    assert str(inspect.signature(Scale(2).jitted)) == "(x)"


def test_function_and_instance_can_be_read():
    m = Scale(2)
    assert m.apply.__func__ is Scale.apply
    assert m.apply.__self__ is m
    assert isinstance(m.apply.__wrapped__, types.MethodType)
    assert m.apply.__wrapped__(3) == 6


def test_attributes_of_the_function_can_be_read_from_the_bound_method():
    class M(ec.Module):
        def f(self):
            pass

        f.mark = 3

    assert M().f.mark == 3
    with pytest.raises(AttributeError, match="absent"):
        M().f.absent


def test_a_method_of_the_class_is_the_plain_function():
    assert isinstance(Scale.apply, types.FunctionType)
    assert str(inspect.signature(Scale.apply)).startswith("(self, x: float")


def test_super_works():
    assert Child(2).apply(3) == 60


def test_a_bound_method_stored_in_a_field_trains():
    class Holder(ec.Module):
        fn: Any

    holder = Holder(Scale(jnp.array(2.0)).apply)
    grads = jax.grad(lambda h: h.fn(3.0))(holder)
    assert grads.fn.__self__.w == 3.0


def test_a_bound_method_goes_through_jit_as_an_argument():
    traces = []

    @jax.jit
    def run(f, x):
        traces.append(1)
        return f(x)

    assert run(Scale(jnp.array(2.0)).apply, 3.0) == 6.0
    assert run(Scale(jnp.array(5.0)).apply, 3.0) == 15.0
    assert len(traces) == 1


def test_a_jitted_method_sees_the_weights_as_arguments():
    assert Scale(jnp.array(2.0)).jitted(3.0) == 6.0
    assert Scale(jnp.array(4.0)).jitted(3.0) == 12.0


@pytest.mark.parametrize("read", [lambda m: m, lambda m: m.apply, lambda m: m.__call__])
def test_plain_jit_of_a_module_with_arrays_says_what_to_use(read):
    with pytest.raises(TypeError, match=r"field `w` holds .*hash the function.*filter_jit"):
        jax.jit(read(Scale(jnp.ones(2))))(jnp.ones(2))


def test_coroutines_and_generators_are_recognised():
    class M(ec.Module):
        async def wait(self):
            return 1

        def count(self):
            yield 1

    assert inspect.iscoroutinefunction(M().wait)
    assert inspect.isgeneratorfunction(M().count)
    assert asyncio.run(M().wait()) == 1


def test_a_wildcard_getattr_is_not_asked_by_a_method_call():
    asked = []

    class Wild(ec.Module):
        a: int

        def __getattr__(self, name):
            asked.append(name)
            return "anything"

        def f(self):
            return self.a

        def __call__(self):
            return self.a

    m = Wild(3)
    assert (m.f(), m()) == (3, 3)
    assert asked == []
    assert jax.tree.leaves(m) == [3]
    assert m == Wild(3)
    hash(m)
    assert m.other == "anything"
    assert asked == ["other"]


def test_a_wildcard_getattr_works_under_map_and_jit():
    class Wild(ec.Module):
        inner: Any

        def __getattr__(self, name):
            return getattr(self.inner, name)

    m = Wild(Scale(2))
    assert m.apply(3) == 6
    assert jax.tree.map(lambda x: x + 1, m).w == 3
    assert jax.jit(lambda n: n.w)(m) == 2


def test_a_getattr_is_not_asked_for_fields_during_construction():
    class Wild(ec.Module):
        a: int
        b: int

        def __init__(self):
            self.a = 1
            self.b = 2

        def __getattr__(self, name):
            raise AssertionError(name)

    assert jax.tree.leaves(Wild()) == [1, 2]


def test_special_methods_work_as_operators():
    class M(ec.Module):
        a: Any

        def __add__(self, other):
            return M(self.a + other.a)

        def __getitem__(self, i):
            return self.a[i]

        def __len__(self):
            return len(self.a)

        def __contains__(self, x):
            return x in self.a

        def __iter__(self):
            return iter(self.a)

        def __bool__(self):
            return False

    m = M((1, 2))
    assert (m + m).a == (1, 2, 1, 2)
    assert (m[1], len(m), 2 in m, list(m), bool(m)) == (2, 2, True, [1, 2], False)


def test_call_can_be_inherited_and_overridden():
    class Louder(Scale):
        def __call__(self, x):
            return super().__call__(x) + 100

    assert Louder(2)(3) == 106
    assert isinstance(Louder(2).__call__, ec.Module)
    assert str(inspect.signature(Louder(2))) == "(x)"


def test_callable_tells_modules_with_call_from_those_without():
    class M(ec.Module):
        pass

    assert callable(Scale(1))
    assert not callable(M())


def test_functions_wrapped_by_a_decorator_are_methods():
    def twice(fn):
        @functools.wraps(fn)
        def wrapper(*args):
            return 2 * fn(*args)

        return wrapper

    class M(ec.Module):
        a: Any

        @twice
        def f(self, x):
            """Doc."""
            return self.a + x

    assert M(1).f(2) == 6
    assert isinstance(M(1).f, ec.Module)
    assert M(1).f.__doc__ == "Doc."
    assert str(inspect.signature(M(1).f)) == "(x)"


def test_a_bound_method_can_be_pickled():
    f = pickle.loads(pickle.dumps(Scale(2).apply))
    assert f == Scale(2).apply
    assert f(3) == 6


def test_a_bound_method_is_frozen():
    with pytest.raises(AttributeError):
        Scale(2).apply.mark = 3


def test_a_bound_method_prints_its_function_and_instance():
    assert (
        repr(Scale(2).apply) == "BoundMethod(__func__=<function Scale.apply>, __self__=Scale(w=2))"
    )


def test_doctest_finds_the_tests_of_methods():
    tests = doctest.DocTestFinder().find(Scale, "Scale", module=sys.modules[__name__])
    assert "Scale.apply" in [test.name for test in tests if test.examples]


def test_a_lambda_in_the_class_body_is_a_method():
    class M(ec.Module):
        a: int
        f = lambda self: self.a

    assert M(3).f() == 3
    assert isinstance(M(3).f, ec.Module)


def test_other_descriptors_stay_as_they_are():
    class M(ec.Module):
        a: int

        @functools.lru_cache  # noqa: B019
        def cached(self):
            return [self.a]

        partial = functools.partialmethod(lambda self, x, y: self.a + x + y, 1)

        @functools.singledispatchmethod
        def single(self, x):
            return "other"

        @single.register
        def _(self, x: int):
            return "int"

    m = M(3)
    assert m.cached() is m.cached()
    assert m.partial(2) == 6
    assert (m.single(1), m.single("s")) == ("int", "other")


def test_methods_are_no_leaves_and_no_fields_of_the_instance():
    assert "apply" not in Scale(1).__dict__
    assert jax.tree.leaves(Scale(1)) == [1]


class Called(ec.Module):
    x: Any

    def __call__(self, y):
        return self.x * y


class CalledToo(Called):
    pass


class Uncalled(ec.Module):
    pass


def test_a_module_that_can_be_called_has_the_name_of_its_class():
    assert Called(1).__name__ == Called.__name__ == "Called"
    assert CalledToo(1).__name__ == "CalledToo"
    assert not hasattr(Uncalled(), "__name__")


def test_jax_does_not_print_a_module_to_name_it(monkeypatch):
    def refuse(self):
        raise AssertionError("printed")

    monkeypatch.setattr(Called, "__repr__", refuse)
    m = Called(jnp.array(2.0))
    assert jax.vmap(m)(jnp.ones(3)).tolist() == [2, 2, 2]
    assert ec.filter_jit(m)(jnp.array(1.0)) == 2
    assert ec.filter_vmap(m)(jnp.ones(3)).tolist() == [2, 2, 2]
