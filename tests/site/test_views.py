"""What `ecliptic.view` makes for a browser: it folds, unfolds, and copies paths."""

import jax
import pytest

import ecliptic as ec
from ecliptic import view
from tests.site.conftest import clipboard


@pytest.fixture(scope="module")
def model():
    return ec.nn.MLP(in_size=2, out_size=3, width_size=8, depth=1, key=jax.random.key(0))


@pytest.fixture
def tree(watched, model, tmp_path):
    """The page of a model, opened."""
    view.tree_html(model).save(tmp_path / "model.html")
    watched.page.goto((tmp_path / "model.html").as_uri())
    watched.page.wait_for_selector(".foldable_node")
    return watched.page


def _height(page) -> float:
    return page.locator(".treescope_root").bounding_box()["height"]


def test_a_tree_folds_and_unfolds(tree, watched):
    root = tree.locator("label:has(input.foldable_node_toggle)").first
    unfolded = _height(tree)
    watched.shoot("tree")
    root.click()
    watched.shoot("tree-folded")
    # What is folded is one line.
    assert _height(tree) < unfolded / 3
    root.click()
    assert _height(tree) == unfolded


def test_a_tree_copies_the_path_of_a_part(tree):
    child = tree.locator(".indented_child", has_text="in_features=").last
    child.locator(".copybutton:visible").first.click()
    tree.wait_for_timeout(300)
    assert "layers[" in clipboard(tree)


def test_a_tree_shows_arrays_as_pictures_and_marks_static_fields(tree):
    assert tree.locator("canvas:visible").count() >= 1
    assert tree.get_by_text("static").first.is_visible()


@pytest.fixture
def table(watched, model, tmp_path):
    """The table of a model, opened."""
    page = f"<!DOCTYPE html><meta charset='utf-8'>{view.tree_summary(model)._repr_html_()}"
    (tmp_path / "summary.html").write_text(page, encoding="utf-8")
    watched.page.goto((tmp_path / "summary.html").as_uri())
    return watched.page


def test_a_table_folds_and_unfolds(table, watched):
    weight = table.get_by_text("layers[0].weight").first
    part = table.locator("summary", has_text="layers[0]").last
    assert weight.is_visible()
    watched.shoot("table")
    part.click()
    assert not weight.is_visible()
    part.click()
    assert weight.is_visible()


def test_a_row_of_an_array_is_one_line(table):
    heights = table.locator(".row").evaluate_all(
        "rows => rows.map(row => [row.textContent, row.getBoundingClientRect().height])"
    )
    line = next(height for text, height in heights if "layers[0].bias" in text)
    weights = [height for text, height in heights if ".weight" in text]
    assert weights == [line, line]


def test_a_table_copies_a_path(table):
    row = table.locator(".row", has_text="layers[0].weight").first
    row.hover()
    row.locator("button").click()
    table.wait_for_timeout(300)
    assert "layers[0].weight" in clipboard(table)
