"""Files are where a reader looks for them, and no longer than a reader bears."""

import pytest

from tests.support.project import ROOT, SRC, shown, sources

GRAB_BAGS = {"common", "helper", "helpers", "internal", "misc", "util", "utils"}
LONGEST = 450
PACKAGES = sorted(path.parent for path in SRC.rglob("__init__.py") if path.parent != SRC)
UNIT_FOLDERS = sorted(path for path in (ROOT / "tests" / "unit").iterdir() if path.is_dir())


@pytest.mark.parametrize("path", list(sources("src")), ids=shown)
def test_a_file_has_a_name_that_says_what_is_in_it(path):
    assert path.stem.strip("_") not in GRAB_BAGS


@pytest.mark.parametrize("path", list(sources("src")), ids=shown)
def test_a_file_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("package", PACKAGES, ids=shown)
def test_a_package_keeps_its_files_private(package):
    public = [path.name for path in package.glob("*.py") if not path.stem.startswith("_")]
    assert public == []


@pytest.mark.parametrize("folder", UNIT_FOLDERS, ids=shown)
def test_unit_tests_mirror_the_packages(folder):
    if folder.name != "__pycache__":
        places = [SRC / folder.name, SRC / f"{folder.name}.py", ROOT / folder.name]
        assert any(place.exists() for place in places)


@pytest.mark.parametrize("package", PACKAGES, ids=shown)
def test_a_package_has_unit_tests(package):
    tests = ROOT / "tests" / "unit" / package.relative_to(SRC)
    assert list(tests.glob("test_*.py")), f"no tests in {shown(tests)}"
