"""What is written comes back: for any tree, in each format."""

import io
import tempfile
from pathlib import Path

import equinox
import jax
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ecliptic.serialise import (
    from_state_dict,
    load,
    load_metadata,
    save,
    to_state_dict,
    tree_deserialise_leaves,
    tree_serialise_leaves,
)
from tests.support.leaves import LEAVES, assert_same, blank

# Each leaf is named, so that a failure is small: the trees hold names until they are filled.
NAMES = sorted(LEAVES)
# What Equinox writes and reads as well.
BOTH = [
    "NumPy float64",
    "JAX float32",
    "JAX bool",
    "JAX bfloat16",
    "float",
    "True",
    "words",
    "date",
]
KEYS = st.one_of(st.text(max_size=3), st.integers(0, 9).map(str))

JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


def trees(names):
    return st.recursive(
        st.sampled_from(names),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.tuples(inner, inner),
            st.dictionaries(KEYS, inner, max_size=3),
        ),
        max_leaves=6,
    )


def _filled(tree):
    return jax.tree.map(LEAVES.get, tree)


def _blank(tree):
    return jax.tree.map(lambda name: blank(LEAVES[name]), tree)


def _alike(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert_same(a, b)


FEW = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])


@FEW
@given(trees(NAMES))
def test_a_saved_tree_is_loaded(names):
    tree = _filled(names)
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "x", tree)
        _alike(load(Path(folder) / "x", _blank(names)), tree)


@FEW
@given(JSON)
def test_metadata_comes_back(metadata):
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "x", [], metadata=metadata)
        assert load_metadata(Path(folder) / "x").metadata == metadata


@FEW
@given(trees([name for name in NAMES if name != "JAX weak"]))
def test_a_state_dictionary_fills_the_same_tree(names):
    tree = _filled(names)
    _alike(from_state_dict(_blank(names), to_state_dict(tree)), tree)


@FEW
@given(trees(BOTH))
def test_a_stream_is_read_here_and_by_equinox(names):
    tree, like = _filled(names), _blank(names)
    ours, theirs = io.BytesIO(), io.BytesIO()
    tree_serialise_leaves(ours, tree)
    equinox.tree_serialise_leaves(theirs, tree)
    assert ours.getvalue() == theirs.getvalue()
    _alike(tree_deserialise_leaves(io.BytesIO(theirs.getvalue()), like), tree)
    for one, other in zip(
        jax.tree.leaves(equinox.tree_deserialise_leaves(io.BytesIO(ours.getvalue()), like)),
        jax.tree.leaves(tree),
        strict=True,
    ):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
