"""The example that rolls policies out in worlds of MJX."""

import re

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("mujoco.mjx")
pytest.importorskip("optax")
pytest.importorskip("matplotlib")


def test_policies_get_better(run_example, is_picture):
    printed = run_example("worlds")
    first, last = map(float, re.search(r"step: (\S+) first, (\S+) last", printed).groups())
    assert last > first + 0.1
    assert is_picture("worlds.png")
