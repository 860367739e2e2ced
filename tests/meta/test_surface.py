"""The public names: complete, sorted, documented, and changed only on purpose."""

import ast
import inspect
import json
import types

import pytest

import ecliptic
from tests.support import surface
from tests.support.project import SRC, parse, shown

PACKAGES = sorted(path for path in SRC.rglob("__init__.py") if path.parent.name != "_jax")
VALUES = dict(surface.public_values())
DOCUMENTED_BY_EXAMPLE = {
    name: value
    for name, value in VALUES.items()
    if callable(value) and not (inspect.isclass(value) and issubclass(value, BaseException))
}


def _declared(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return None


def _in_order(name: str) -> tuple[int, str]:
    """The order in which ruff sorts `__all__`: ALL_CAPITALS, Classes, functions."""
    if name.isupper():
        return 0, name
    return (1, name) if name[:1].isupper() else (2, name)


@pytest.mark.parametrize("path", PACKAGES, ids=shown)
def test_a_package_lists_its_names_sorted_and_once(path):
    names = _declared(parse(path))
    assert names is not None, f"{shown(path)} has no __all__"
    assert names == sorted(set(names), key=_in_order)


@pytest.mark.parametrize("path", PACKAGES, ids=shown)
def test_a_package_lists_every_name_that_it_imports(path):
    tree = parse(path)
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    public = {name for name in imported if not name.startswith("_")}
    public -= {"TYPE_CHECKING", "Any", "later"}
    assert public <= set(_declared(tree) or ())


@pytest.mark.parametrize("path", PACKAGES, ids=shown)
def test_a_package_holds_no_logic(path):
    for node in parse(path).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        dunder = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("__")
        typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        imports = isinstance(node, ast.Import | ast.ImportFrom)
        assert docstring or dunder or typing or imports, (
            f"{shown(path)}:{node.lineno} is more than an import, a docstring or __all__"
        )


def test_every_listed_name_exists():
    assert [name for name in ecliptic.__all__ if not hasattr(ecliptic, name)] == []


def test_the_root_shows_no_name_that_it_does_not_list():
    # Subpackages become attributes of the root as soon as anything imports them.
    for name in ecliptic.__all__:
        getattr(ecliptic, name)  # some are imported when they are asked for
    shown_names = {
        name
        for name, value in vars(ecliptic).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert shown_names - {"TYPE_CHECKING", "later"} == {
        name
        for name in ecliptic.__all__
        if not name.startswith("_") and not isinstance(getattr(ecliptic, name), types.ModuleType)
    }


def test_the_surface_is_the_one_written_down():
    written = json.loads(surface.SNAPSHOT.read_text(encoding="utf-8"))
    now = json.loads(json.dumps(surface.describe()))
    changed = {
        name: (written.get(name), now.get(name))
        for name in sorted({*written, *now})
        if written.get(name) != now.get(name)
    }
    assert changed == {}, "if this is meant: `make surface`, and a line in CHANGELOG.md"


@pytest.mark.parametrize("name", [n for n, value in VALUES.items() if callable(value)])
def test_a_public_name_has_a_docstring_of_its_own(name):
    value = VALUES[name]
    doc = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
    assert doc, f"{name} has no docstring"


@pytest.mark.parametrize("name", DOCUMENTED_BY_EXAMPLE)
def test_a_public_name_shows_an_example_that_runs(name):
    assert ">>> " in (DOCUMENTED_BY_EXAMPLE[name].__doc__ or ""), f"{name} has no example"
