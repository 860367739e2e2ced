import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import wadler_lindig as wl

from ecliptic.tree import TreeWLCustom, register_formatter, tree_pformat, tree_pprint
from tests.unit.tree.nodes import Affine, Pair, literal


def function(x):
    return x


class Plain:
    def __repr__(self):
        return "<plain>"


@dataclasses.dataclass
class Record:
    shown: Any
    hidden: Any = dataclasses.field(default=0, repr=False)


class Documented:
    def __pdoc__(self, **kwargs):
        return wl.TextDoc("<documented>")


class Everything:
    """Answers every attribute."""

    def __getattr__(self, name):
        return self

    def __call__(self):
        return self

    def __repr__(self):
        return "<everything>"


CYCLE: list = []
CYCLE.append(CYCLE)
STRUCT = jax.ShapeDtypeStruct((2, 3), jnp.float32)
MODULE = __name__

TABLE = [
    (jnp.ones((2, 3)), "f32[2,3]"),
    (jnp.array(1.0), "weak_f32[]"),
    (jnp.ones(2, jnp.bfloat16), "bf16[2]"),
    (jnp.ones(2, jnp.float8_e4m3fn), "f8_e4m3fn[2]"),
    (jnp.ones(2, jnp.int4), "i4[2]"),
    (jnp.ones(2, jnp.uint8), "u8[2]"),
    (jnp.ones(2, jnp.complex64), "c64[2]"),
    (jnp.ones(2, bool), "bool[2]"),
    (jax.random.key(0), "key<fry>[]"),
    (jax.random.split(jax.random.key(0, impl="rbg")), "key<rbg>[2]"),
    (literal(np.ones(2, np.float32)), "f32[2]"),
    (np.ones((2, 3)), "f64[2,3](numpy)"),
    (np.array([None]), "object[1](numpy)"),
    (np.float32(1), "np.float32(1.0)"),
    (ml_dtypes.bfloat16(1), "bfloat16(1.0)"),
    (STRUCT, "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"),
    (function, "<function function>"),
    (lambda x: x, "<function <lambda>>"),
    (jax.jit(function), "<wrapped function function>"),
    (jax.vmap(function), "<wrapped function function>"),
    (jax.custom_jvp(function), "<function function>"),
    (jax.custom_vjp(function), "<function function>"),
    (jax.nn.relu, "<function relu>"),
    (jnp.tanh, "<wrapped function tanh>"),
    (len, "<built-in function len>"),
    (np.add, "<ufunc 'add'>"),
    (functools.partial(function, 1, x=jnp.ones(2)), "partial(<function function>, 1, x=f32[2])"),
    (jax.tree_util.Partial(function, np.ones(2)), "Partial(<function function>, f64[2](numpy))"),
    (Plain, f"{MODULE}.Plain"),
    (Plain(), "<plain>"),
    (jnp.float32, "jax.numpy.float32"),
    (np.dtype("float32"), "dtype('float32')"),
    (Record(1, 2), "Record(shown=1)"),
    (Affine(jnp.ones(2), None), "Affine(weight=f32[2], bias=None)"),
    (Affine(1, 2, name="x"), "Affine(weight=1, bias=2, name='x')"),
    (Pair(1, jnp.ones(2)), "Pair(first=1, second=f32[2])"),
    ({"a": [1, (2,)], "b": "c\n"}, "{'a': [1, (2,)], 'b': 'c\\n'}"),
    (Documented(), "<documented>"),
    (Everything(), "<everything>"),
    (CYCLE, "[<recursive>]"),
]


@pytest.mark.parametrize(("value", "text"), TABLE)
def test_short_form(value, text):
    assert tree_pformat(value) == text


@pytest.mark.parametrize(
    "value", [jnp.ones((2, 3)), np.ones((2, 3)), jax.random.key(0), jnp.array(1.0)]
)
def test_long_arrays_are_written_as_they_write_themselves(value):
    assert tree_pformat(value, short_arrays=False) == repr(value)


def test_struct_as_array():
    assert tree_pformat([STRUCT], struct_as_array=True) == "[f32[2,3]]"


@pytest.mark.parametrize(
    ("truncate", "text"),
    [
        (lambda x: isinstance(x, tuple), "[tuple(...), Plain(...), f32[2]]"),
        (lambda x: isinstance(x, jax.Array), "[(1, 2), Plain(...), ArrayImpl(...)]"),
    ],
)
def test_truncated_values(truncate, text):
    tree = [(1, 2), Plain(), jnp.ones(2)]
    assert tree_pformat(tree, truncate_leaf=lambda x: isinstance(x, Plain) or truncate(x)) == text


def test_tracers():
    seen = []
    jax.jit(lambda x, key: seen.append(tree_pformat([x, key])))(jnp.ones(2), jax.random.key(0))
    jax.vmap(lambda x: seen.append(tree_pformat(x)))(jnp.ones(2))
    assert seen == ["[f32[2], key<fry>[]]", "f32[]"]


def test_width_and_indent():
    tree = Affine([jnp.ones(3)] * 2, "bias")
    expected = "Affine(\n    weight=[\n        f32[3],\n        f32[3]\n    ],\n    bias='bias'\n)"
    assert tree_pformat(tree, width=20, indent=4) == expected


def test_partial_breaks_over_lines_like_the_rest():
    text = tree_pformat(functools.partial(function, "a" * 20, "b" * 20), width=30, indent=4)
    assert text.splitlines()[1] == "    <function function>,"


def test_pprint_prints_what_pformat_gives(capsys):
    tree_pprint([STRUCT, 1], width=10, indent=3, struct_as_array=True)
    assert (
        capsys.readouterr().out
        == tree_pformat([STRUCT, 1], width=10, indent=3, struct_as_array=True) + "\n"
    )


def test_the_formatter_of_the_nearest_class_is_used():
    class Base:
        pass

    class Derived(Base):
        pass

    class Last(Derived):
        def __init__(self, part):
            self.part = part

    register_formatter(Base, lambda value, document: wl.TextDoc("<base>"))
    register_formatter(Last, lambda value, document: document(value.part))
    tree = [Base(), Derived(), Last(jnp.ones(2)), Last(Last(STRUCT))]
    assert tree_pformat(tree, struct_as_array=True) == "[<base>, <base>, f32[2], f32[2,3]]"


def test_a_formatter_may_leave_a_value_to_the_defaults():
    class Some(Plain):
        pass

    register_formatter(Some, lambda value, document: None)
    assert tree_pformat(Some()) == "<plain>"


def test_custom_works_with_wadler_lindig():
    custom = TreeWLCustom(lambda x: isinstance(x, int), short_arrays=True, struct_as_array=True)
    assert wl.pformat([1, STRUCT, jnp.ones(2)], custom=custom) == "[int(...), f32[2,3], f32[2]]"


@pytest.mark.parametrize("value", [1, Plain(), Plain, function, STRUCT, np.ones(2)])
def test_custom_leaves_the_rest_to_the_defaults(value):
    assert TreeWLCustom(lambda _: False, short_arrays=True, struct_as_array=False)(value) is None
