"""Modules: fields, initialisation, converters, abstract names, methods, Partial, wrappers."""

# ruff: noqa: D103 (the name of a program says what it is about)

import abc
import copy
import dataclasses
import functools
import pickle
import weakref
from typing import Any, ClassVar, Generic, TypeVar

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from conformance.parity._table import Table

TABLE = Table("modules")
T = TypeVar("T")


def _point(eqx):
    class Point(eqx.Module):
        x: Any
        y: Any = 2.0
        name: str = eqx.field(static=True, default="p")

        def shifted(self, by=1):
            return Point(self.x + by, self.y, self.name)

        def total(self):
            """The sum of both."""
            return self.x + self.y

    return Point


def _custom(eqx):
    class Custom(eqx.Module):
        weight: Any
        size: int = eqx.field(static=True)

        def __init__(self, size, scale=1.0):
            self.size = size
            self.weight = scale * jnp.ones(size)

        def __call__(self, x):
            return self.weight * x

    return Custom


TABLE.rows(
    a_module_is_made_by_position=lambda eqx: _point(eqx)(1.0, 3.0, "q"),
    a_module_is_made_by_keyword=lambda eqx: _point(eqx)(y=1.0, x=3.0),
    a_default_is_used=lambda eqx: _point(eqx)(1.0),
    a_missing_argument=lambda eqx: _point(eqx)(),
    an_argument_too_many=lambda eqx: _point(eqx)(1, 2, "a", 4),
    an_unknown_keyword=lambda eqx: _point(eqx)(1, z=2),
    a_custom_init=lambda eqx: _custom(eqx)(3, scale=2.0),
    a_custom_init_with_a_wrong_call=lambda eqx: _custom(eqx)(),
    leaves=lambda eqx: jax.tree.leaves(_point(eqx)(jnp.ones(2), 3)),
    number_of_leaves=lambda eqx: jax.tree.structure(_point(eqx)(1, {"a": 2})).num_leaves,
    paths=lambda eqx: [
        jtu.keystr(path) for path, _ in jtu.tree_leaves_with_path(_point(eqx)([1, 2], {"k": 3}))
    ],
    kinds_of_keys=lambda eqx: [
        type(key).__name__ for path, _ in jtu.tree_leaves_with_path(_point(eqx)(1)) for key in path
    ],
    tree_map=lambda eqx: jax.tree.map(lambda x: x + 1, _point(eqx)(1, 2)),
    structures_are_equal=lambda eqx: (
        lambda P: jax.tree.structure(P(1, 2)) == jax.tree.structure(P(3, 4))
    )(_point(eqx)),
    structures_differ_by_static_fields=lambda eqx: (
        lambda P: jax.tree.structure(P(1, 2, "a")) == jax.tree.structure(P(1, 2, "b"))
    )(_point(eqx)),
    equal=lambda eqx: (lambda P: (P(1, 2) == P(1, 2), P(1, 2) == P(1, 3)))(_point(eqx)),
    equal_to_something_else=lambda eqx: _point(eqx)(1, 2) == 3,
    equal_arrays=lambda eqx: (lambda P: bool(P(jnp.ones(2)) == P(jnp.ones(2))))(_point(eqx)),
    unequal_arrays=lambda eqx: (lambda P: bool(P(jnp.ones(2)) == P(jnp.zeros(2))))(_point(eqx)),
    hashes_are_equal=lambda eqx: (lambda P: hash(P(1, 2)) == hash(P(1, 2)))(_point(eqx)),
    an_array_is_not_hashable=lambda eqx: hash(_point(eqx)(jnp.ones(2))),
    a_list_is_not_hashable=lambda eqx: hash(_point(eqx)([1])),
    repr=lambda eqx: repr(_point(eqx)(1, jnp.ones(3))),
    str=lambda eqx: str(_point(eqx)(1, "text")),
    frozen_assignment=lambda eqx: setattr(_point(eqx)(1), "x", 2),
    frozen_deletion=lambda eqx: delattr(_point(eqx)(1), "x"),
    unknown_attribute=lambda eqx: _point(eqx)(1).z,
    a_method=lambda eqx: _point(eqx)(1).shifted(by=4),
    a_method_of_the_class=lambda eqx: (lambda P: P.total(P(1, 5)))(_point(eqx)),
    a_bound_method_is_a_tree=lambda eqx: jax.tree.leaves(_point(eqx)(1, 2).total),
    a_mapped_bound_method=lambda eqx: jax.tree.map(lambda x: 2 * x, _point(eqx)(1, 2).total)(),
    bound_methods_are_equal=lambda eqx: (lambda p: p.total == p.total)(_point(eqx)(1, 2)),
    name_of_a_bound_method=lambda eqx: _point(eqx)(1).total.__name__,
    doc_of_a_bound_method=lambda eqx: _point(eqx)(1).total.__doc__,
    self_of_a_bound_method=lambda eqx: _point(eqx)(1, 2).total.__self__,
    is_a_dataclass=lambda eqx: dataclasses.is_dataclass(_point(eqx)),
    fields=lambda eqx: [f.name for f in dataclasses.fields(_point(eqx))],
    replace=lambda eqx: dataclasses.replace(_point(eqx)(1, 2), x=5),
    asdict=lambda eqx: dataclasses.asdict(_point(eqx)(1, 2)),
    copy=lambda eqx: copy.copy(_point(eqx)([1], 2)),
    deepcopy=lambda eqx: copy.deepcopy(_point(eqx)([1], jnp.ones(2))),
    weak_reference=lambda eqx: (lambda p: weakref.ref(p)() is p)(_point(eqx)(1)),
    module_of_the_metaclass=lambda eqx: issubclass(type(eqx.Module), abc.ABCMeta),
    match_args=lambda eqx: _point(eqx).__match_args__,
    empty=lambda eqx: jax.tree.leaves(eqx.Module()),
    vars=lambda eqx: sorted(vars(_custom(eqx)(2))),
    object_setattr=lambda eqx: (lambda p: (object.__setattr__(p, "x", 9), p.x, jax.tree.leaves(p)))(
        _point(eqx)(1, 2)
    ),
)


@TABLE
def a_field_that_is_not_set(eqx):
    class M(eqx.Module):
        a: int
        b: int

        def __init__(self):
            self.a = 1

    return M()


@TABLE
def an_attribute_that_is_no_field(eqx):
    class M(eqx.Module):
        a: int

        def __init__(self):
            self.a = 1
            self.c = 2

    return M()


@TABLE
def a_default_survives_a_custom_init(eqx):
    class M(eqx.Module):
        a: int = 3
        b: int = 4

        def __init__(self):
            self.b = 1

    return M().a, M().b


@TABLE
def converters_run_on_arguments(eqx):
    class M(eqx.Module):
        a: Any = eqx.field(converter=jnp.asarray)
        b: Any = eqx.field(converter=float, default=1)

    return M(1), M([1.0, 2.0], 3)


@TABLE
def converters_run_after_a_custom_init(eqx):
    class M(eqx.Module):
        a: Any = eqx.field(converter=lambda x: x + 1)

        def __init__(self, a):
            self.a = a
            self.a = self.a * 10

    return M(1)


@TABLE
def converters_do_not_run_when_mapped(eqx):
    class M(eqx.Module):
        a: Any = eqx.field(converter=lambda x: x + 100)

    return jax.tree.map(lambda x: -x, M(1))


@TABLE
def a_converter_runs_before_post_init(eqx):
    seen = []

    class M(eqx.Module):
        a: Any = eqx.field(converter=float)

        def __post_init__(self):
            seen.append(type(self.a).__name__)

    M(1)
    return seen


@TABLE
def post_init_may_assign(eqx):
    class M(eqx.Module):
        a: int
        b: int = eqx.field(init=False)

        def __post_init__(self):
            self.b = self.a + 1

    return M(2)


@TABLE
def post_init_without_its_field(eqx):
    class M(eqx.Module):
        a: int
        b: int = eqx.field(init=False)

        def __post_init__(self):
            pass

    return M(2)


@TABLE
def check_init_runs_last(eqx):
    order = []

    class A(eqx.Module):
        a: int

        def __check_init__(self):
            order.append("A")

    class B(A):
        b: int

        def __check_init__(self):
            order.append("B")

    B(1, 2)
    return order


@TABLE
def check_init_may_refuse(eqx):
    class A(eqx.Module):
        a: int

        def __check_init__(self):
            if self.a < 0:
                raise ValueError("negative")

    return A(-1)


@TABLE
def check_init_may_not_assign(eqx):
    class A(eqx.Module):
        a: int

        def __check_init__(self):
            self.a = 3

    return A(-1)


@TABLE
def inherited_fields_come_first(eqx):
    class A(eqx.Module):
        a: int

    class B(A):
        b: int

    return B(1, 2), jax.tree.leaves(B(1, 2))


@TABLE
def an_inherited_init_is_used(eqx):
    class A(eqx.Module):
        a: int

        def __init__(self):
            self.a = 7

    class B(A):
        pass

    return B()


@TABLE
def super_init(eqx):
    class A(eqx.Module):
        a: int

        def __init__(self, a):
            self.a = a

    class B(A):
        b: int

        def __init__(self):
            super().__init__(1)
            self.b = 2

    return B()


@TABLE
def two_bases(eqx):
    class A(eqx.Module):
        a: int

    class B(eqx.Module):
        b: int

    class C(A, B):
        c: int

    return [f.name for f in dataclasses.fields(C)]


@TABLE
def a_field_is_overridden(eqx):
    class A(eqx.Module):
        a: int
        b: int = 2

    class B(A):
        a: int = 5

    return B(), [f.name for f in dataclasses.fields(B)]


@TABLE
def static_fields_stay_static_in_subclasses(eqx):
    class A(eqx.Module):
        a: int = eqx.field(static=True)

    class B(A):
        pass

    return jax.tree.leaves(B(1))


@TABLE
def a_plain_base_class(eqx):
    class Mixin:
        def greet(self):
            return f"I am {self.a}"

    class M(Mixin, eqx.Module):
        a: int

    return M(3).greet()


@TABLE
def properties_and_class_methods(eqx):
    class M(eqx.Module):
        a: int

        @property
        def double(self):
            return 2 * self.a

        @classmethod
        def make(cls):
            return cls(5)

        @staticmethod
        def help():
            return "help"

    return M.make().double, M(1).help(), M.help()


@TABLE
def a_cached_property(eqx):
    class M(eqx.Module):
        a: int

        @functools.cached_property
        def double(self):
            return 2 * self.a

    return M(2).double


@TABLE
def class_variables_are_no_fields(eqx):
    class M(eqx.Module):
        kind: ClassVar[str] = "k"
        a: int = 1

    return M(), M.kind, M().kind


@TABLE
def generic_modules(eqx):
    class M(eqx.Module, Generic[T]):
        a: T

    return M[int](1), M(2.0)


@TABLE
def an_abstract_method(eqx):
    class A(eqx.Module):
        @abc.abstractmethod
        def f(self): ...

    return A()


@TABLE
def an_abstract_method_is_implemented(eqx):
    class A(eqx.Module):
        @abc.abstractmethod
        def f(self): ...

    class B(A):
        def f(self):
            return 3

    return B().f()


@TABLE
def an_abstract_variable(eqx):
    class A(eqx.Module):
        a: eqx.AbstractVar[int]

    return sorted(A.__abstractvars__), A()


@TABLE
def an_abstract_variable_becomes_a_field(eqx):
    class A(eqx.Module):
        a: eqx.AbstractVar[int]

    class B(A):
        a: int

    return B(3), sorted(B.__abstractvars__)


@TABLE
def an_abstract_variable_becomes_a_property(eqx):
    class A(eqx.Module):
        a: eqx.AbstractVar[int]

    class B(A):
        @property
        def a(self):
            return 4

    return B().a, jax.tree.leaves(B())


@TABLE
def an_abstract_class_variable(eqx):
    class A(eqx.Module):
        a: eqx.AbstractClassVar[int]

    class B(A):
        a: ClassVar[int] = 3

    return sorted(A.__abstractclassvars__), B().a, B.a


@TABLE
def an_abstract_class_variable_that_nobody_sets(eqx):
    class A(eqx.Module):
        a: eqx.AbstractClassVar[int]

    return A()


@TABLE
def an_abstract_variable_with_a_value(eqx):
    class A(eqx.Module):
        a: eqx.AbstractVar[int] = 3

    return A


@TABLE
def strict_is_accepted(eqx):
    class A(eqx.Module, strict=True):
        a: int

    return A(1)


@TABLE
def strict_config_makes_a_class_abstract(eqx):
    class A(eqx.Module, strict=eqx.StrictConfig(force_abstact=True)):
        pass

    return A()


@TABLE
def strict_config(eqx):
    return eqx.StrictConfig(), eqx.StrictConfig(force_abstact=True), eqx.StrictConfig(other=3)


@TABLE
def a_static_array_warns(eqx):
    class A(eqx.Module):
        a: Any = eqx.field(static=True)

    return jax.tree.leaves(A(jnp.ones(2)))


@TABLE
def a_static_numpy_array_warns(eqx):
    class A(eqx.Module):
        a: Any = eqx.field(static=True)

    return jax.tree.leaves(A(np.ones(2)))


@TABLE
def a_stored_bound_method_of_itself(eqx):
    class A(eqx.Module):
        a: Any

        def __init__(self):
            self.a = self.f

        def f(self):
            return 1

    return A()


@TABLE
def a_stored_transformed_function_warns(eqx):
    class A(eqx.Module):
        a: Any

        def __init__(self):
            self.a = jax.jit(jnp.sin)

    return A() and None


@TABLE
def a_stored_map_of_a_module_warns(eqx):
    class A(eqx.Module):
        a: Any

    return A(jax.vmap(_custom(eqx)(2))) and None


@TABLE
def a_mutable_default(eqx):
    class A(eqx.Module):
        a: list = []  # noqa: RUF012 (the mistake)

    return A


@TABLE
def a_default_factory(eqx):
    class A(eqx.Module):
        a: list = eqx.field(default_factory=list)

    return A(), A().a is A().a


@TABLE
def an_array_default(eqx):
    class A(eqx.Module):
        a: Any = jnp.array(1.0)

    return A()


@TABLE
def keyword_only_fields(eqx):
    class A(eqx.Module):
        a: int = eqx.field(kw_only=True)
        b: int = 2

    return A(a=1), A(3, a=1)


@TABLE
def metadata_is_kept(eqx):
    class A(eqx.Module):
        a: int = eqx.field(metadata={"unit": "m"}, static=True)

    return dict(dataclasses.fields(A)[0].metadata)["unit"]


@TABLE
def metadata_may_not_say_static_twice(eqx):
    return eqx.field(metadata={"static": True}, static=True)


@TABLE
def dataclasses_field_works_too(eqx):
    class A(eqx.Module):
        a: int = dataclasses.field(default=3)

    return A()


@TABLE
def repr_false_is_obeyed(eqx):
    class A(eqx.Module):
        a: int = eqx.field(repr=False)
        b: int = 1

    return repr(A(2))


@TABLE
def a_module_with_eq_of_its_own(eqx):
    class A(eqx.Module):
        a: int

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 3

    return A(1) == A(2), hash(A(5))


@TABLE
def init_subclass_gets_keywords(eqx):
    seen = []

    class A(eqx.Module):
        def __init_subclass__(cls, tag=None, **kwargs):
            super().__init_subclass__(**kwargs)
            seen.append(tag)

    class B(A, tag="b"):
        pass

    return seen, B().__class__


@TABLE
def a_metaclass_of_its_own(eqx):
    class Meta(type(eqx.Module)):
        def __call__(cls, *args):
            return super().__call__(*[2 * arg for arg in args])

    class A(eqx.Module, metaclass=Meta):
        a: int

    return A(4)


@TABLE
def a_wildcard_getattr(eqx):
    asked = []

    class A(eqx.Module):
        a: int

        def __getattr__(self, name):
            asked.append(name)
            raise AttributeError(name)

        def f(self):
            return self.a

    return A(1).f(), asked


@TABLE
def a_call_method_is_jax_compatible(eqx):
    return jax.vmap(_custom(eqx)(2))(jnp.ones((3, 2))), jax.jit(_custom(eqx)(2))(jnp.ones(2))


@TABLE
def jax_grad_of_a_module_of_arrays(eqx):
    return jax.grad(lambda m: jnp.sum(m(jnp.arange(2.0)) ** 2))(_custom(eqx)(2))


@TABLE
def a_module_in_scan(eqx):
    return jax.lax.scan(
        lambda m, x: (jax.tree.map(lambda w: w + x, m), m(x)), _custom(eqx)(2), jnp.arange(3.0)
    )


@TABLE
def super_methods(eqx):
    class A(eqx.Module):
        a: int

        def f(self):
            return self.a

    class B(A):
        def f(self):
            return super().f() + 1

    return B(2).f()


@TABLE
def a_field_may_be_named_like_a_method_of_dict(eqx):
    class A(eqx.Module):
        items: Any
        keys: Any

    return A(1, 2)


@TABLE
def a_class_in_a_field(eqx):
    class A(eqx.Module):
        a: Any

    return jax.tree.leaves(A(int))


TABLE.rows(
    partial=lambda eqx: eqx.Partial(lambda x, y, z=0: (x, y, z), 1)(2, z=3),
    leaves_of_a_partial=lambda eqx: jax.tree.leaves(eqx.Partial(jnp.add, jnp.ones(2), k=3))[1:],
    keywords_of_the_call_win=lambda eqx: eqx.Partial(lambda z: z, z=1)(z=2),
    a_partial_of_a_partial=lambda eqx: eqx.Partial(eqx.Partial(lambda *a: a, 1), 2)(3),
    parts_of_a_partial=lambda eqx: (lambda p: (p.args, p.keywords))(
        eqx.Partial(lambda *a, **k: a, 1, b=2)
    ),
    static_field_warns=lambda eqx: eqx.static_field() is not None,
    pickle_of_a_layer=lambda eqx: pickle.loads(
        pickle.dumps(eqx.nn.Linear(1, 2, key=jax.random.PRNGKey(0)))
    ),
)


@TABLE
def module_update_wrapper(eqx):
    class W(eqx.Module):
        fn: Any

        @property
        def __wrapped__(self):
            return self.fn

        def __call__(self, *args):
            return self.fn(*args)

    def f(x):
        """Doc of f."""
        return x + 1

    w = eqx.module_update_wrapper(W(f))
    return w.__name__, w.__doc__, w(1)


@TABLE
def module_update_wrapper_without_wrapped(eqx):
    class W(eqx.Module):
        fn: Any

        def __call__(self, *args):
            return self.fn(*args)

    return eqx.module_update_wrapper(W(jnp.sin))
