"""Two trees side by side."""

import dataclasses
import re

import jax
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.tree import first_difference
from ecliptic.tree._difference import opposites
from ecliptic.tree._paths import format_path
from ecliptic.tree._static_parts import static_parts
from tests.unit.tree.nodes import Affine


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass
class WithoutKeys:
    value: object
    unit: str

    def tree_flatten(self):
        return (self.value,), self.unit

    @classmethod
    def tree_unflatten(cls, unit, children):
        return cls(*children, unit)


@pytest.mark.parametrize(
    ("node", "parts"),
    [
        (Affine(1, 2, name="x"), {"name": "x"}),
        (WithoutKeys([1], "cm"), {"unit": "cm"}),
        (ec.nn.Dropout(0.5), {}),
        ({"a": 1}, {}),
        (Affine, {}),
        (1, {}),
    ],
)
def test_static_parts_are_the_fields_that_are_no_children(node, parts):
    assert static_parts(node) == parts


@pytest.mark.parametrize(
    ("first", "other", "text"),
    [
        (Affine(1, 2), Affine(1, 2, "y"), "the field `name` is 'affine' in one, 'y' in the other"),
        (WithoutKeys(1, "cm"), WithoutKeys(1, "m"), "the field `unit` is 'cm' in one, 'm' in the"),
        (jax.tree_util.Partial(min), jax.tree_util.Partial(max), "static parts of two Partial"),
        ([1, (2,)], [(3,), 2], r"at `tree\[1\]` one has a tuple, the other a leaf of type int"),
        ({"a": 1}, {"b": 1}, r"entries \[\"\['a'\]\"\], the other \[\"\['b'\]\"\]"),
        ([1], [1], "the static parts of two nodes differ"),
    ],
)
def test_the_first_difference_in_structure_is_told(first, other, text):
    assert re.search(text, first_difference(first, other, None))


def test_static_parts_that_cannot_be_compared_differ():
    one, two = (Affine(1, 2, np.ones(2)) for _ in range(2))
    assert "field `name` is f64[2](numpy) in one" in first_difference(one, two, None)


def test_a_walk_goes_on_after_a_difference():
    found = opposites({"a": 1, "b": [2], "c": 3}, {"b": (2,), "c": 4, "d": 5})
    assert [(o.kind, format_path(o.path)) for o in found] == [
        ("keys", ""),
        ("child", "['a']"),
        ("node", "['b']"),
        ("leaf", "['c']"),
        ("child", "['d']"),
    ]


@pytest.mark.parametrize("prefix", [True, False])
def test_a_leaf_of_a_prefix_stands_for_a_subtree(prefix):
    (found,) = opposites(1, [1, 2], prefix=prefix)
    assert found.kind == ("leaf" if prefix else "node")


def test_a_walk_stops_at_leaves_that_are_asked_for():
    found = opposites([(1, 2)], [(1, 2)], lambda x: isinstance(x, tuple), prefix=True)
    assert [o.first for o in found] == [(1, 2)]
