"""How the examples of the gallery are run: as a user runs them, for a moment, in a process each."""

import os
import subprocess
import sys

import pytest

from tests.support.project import ROOT, SRC


@pytest.fixture
def run_example(tmp_path):
    """A function that runs an example and returns what it printed; pictures go to `tmp_path`."""

    def run(name, **environment):
        # Users run with JAX's default rules, and on as many devices as they have.
        inherited = {
            variable: value
            for variable, value in os.environ.items()
            if not variable.startswith("JAX_NUMPY_") and variable != "XLA_FLAGS"
        }
        defaults = {
            "SMOKE": "1",
            "PYTHONPATH": str(SRC.parent),
            "GALLERY_OUT": str(tmp_path / "gallery"),
            # Half of a short run is XLA at work to make a long one fast.
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        }
        result = subprocess.run(
            [sys.executable, str(ROOT / "examples" / f"{name}.py")],
            capture_output=True,
            text=True,
            env=inherited | defaults | environment,
            cwd=tmp_path,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        assert [path.name for path in tmp_path.iterdir()] in ([], ["gallery"])
        return result.stdout

    return run


@pytest.fixture
def is_picture(tmp_path):
    """Whether an example has drawn a picture of this name."""

    def is_picture(name):
        return (tmp_path / "gallery" / name).read_bytes().startswith(b"\x89PNG")

    return is_picture
