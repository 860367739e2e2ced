"""The example that trains in one compiled loop, run as a user runs it, for a moment."""

import os
import re
import subprocess
import sys

import pytest

from tests.support.project import ROOT, SRC

pytest.importorskip("sklearn")
pytest.importorskip("optax")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one_loop")
    environment = {
        **os.environ,
        "SMOKE": "1",
        "PYTHONPATH": str(SRC.parent),
        "GALLERY_OUT": str(folder / "gallery"),
    }
    # Users run with JAX's default rules.
    for name in ("JAX_NUMPY_DTYPE_PROMOTION", "JAX_NUMPY_RANK_PROMOTION"):
        environment.pop(name, None)
    result = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "one_loop.py")],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert [path.name for path in folder.iterdir()] == ["gallery"]
    assert (folder / "gallery" / "one_loop.png").read_bytes().startswith(b"\x89PNG")
    return result


def test_all_epochs_are_one_loop(run):
    assert "132 steps in one loop" in run.stdout


def test_it_learns_in_a_moment_already(run):
    first, last = map(float, re.search(r"steps: (\S+) first, (\S+) last", run.stdout).groups())
    assert last < first / 2
    assert float(re.search(r"test accuracy: (\S+)%", run.stdout)[1]) > 60


def test_it_shows_a_progress_bar(run):
    assert re.search(r"training:\s+[\d.]+%", run.stderr)
    assert re.search(r"training: 100\.00%", run.stderr)
