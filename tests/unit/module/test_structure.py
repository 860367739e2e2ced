"""Modules as PyTrees: what is in the structure, and that nothing else is."""

import functools
import gc
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec


class Inner(ec.Module):
    w: Any

    def f(self, x):
        return self.w * x


class Outer(ec.Module):
    inner: Inner
    parts: list
    named: dict
    size: int = ec.field(static=True, default=3)
    none: Any = None

    def __call__(self, x):
        return self.inner.f(x)

    @functools.cached_property
    def cached(self):
        return 5


def make():
    return Outer(Inner(jnp.ones(2)), [Inner(1.0), 2], {"b": 3, "a": len})


def test_children_are_the_fields_in_order():
    leaves = jax.tree.leaves(make())
    assert leaves[1:] == [1.0, 2, len, 3]


def test_paths_are_attribute_paths():
    pairs, _ = jax.tree_util.tree_flatten_with_path(make())
    assert [jax.tree_util.keystr(path) for path, _ in pairs] == [
        ".inner.w", ".parts[0].w", ".parts[1]", ".named['a']", ".named['b']",
    ]  # fmt: skip
    assert all(eval(f"m{jax.tree_util.keystr(p)}", {"m": make()}) is not None for p, _ in pairs)


def test_flatten_with_and_without_path_agree():
    leaves, structure = jax.tree.flatten(make())
    pairs, with_path = jax.tree_util.tree_flatten_with_path(make())
    assert structure == with_path
    assert leaves[1:] == [leaf for _, leaf in pairs][1:]


def test_unflatten_gives_back_an_equal_module_of_the_same_class():
    leaves, structure = jax.tree.flatten(make())
    rebuilt = jax.tree.unflatten(structure, leaves)
    assert type(rebuilt) is Outer
    assert rebuilt == make()
    assert (rebuilt.size, rebuilt.none) == (3, None)


def test_two_results_of_the_same_construction_have_equal_structures():
    x, y = jax.tree.structure(make()), jax.tree.structure(make())
    assert x == y
    assert hash(x) == hash(y)


def _call(m):
    m(2.0)


def _bind(m):
    m.__call__
    m.inner.f


def _cache(m):
    m.cached


def _print(m):
    repr(m)


def _jit(m):
    jax.jit(lambda w: w)(m.inner)


def _note(m):
    object.__setattr__(m, "_note", object())


def _compare(m):
    m == make()


def _wrap(m):
    functools.wraps(m.inner.f)(lambda x: x)


@pytest.mark.parametrize("use", [_call, _bind, _cache, _print, _jit, _note, _compare, _wrap])
def test_use_leaves_no_trace_in_the_structure(use):
    m = make()
    use(m)
    assert jax.tree.structure(m) == jax.tree.structure(make())
    assert m == make()


def test_jit_returns_modules_of_equal_structure():
    m = Inner(jnp.ones(2))
    assert jax.tree.structure(jax.jit(lambda x: x)(m)) == jax.tree.structure(m)
    assert jax.jit(lambda x: x)(m) == m


def test_a_module_is_a_carry_of_scan_and_goes_through_vmap_and_grad():
    m = Inner(jnp.ones(2))
    carry, _ = jax.lax.scan(
        lambda c, _: (jax.tree.map(lambda x: 2 * x, c), None), m, None, length=3
    )
    assert carry == Inner(8 * jnp.ones(2))
    assert jax.vmap(lambda n: n)(m) == m
    assert jax.grad(lambda n: n.f(3.0).sum())(m) == Inner(3 * jnp.ones(2))


def test_a_static_value_is_part_of_the_structure():
    class M(ec.Module):
        s: Any = ec.field(static=True)

    assert jax.tree.structure(M(1)) == jax.tree.structure(M(1))
    assert jax.tree.structure(M(1)) != jax.tree.structure(M(2))
    assert jax.tree.map(lambda x: 0, M("s")).s == "s"


def test_classes_of_the_same_name_have_different_structures():
    def define():
        class M(ec.Module):
            a: Any

        return M

    assert jax.tree.structure(define()(1)) != jax.tree.structure(define()(1))


def test_a_module_without_fields_has_no_leaves():
    class M(ec.Module):
        pass

    assert jax.tree.leaves(M()) == []
    assert jax.tree.map(lambda x: x, M()) == M()
    assert len(jax.tree.leaves([M(), 1])) == 1


def test_the_structure_shows_class_and_static_values():
    text = str(jax.tree.structure(make()))
    assert "Outer" in text
    assert "3" in text


def test_unflatten_accepts_any_leaves():
    structure = jax.tree.structure(Inner(1))
    for leaf in (None, "text", object(), [1, 2]):
        assert jax.tree.unflatten(structure, [leaf]).w is leaf


def test_prefix_trees_of_modules_work():
    axes = jax.tree.map(lambda _: 0, Inner(1))
    assert jax.vmap(lambda m: m.w, in_axes=(axes,))(Inner(jnp.arange(3))).shape == (3,)


def test_structures_of_an_error_name_the_attribute():
    with pytest.raises(ValueError, match="Inner"):
        jax.tree.map(lambda x, y: x, Inner(1), [1])


def test_fields_changed_in_a_subclass_keep_the_structures_apart():
    class Sub(Inner):
        pass

    assert jax.tree.structure(Sub(1)) != jax.tree.structure(Inner(1))


def test_the_same_module_twice_in_a_tree_is_two_nodes():
    shared = Inner(1)
    assert jax.tree.leaves([shared, shared]) == [1, 1]


def test_flattening_keeps_nothing_alive():
    import weakref

    m = Inner(1)
    ref = weakref.ref(m)
    jax.tree.flatten(m)
    del m
    gc.collect()
    assert ref() is None
