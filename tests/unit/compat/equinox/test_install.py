"""`install` and `uninstall`, and programs that are run with `python -m`."""

import os
import subprocess
import sys

import pytest

from ecliptic.compat.equinox.__main__ import main
from ecliptic.compat.equinox._install import _Finder
from tests.support.project import SRC


def run(*arguments, **options):
    done = subprocess.run(
        [sys.executable, *arguments],
        check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(SRC.parent)}, **options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def test_one_object_has_both_names():
    run(
        "-c",
        """
import ecliptic.compat.equinox as ours
ours.install(), ours.install()
import equinox, equinox.nn, equinox.internal._omega, equinox._module._module as private
from equinox.internal import noinline
assert equinox is ours and equinox.nn is ours.nn and equinox.__name__ == "ecliptic.compat.equinox"
assert equinox.nn.__spec__.name == "ecliptic.compat.equinox.nn"
assert private._ModuleMeta is type(equinox.Module)

try:
    import equinox._tree
except ModuleNotFoundError as error:
    assert "equinox._tree" in str(error) and "uninstall" in str(error)
    assert error.name == "equinox._tree"
else:
    raise AssertionError

import sys, importlib.util
ours.uninstall()
assert not [name for name in sys.modules if name.split(".")[0] == "equinox"]
spec = importlib.util.find_spec("equinox")
assert spec is None or "ecliptic" not in spec.origin
""",
    )


def test_it_refuses_where_another_package_of_that_name_is_there():
    run(
        "-c",
        """
import sys, types
real = sys.modules["equinox"] = types.ModuleType("equinox")
real.__file__ = "/somewhere/equinox.py"
import ecliptic.compat.equinox as ours
from ecliptic.errors import InstallError
try:
    ours.install()
except InstallError as error:
    assert "/somewhere/equinox.py" in str(error) and "python -m ecliptic.compat" in str(error)
else:
    raise AssertionError
ours.uninstall()
assert sys.modules["equinox"] is real
""",
    )


def test_it_finds_nothing_else():
    assert _Finder().find_spec("equinoxes", None) is None


@pytest.mark.parametrize("form", ["file", "module"])
def test_a_program_runs_on_it(form, tmp_path):
    (tmp_path / "program.py").write_text(
        "import sys, equinox\n"
        "if __name__ == '__main__':\n"
        "    print(equinox.Module.__module__, *sys.argv[1:])\n"
    )
    which = [str(tmp_path / "program.py")] if form == "file" else ["-m", "program"]
    done = run("-m", "ecliptic.compat.equinox", *which, "one", "--two", cwd=tmp_path)
    assert done.stdout.split()[1:] == ["one", "--two"]
    assert done.stdout.startswith("ecliptic.")


@pytest.mark.parametrize("arguments", [[], ["-m"]])
def test_a_program_has_to_be_named(arguments, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["main", *arguments])
    with pytest.raises(SystemExit, match="usage: python -m ecliptic.compat.equinox"):
        main()
