"""The example on four simulated devices."""

import re

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("optax")
pytest.importorskip("matplotlib")


def test_four_devices_learn_what_one_does(run_example, is_picture):
    printed = run_example("several_devices")
    alone, shared = re.findall(r"loss (\S+) first, (\S+) last", printed)
    assert float(alone[1]) < float(alone[0]) / 2
    assert float(shared[1]) == pytest.approx(float(alone[1]), abs=2e-4)
    assert "in 4 parts of shape (64, 64)" in printed
    assert "its momentum is where it is: True" in printed
    assert is_picture("several_devices.png")
