"""The example with BatchNorm, run as a user runs it, for a moment."""

import os
import re
import subprocess
import sys

import pytest

from tests.support.project import ROOT, SRC

pytest.importorskip("sklearn")
pytest.importorskip("optax")


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    environment = {**os.environ, "SMOKE": "1", "PYTHONPATH": str(SRC.parent)}
    # Users run with JAX's default rules.
    for name in ("JAX_NUMPY_DTYPE_PROMOTION", "JAX_NUMPY_RANK_PROMOTION"):
        environment.pop(name, None)
    folder = tmp_path_factory.mktemp("images_batch_norm")
    result = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "images_batch_norm.py")],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert list(folder.iterdir()) == []
    return result.stdout


def test_it_learns_in_a_moment_already(output):
    accuracies = [float(a) for a in re.findall(r"test accuracy (\S+)%", output)]
    assert accuracies[-1] > 90


def test_the_running_means_have_moved(output):
    means = re.search(r"running means of the first BatchNorm: \[(.*)\]", output)[1]
    assert all(float(mean) != 0 for mean in means.split())


def test_both_layers_are_switched_to_inference(output):
    assert "layers that know of inference: 2" in output
