"""The example that trains an ensemble at once."""

import re

import pytest

pytest.importorskip("optax")
pytest.importorskip("matplotlib")


def test_the_members_learn_and_disagree_where_there_are_no_data(run_example, is_picture):
    printed = run_example("ensemble")
    assert "all members: (4, 32, 1)" in printed
    first, last = map(float, re.search(r"loss: (\S+) first, (\S+) last", printed).groups())
    assert last < first / 2
    near, elsewhere = map(float, re.search(r"(\S+) near data, (\S+) else", printed).groups())
    assert near < elsewhere
    assert is_picture("ensemble.png")
