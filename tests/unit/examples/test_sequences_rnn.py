"""The example with a recurrent network, run as a user runs it, for a moment."""

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
    folder = tmp_path_factory.mktemp("sequences_rnn")
    result = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "sequences_rnn.py")],
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
    first, last = map(float, re.search(r"steps: (\S+) first, (\S+) last", output).groups())
    assert last < first / 2
    assert float(re.search(r"test accuracy: (\S+)%", output)[1]) > 80


def test_the_state_has_seen_every_batch(output):
    assert "batches in the state: 264 of 264" in output
