"""One contract of equality and hash: equal modules hash equal."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import UnhashableError


class Pair(ec.Module):
    a: Any
    b: Any = ec.field(static=True, default=None)


class Same(ec.Module):
    a: Any
    b: Any = ec.field(static=True, default=None)


class Partly(ec.Module):
    a: Any
    note: Any = ec.field(compare=False, default=None)


class Unhashed(ec.Module):
    a: Any
    extra: Any = ec.field(hash=False, default=None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Pair(1),
        lambda: Pair(1.5, "s"),
        lambda: Pair(None),
        lambda: Pair((1, (2, "x"))),
        lambda: Pair(Pair(1), Pair(2)),
        lambda: Pair(len, len),
        lambda: Pair(np.float32(1)),
        lambda: Pair(jax.tree_util.Partial(max, 1)),
        lambda: Pair((jax.tree_util.Partial(max, 1), 2)),
        lambda: ec.Static((1, 2)),
    ],
)
def test_equal_modules_hash_equal(make):
    assert make() == make()
    assert hash(make()) == hash(make())
    assert len({make(), make()}) == 1


@pytest.mark.parametrize(("x", "y"), [(1, 1.0), (True, 1), (0.0, -0.0)])
def test_equal_leaves_of_different_types_hash_equal(x, y):
    assert Pair(x) == Pair(y)
    assert hash(Pair(x)) == hash(Pair(y))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (Pair(1), Pair(2)),
        (Pair(1, "s"), Pair(1, "t")),
        (Pair(1), Same(1)),
        (Pair((1,)), Pair([1])),
        (Pair(jnp.ones(2)), Pair(jnp.ones(3))),
        (Pair(jnp.ones(2)), Pair(jnp.zeros(2))),
        (Pair(jnp.ones(2)), Pair(jnp.ones(2, dtype="int32"))),
        (Pair(1), 1),
        (Pair(1), None),
        (Pair(1), "Pair(1)"),
    ],
)
def test_different_modules_are_unequal(x, y):
    assert (x == y) is False
    assert (x != y) is True


def test_a_subclass_is_another_class():
    class Sub(Pair):
        pass

    assert Sub(1) != Pair(1)
    assert Pair(1) != Sub(1)


def test_arrays_are_compared_by_value():
    assert Pair(jnp.ones(2)) == Pair(jnp.ones(2))
    assert (Pair(jnp.ones(2)) == Pair(jnp.ones(2))) is True
    assert Pair(np.ones(2)) == Pair(np.ones(2))


def test_typed_keys_are_compared_by_value():
    assert Pair(jax.random.key(0)) == Pair(jax.random.key(0))
    assert Pair(jax.random.key(0)) != Pair(jax.random.key(1))


def test_comparison_of_traced_modules_is_traced():
    assert jax.jit(lambda x, y: x == y)(Pair(1), Pair(1))
    assert not jax.jit(lambda x, y: x == y)(Pair(1), Pair(2))


@pytest.mark.parametrize(
    ("value", "kind"),
    [([1], "list"), ({"k": 1}, "dict"), (jnp.ones(2), "ArrayImpl"), (np.ones(2), "ndarray"),
     ((1, [2]), "tuple"), (jax.random.key(0), "PRNGKeyArray")],
)  # fmt: skip
def test_a_value_without_a_hash_is_named_by_class_and_field(value, kind):
    with pytest.raises(UnhashableError, match=rf"`Pair`.*field `a` holds a `{kind}`") as caught:
        hash(Pair(value))
    assert isinstance(caught.value, TypeError)
    assert "Use a tuple for a list" in str(caught.value)
    assert "field(hash=False)" in str(caught.value)


def test_a_value_without_a_hash_deep_inside_is_named_with_the_way_to_it():
    with pytest.raises(UnhashableError, match=r"its field `a` holds a `list`.*field `a` of `Pair`"):
        hash(Pair(Same([1])))


def test_a_static_field_without_a_hash_is_named():
    with pytest.raises(UnhashableError, match="field `b` holds a `list`"):
        hash(Pair(1, [1]))


def test_fields_that_are_not_compared_count_for_neither_equality_nor_hash():
    assert Partly(1, "x") == Partly(1, "y")
    assert hash(Partly(1, "x")) == hash(Partly(1, [2]))
    assert Partly(1) != Partly(2)


def test_fields_that_are_not_compared_are_ignored_deep_inside():
    assert Pair([Partly(1, "x")]) == Pair([Partly(1, "y")])
    assert Pair([Partly(1, "x")]) != Pair([Partly(2, "x")])
    assert Partly(Partly(1, 2), 3) == Partly(Partly(1, 4), 5)


def test_fields_that_are_not_compared_are_ignored_in_the_hash_of_foreign_nodes():
    x, y = (Pair(jax.tree_util.Partial(max, Partly(1, note))) for note in ("x", (1, 2)))
    assert x == y
    assert hash(x) == hash(y)


def test_static_fields_that_are_not_compared_are_ignored():
    class M(ec.Module):
        a: Any
        note: Any = ec.field(static=True, compare=False)

    assert M(1, "x") == M(1, "y")
    assert hash(M(1, "x")) == hash(M(1, "y"))
    assert M(1, "x") != M(2, "x")


def test_static_fields_of_partly_compared_modules_are_compared_by_value():
    class M(ec.Module):
        s: Any = ec.field(static=True)
        note: Any = ec.field(compare=False, default=0)

    assert M((1, "x")) == M((1, "x"))
    assert M((1, "x")) != M((1, "y"))


def test_equality_is_that_of_the_trees_where_every_class_is_fully_compared(monkeypatch):
    monkeypatch.setattr("ecliptic.module._module.partly_compared", set())
    assert Pair(Same(1), "s") == Pair(Same(1), "s")
    assert Pair(Same(1), "s") != Pair(Same(2), "s")


def test_fields_that_are_not_hashed_are_compared_still():
    assert Unhashed(1, [2]) != Unhashed(1, [3])
    assert hash(Unhashed(1, [2])) == hash(Unhashed(1, [2]))


def test_a_field_that_is_not_compared_cannot_be_hashed():
    class M(ec.Module):
        a: Any = ec.field(compare=False, hash=True)

    assert M(1) == M(2)
    assert hash(M(1)) == hash(M(2))


def test_a_user_defined_equality_wins_and_takes_the_hash_away():
    class M(ec.Module):
        a: Any

        def __eq__(self, other):
            return True

    class N(M):
        __hash__ = ec.Module.__hash__

    assert M(1) == M(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(M(1))
    assert hash(N(1)) == hash(N(1))


def test_fully_static_modules_are_static_arguments_of_jit():
    traces = []

    @functools.partial(jax.jit, static_argnums=0)
    def run(m, x):
        traces.append(1)
        return x * m.b

    assert [run(Pair(None, 2), 3), run(Pair(None, 2), 4), run(Pair(None, 3), 4)] == [6, 8, 12]
    assert len(traces) == 2


def test_the_static_half_of_a_partition_is_a_static_argument_of_jit():
    class Layer(ec.Module):
        w: Any
        activation: Any
        size: int = ec.field(static=True)

    traces = []

    @functools.partial(jax.jit, static_argnums=1)
    def run(arrays, static, x):
        traces.append(1)
        layer = ec.combine(arrays, static)
        return layer.activation(layer.w * x)

    for scale in (1.0, 2.0):
        arrays, static = ec.partition(Layer(jnp.ones(3) * scale, jnp.tanh, 3), ec.is_array)
        assert hash(static) == hash(static)
        run(arrays, static, jnp.ones(3))
    assert len(traces) == 1


def test_arrays_in_static_fields_name_class_and_field_at_comparison():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, y = Pair(1, np.ones(2)), Pair(1, np.ones(2))
    with pytest.raises(ValueError, match=r"static parts of two Pair.*Static fields must hold"):
        x == y


def test_modules_are_dictionary_keys():
    assert {Pair(1): "one"}[Pair(1)] == "one"
