"""The example that trains on digits, run as a user runs it, for a moment."""

import os
import subprocess
import sys

import pytest

from tests.support.project import ROOT, SRC

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    environment = {**os.environ, "SMOKE": "1", "PYTHONPATH": str(SRC.parent)}
    # Users run with JAX's default rules.
    for name in ("JAX_NUMPY_DTYPE_PROMOTION", "JAX_NUMPY_RANK_PROMOTION"):
        environment.pop(name, None)
    result = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "digits.py"), str(folder / "new" / "folder")],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return folder, result


def test_it_says_how_many_of_the_1797_digits_are_for_what(run):
    assert "1437 digits to train with, 360 to test with" in run[1].stdout


def test_it_learns_in_a_moment_already(run):
    (line,) = [line for line in run[1].stdout.splitlines() if line.startswith("test accuracy")]
    assert float(line.split()[-1].rstrip("%")) > 60


def test_it_shows_a_progress_bar(run):
    assert "training: 100%" in run[1].stderr


def test_it_draws_its_training_and_what_it_is_not_sure_of(run):
    picture = run[0] / "new" / "folder" / "digits.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_it_saves_the_model_and_loads_it_back(run):
    assert (run[0] / "new" / "folder" / "digits.eqx").stat().st_size > 100_000
    assert "the loaded model predicts the same: yes" in run[1].stdout


def test_it_leaves_nothing_outside_of_its_folder(run):
    assert [path.name for path in run[0].iterdir()] == ["new"]
