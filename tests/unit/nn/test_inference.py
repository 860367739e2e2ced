"""`inference_mode`."""

from collections import namedtuple
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from ecliptic import nn
from ecliptic.module import Module, field
from ecliptic.tree import combine, is_array, partition, tree_equal


class Block(Module):
    dropout: Any
    inference: Any


class Fixed(Module):
    dropout: Any
    inference: bool = field(static=True, default=False)


def _flags(tree):
    return [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, bool)]


@pytest.mark.parametrize("value", [True, False])
def test_every_flag_is_set(value):
    model = nn.Sequential([nn.Dropout(inference=not value), {"a": nn.Dropout().__call__}["a"]])
    assert _flags(nn.inference_mode(model, value)) == [value, value]


def test_flags_below_a_node_with_a_flag_are_set():
    changed = nn.inference_mode(Block(Block(nn.Dropout(), False), False))
    assert changed.inference is True
    assert changed.dropout.inference is True
    assert changed.dropout.dropout.inference is True


def test_a_static_flag_is_set_in_a_copy():
    model = Block(Fixed(nn.Dropout()), False)
    changed = nn.inference_mode(model)
    assert changed.dropout.inference is True
    assert changed.dropout.dropout.inference is True
    assert model.dropout.inference is False
    assert nn.inference_mode(Fixed(nn.Dropout())).inference is True


@pytest.mark.parametrize("half", [0, 1])
def test_each_half_of_a_partitioned_model_can_be_set(getkey, half):
    model = Block(nn.Dropout(), False)
    halves = list(partition((model, nn.Linear(2, 2, key=getkey())), is_array))
    halves[half] = nn.inference_mode(halves[half])
    assert halves[half][0].inference is True
    assert halves[half][0].dropout.inference is True


def test_the_static_half_set_and_combined_is_the_model_set(getkey):
    model = (nn.Linear(2, 2, key=getkey()), Block(nn.Dropout(), False))
    dynamic, static = partition(model, is_array)
    assert tree_equal(combine(dynamic, nn.inference_mode(static)), nn.inference_mode(model))


def test_flags_held_as_arrays_are_set():
    changed = nn.inference_mode(Block(None, jnp.array([False, True])))
    assert changed.inference is True


def test_flags_of_other_node_types_are_set():
    Pair = namedtuple("Pair", ["inference", "other"])
    assert nn.inference_mode(Pair(False, False)) == Pair(True, False)


def test_what_is_no_flag_stays(getkey):
    linear = nn.Linear(2, 2, key=getkey())
    model = [Block(None, linear), Block(None, jnp.sin), {"inference": False}, False]
    assert tree_equal(nn.inference_mode(model), model)


def test_the_model_itself_is_not_changed():
    model = nn.Dropout()
    nn.inference_mode(model)
    assert model.inference is False


def test_the_flags_are_listed_with_their_paths():
    model = [Block(Fixed(Fixed(nn.Dropout())), False), {"a": nn.Dropout(inference=True)}]
    paths = [
        "[0].dropout.inference",
        "[0].dropout.dropout.inference",
        "[0].dropout.dropout.dropout.inference",
        "[0].inference",
        "[1]['a'].inference",
    ]
    assert nn.inference_flags(model) == dict(zip(paths, [False] * 4 + [True], strict=True))
    assert nn.inference_flags(nn.inference_mode(model)) == dict.fromkeys(paths, True)


def test_a_model_without_flags_has_none_to_list(getkey):
    assert nn.inference_flags(nn.Linear(2, 2, key=getkey())) == {}


def test_a_hole_in_the_place_of_a_flag_is_listed():
    arrays, _ = partition(nn.Dropout(), is_array)
    assert nn.inference_flags(arrays) == {"inference": None}


def test_batch_norm_and_spectral_norm_have_flags(getkey):
    norm = nn.BatchNorm(2, "batch", mode="batch")
    spectral = nn.SpectralNorm(nn.Linear(2, 2, key=getkey()), "weight", key=getkey())
    changed = nn.inference_mode([norm, spectral])
    assert nn.inference_flags(changed) == {"[0].inference": True, "[1].inference": True}
