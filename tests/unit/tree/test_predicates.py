"""One table: for each kind of leaf, the answer of each predicate."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from ecliptic.tree import (
    array_type,
    is_array,
    is_array_like,
    is_inexact_array,
    is_inexact_array_like,
)
from tests.unit.tree.nodes import literal


class _TurnsIntoArray:
    def __jax_array__(self):
        return jnp.ones(2)


class _HasEveryAttribute:
    def __getattr__(self, name):
        return name


class _SubArray(np.ndarray):
    pass


class Row(NamedTuple):
    name: str
    leaf: Any
    array: bool
    array_like: bool
    inexact: bool
    inexact_like: bool


def _inexact(name, leaf):
    return Row(name, leaf, True, True, True, True)


def _exact(name, leaf):
    return Row(name, leaf, True, True, False, False)


def _other(name, leaf):
    return Row(name, leaf, False, False, False, False)


TABLE = [
    _inexact("JAX float", jnp.ones(2)),
    _inexact("JAX complex", jnp.ones(2, jnp.complex64)),
    _inexact("JAX bfloat16", jnp.ones(2, jnp.bfloat16)),
    _inexact("JAX float8", jnp.ones(2, jnp.float8_e4m3fn)),
    _exact("JAX int", jnp.arange(2)),
    _exact("JAX int4", jnp.ones(2, jnp.int4)),
    _exact("JAX bool", jnp.array(True)),
    _exact("typed key", jax.random.key(0)),
    _exact("old key", jax.random.PRNGKey(0)),
    _inexact("literal float", literal(np.ones(2, np.float32))),
    _exact("literal int", literal(np.ones(2, np.int32))),
    _inexact("NumPy float", np.ones(2)),
    _inexact("NumPy subclass", np.ones(2).view(_SubArray)),
    _inexact("NumPy bfloat16", np.ones(2, ml_dtypes.bfloat16)),
    _exact("NumPy int", np.arange(2)),
    _exact("NumPy object", np.array([None], dtype=object)),
    _exact("NumPy string", np.array(["a"])),
    _exact("NumPy record", np.zeros(2, [("a", "i4")])),
    _inexact("NumPy float scalar", np.float32(1)),
    _inexact("NumPy complex scalar", np.complex64(1)),
    _inexact("bfloat16 scalar", ml_dtypes.bfloat16(1)),
    _exact("NumPy int scalar", np.int32(1)),
    _exact("NumPy bool scalar", np.bool_(True)),
    _other("NumPy string scalar", np.str_("a")),
    _other("NumPy date", np.datetime64("2020-01-01")),
    _other("NumPy dtype", np.dtype("float32")),
    _other("NumPy class", np.float32),
    Row("bool", True, False, True, False, False),
    Row("int", 1, False, True, False, False),
    Row("float", 1.0, False, True, False, True),
    Row("complex", 1j, False, True, False, True),
    Row("__jax_array__", _TurnsIntoArray(), False, True, False, True),
    _other("every attribute", _HasEveryAttribute()),
    _other("ShapeDtypeStruct", jax.ShapeDtypeStruct((2,), jnp.float32)),
    _other("reference", jax.new_ref(jnp.ones(2))),
    _other("string", "a"),
    _other("None", None),
    _other("function", jnp.sin),
    _other("list", [1.0]),
]


def _id(row):
    return row.name


@pytest.mark.parametrize("row", TABLE, ids=_id)
def test_is_array(row):
    assert is_array(row.leaf) is row.array


@pytest.mark.parametrize("row", TABLE, ids=_id)
def test_is_array_like(row):
    assert is_array_like(row.leaf) is row.array_like


@pytest.mark.parametrize("row", TABLE, ids=_id)
def test_is_inexact_array(row):
    assert is_inexact_array(row.leaf) is row.inexact


@pytest.mark.parametrize("row", TABLE, ids=_id)
def test_is_inexact_array_like(row):
    assert is_inexact_array_like(row.leaf) is row.inexact_like


@pytest.mark.parametrize("row", TABLE, ids=_id)
def test_array_type_says_what_is_array_says(row):
    assert array_type(type(row.leaf)) is row.array


def _answers(leaf):
    predicates = (is_array, is_array_like, is_inexact_array, is_inexact_array_like)
    return tuple(predicate(leaf) for predicate in predicates)


@pytest.mark.parametrize(
    ("leaf", "inexact"),
    [(jnp.ones(2), True), (jnp.ones(2, jnp.bfloat16), True), (jnp.arange(2), False)]
    + [(jax.random.key(0), False)],
    ids=["float", "bfloat16", "int", "key"],
)
@pytest.mark.parametrize("transform", [jax.jit, jax.vmap], ids=["jit", "vmap"])
def test_tracers_answer_like_arrays(transform, leaf, inexact):
    seen = []
    if transform is jax.vmap:
        leaf = leaf[None]
    transform(lambda x: (seen.append((*_answers(x), array_type(type(x)))), x)[1])(leaf)
    assert seen == [(True, True, inexact, inexact, True)]


def test_tracers_under_grad_are_arrays():
    seen = []
    jax.grad(lambda x: (seen.append(_answers(x)), x)[1])(1.0)
    assert seen == [(True, True, True, True)]


def test_tracers_of_references_are_no_arrays():
    seen = []
    jax.jit(lambda ref: (seen.append(_answers(ref)), ref[...])[1])(jax.new_ref(jnp.ones(2)))
    assert seen == [(False, False, False, False)]
