"""The example with BatchNorm."""

import re

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("optax")
pytest.importorskip("matplotlib")


def test_it_learns_and_keeps_the_statistics(run_example, is_picture):
    printed = run_example("images_batch_norm")
    accuracies = [float(a) for a in re.findall(r"test accuracy (\S+)%", printed)]
    assert accuracies[-1] > 90
    means = re.search(r"running means of the first BatchNorm: \[(.*)\]", printed)[1]
    assert all(float(mean) != 0 for mean in means.split())
    assert "layers that know of inference: 2" in printed
    assert is_picture("images_batch_norm.png")
