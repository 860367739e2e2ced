"""The documents: their code runs, their links lead somewhere, their pages are in order."""

import re
import tomllib

import jax
import pytest

from tests.support.project import (
    DESIGN,
    GUIDES,
    ROOT,
    code_of,
    documents,
    is_generated,
    shown,
)
from tests.support.surface import public_values

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
EXAMPLES = code_of(ROOT / "README.md")
PAGES = sorted(path for path in DESIGN.glob("*.md") if path.name != "index.md")
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_the_readme_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


def test_the_readme_has_an_example():
    assert EXAMPLES


@pytest.mark.parametrize("guide", GUIDES, ids=shown)
def test_a_guide_is_a_program_that_runs(guide, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = code_of(guide)
    assert parts
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        exec(compile("".join(parts), guide.name, "exec"), {"__name__": "guide"})


@pytest.mark.parametrize("guide", [g for g in GUIDES if g.name != "index.md"], ids=shown)
def test_a_guide_is_linked_from_an_index(guide):
    front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    beside = guide.parent / "index.md"
    assert f"]({guide.relative_to(ROOT / 'docs').as_posix()})" in front or (
        f"]({guide.name})" in beside.read_text(encoding="utf-8")
    )


def test_the_readme_names_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.M))
    named = {
        name
        for path in documents()
        for name in re.findall(r"\bmake ([a-z-]+)`", path.read_text(encoding="utf-8"))
    }
    assert named
    assert named <= targets


@pytest.mark.parametrize("path", documents(), ids=shown)
def test_the_links_of_a_document_lead_to_files(path):
    prose = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    links = LINK.findall(prose)
    places = [path.parent / link for link in links]
    # (To what the site is built with, the build of the site checks the links.)
    assert [place for place in places if not place.exists() and not is_generated(place)] == []


def test_design_pages_are_numbered_without_a_gap():
    numbers = [re.match(r"(\d{4})-[a-z0-9-]+\.md$", path.name) for path in PAGES]
    assert all(numbers), [path.name for path in PAGES]
    assert [int(number[1]) for number in numbers if number] == list(range(1, len(PAGES) + 1))


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_a_design_page_is_linked_from_the_index(page):
    assert f"]({page.name})" in (DESIGN / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_a_design_page_has_its_number_in_its_title(page):
    first = page.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(f"# {int(page.name[:4])}. ")


@pytest.mark.parametrize("name", [n for n, _ in public_values() if ".errors." not in n])
def test_the_changelog_names_every_public_name(name):
    assert f"`{name.removeprefix('ecliptic.')}`" in CHANGELOG


def test_the_changelog_speaks_of_this_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## {version}" in CHANGELOG


@pytest.mark.parametrize("name", [n for n, _ in public_values() if ".errors." in n])
def test_the_index_of_errors_leads_from_each_class_to_a_page(name):
    index = (ROOT / "docs" / "errors" / "index.md").read_text(encoding="utf-8")
    rows = [line for line in index.splitlines() if f"`{name.rpartition('.')[2]}`" in line]
    assert name.endswith(".EclipticError") or any(".md" in row for row in rows)
