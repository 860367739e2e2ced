"""The example with a recurrent network."""

import re

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("optax")
pytest.importorskip("matplotlib")


def test_it_learns_and_its_state_has_seen_every_batch(run_example, is_picture):
    printed = run_example("sequences_rnn")
    first, last = map(float, re.search(r"steps: (\S+) first, (\S+) last", printed).groups())
    assert last < first / 2
    assert float(re.search(r"test accuracy: (\S+)%", printed)[1]) > 80
    assert "batches in the state: 264 of 264" in printed
    assert is_picture("sequences_rnn.png")
