"""All examples have one form, which the gallery makes a page of."""

import ast

import pytest

from tests.support.project import ROOT, shown

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture(params=EXAMPLES, ids=shown)
def example(request):
    return request.param


@pytest.fixture
def text(example):
    return example.read_text(encoding="utf-8")


def test_an_example_says_at_first_what_it_does_and_how_it_is_run(example, text):
    introduction = ast.get_docstring(ast.parse(text)) or ""
    assert introduction.partition("\n\n")[0].endswith(".")
    assert f"    python examples/{example.name}" in introduction
    assert "SMOKE=1" in introduction


def test_an_example_has_cells_of_code_and_of_prose(text):
    lines = text.splitlines()
    markers = [line for line in lines if line.startswith("# %%")]
    assert set(markers) == {"# %%", "# %% [markdown]"}
    after = [lines[i + 1] for i, line in enumerate(lines) if line == "# %% [markdown]"]
    assert all(line.startswith("# ## ") for line in after)


def test_an_example_is_short_under_smoke_and_leaves_its_picture_where_the_gallery_looks(
    example, text
):
    assert 'SMOKE = os.environ.get("SMOKE") == "1"\n' in text
    assert 'OUT = Path(os.environ.get("GALLERY_OUT", "demo_output"))\n' in text
    assert f'/ "{example.stem}.png"' in text


def test_an_example_is_run_by_a_test(example):
    assert (ROOT / "tests" / "unit" / "examples" / f"test_{example.name}").exists()
