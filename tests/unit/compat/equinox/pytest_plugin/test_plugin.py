"""`pytest -p ecliptic.compat.equinox.pytest_plugin`, on a small project."""

import importlib
import os
import subprocess
import sys

from tests.support.project import SRC

TESTS = """
import sys

import equinox as eqx
import jaxtyping
import other
import pytest

from ecliptic.compat.equinox.pytest_plugin import pytest_load_initial_conftests as rewrite


def test_names():
    assert eqx is sys.modules["ecliptic.compat.equinox"]


def test_other_packages_are_checked():
    with pytest.raises(jaxtyping.TypeCheckError):
        other.twice("a")


@pytest.mark.parametrize(
    ("given", "rewritten"),
    [
        (["-q", "--jaxtyping-packages", "one,equinox.nn,f(equinox)", "x"],
         ["-q", "--jaxtyping-packages", "one,f(equinox)", "x"]),
        (["--jaxtyping-packages", "equinox,f(a,b)", "x"], ["x"]),
        (["--jaxtyping-packages=equinox,f", "x"], ["x"]),
        (["--jaxtyping-packages=equinoxes,f"], ["--jaxtyping-packages=equinoxes,f"]),
        (["equinox"], ["equinox"]),
    ],
)
def test_the_option_is_rewritten(given, rewritten):
    rewrite(given)
    assert given == rewritten
"""


def test_its_import_alone_changes_nothing():
    found = list(sys.meta_path)
    importlib.import_module("ecliptic.compat.equinox.pytest_plugin")
    assert sys.meta_path == found


def test_the_tests_of_a_project_run_on_it(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "other.py").write_text("def twice(x: int) -> int:\n    return 2 * x\n")
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "-p", "ecliptic.compat.equinox.pytest_plugin",
        "--jaxtyping-packages=equinox,other,beartype.beartype",
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(SRC.parent)}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=env, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 passed" in done.stdout
