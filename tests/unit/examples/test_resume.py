"""The example that is interrupted and goes on."""

import re

import pytest

pytest.importorskip("optax")
pytest.importorskip("safetensors")
pytest.importorskip("matplotlib")


def test_an_interrupted_run_ends_with_the_same_numbers(run_example, is_picture):
    printed = run_example("resume")
    assert re.findall(r"goes on from step (\d+)", printed) == ["20", "40"]
    losses = re.findall(r"loss (\S+) after 60 steps", printed)
    assert len(losses) == 2
    assert losses[0] == losses[1]
    assert "to the last bit: True" in printed
    assert is_picture("resume.png")
