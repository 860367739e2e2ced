"""The example that is interrupted and goes on, run as a user runs it, for a moment."""

import os
import re
import subprocess
import sys

import pytest

from tests.support.project import ROOT, SRC

pytest.importorskip("optax")
pytest.importorskip("safetensors")


def test_an_interrupted_run_ends_with_the_same_numbers(tmp_path):
    environment = {**os.environ, "SMOKE": "1", "PYTHONPATH": str(SRC.parent)}
    # Users run with JAX's default rules.
    for name in ("JAX_NUMPY_DTYPE_PROMOTION", "JAX_NUMPY_RANK_PROMOTION"):
        environment.pop(name, None)
    result = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "resume.py")],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert list(tmp_path.iterdir()) == []
    assert re.findall(r"goes on from step (\d+)", result.stdout) == ["20", "40"]
    losses = re.findall(r"loss (\S+) after 60 steps", result.stdout)
    assert len(losses) == 2
    assert losses[0] == losses[1]
    assert "to the last bit: True" in result.stdout
