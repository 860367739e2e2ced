"""The example of a transformer that learns to write."""

import re

import pytest

pytest.importorskip("optax")
pytest.importorskip("matplotlib")


def test_it_learns_and_writes(run_example, is_picture):
    printed = run_example("language_model")
    first, last = map(float, re.search(r"steps: (\S+) first, (\S+) last", printed).groups())
    assert last < 0.85 * first
    written = re.search(r"it writes:\n(.*)\npicture", printed, re.DOTALL)[1]
    assert len(written) == 40
    assert is_picture("language_model.png")
