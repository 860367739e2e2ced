"""`pytest -p ecliptic.compat.equinox.pytest_plugin`, on a small project."""

import importlib
import os
import subprocess
import sys

from tests.support.project import SRC

TESTS = """
import sys

import equinox as eqx
import pytest

from ecliptic.compat.equinox.pytest_plugin import pytest_load_initial_conftests as rewrite


def test_names():
    assert eqx is sys.modules["ecliptic.compat.equinox"]


def test_its_modules_are_checked(request):
    hook = "ecliptic.compat.equinox,beartype.beartype"
    assert request.config.getoption("jaxtyping_packages") == hook


@pytest.mark.parametrize(
    ("given", "rewritten"),
    [
        (["--jaxtyping-packages", "one,equinox.nn,f(equinox)"],
         ["--jaxtyping-packages", "one,ecliptic.compat.equinox.nn,f(equinox)"]),
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
    # In the place of jaxtyping's own plugin, which would check every call in all of the package.
    (tmp_path / "option.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--jaxtyping-packages')\n"
    )
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:jaxtyping",
        "-p", "option", "-p", "ecliptic.compat.equinox.pytest_plugin",
        "--jaxtyping-packages=equinox,beartype.beartype",
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(SRC.parent)}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=env, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout
