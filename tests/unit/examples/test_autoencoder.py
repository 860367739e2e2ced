"""The example of a variational autoencoder."""

import re

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("optax")
pytest.importorskip("matplotlib")


def test_it_learns_and_draws(run_example, is_picture):
    printed = run_example("autoencoder")
    first, last = map(float, re.search(r"steps: (\S+) first, (\S+) last", printed).groups())
    assert last < 0.85 * first
    assert is_picture("autoencoder.png")
