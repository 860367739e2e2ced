"""Unstable JAX is touched in one room alone, and no package is imported upward or lazily."""

import ast

import pytest

from tests.support.project import ROOT, SRC, parse, shown, sources

UNSTABLE = ("jax._src", "jax.core", "jax.extend", "jax.interpreters", "jax.lib")
ROOM = SRC / "_jax"
OUTSIDE = [
    path
    for path in sources("src", "tests", "bench", "conformance", "docs", "examples")
    if not path.is_relative_to(ROOM)
]


def unstable_uses(tree: ast.AST) -> list[str]:
    """Every dotted name of unstable JAX that a file imports or reads."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute):
            found.append(ast.unparse(node))
    return [
        name for name in found if any(name == bad or name.startswith(bad + ".") for bad in UNSTABLE)
    ]


# What authors of libraries make operations of JAX with; so do the tests of what is made for them.
FOR_AUTHORS = ("jax.extend.core", "jax.interpreters")
AUTHORS = ROOT / "tests" / "unit" / "primitive"


@pytest.mark.parametrize("path", OUTSIDE, ids=shown)
def test_a_file_outside_the_room_touches_no_unstable_jax(path):
    allowed = FOR_AUTHORS if path.is_relative_to(AUTHORS) else ()
    assert [name for name in unstable_uses(parse(path)) if not name.startswith(allowed)] == []


@pytest.mark.parametrize(
    "line",
    [
        "import jax._src.core",
        "import jax.core as jc",
        "from jax import core",
        "from jax.interpreters import batching",
        "import jax\nx = jax.extend.core.Primitive",
        "def f():\n    from jax._src import literals",
    ],
)
def test_the_search_finds_every_way_in(line):
    assert unstable_uses(ast.parse(line))


def own_imports(tree: ast.AST) -> list[str]:
    """Every import of the library itself, absolute or relative, as written."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            own = any(alias.name.partition(".")[0] == "ecliptic" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            own = bool(node.level) or (node.module or "").partition(".")[0] == "ecliptic"
        else:
            continue
        if own:
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("path", list(sources("src")), ids=shown)
def test_no_import_hides_in_a_function_to_dodge_a_circle(path):
    hidden = [
        line
        for function in ast.walk(parse(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for line in own_imports(function)
    ]
    assert hidden == []


@pytest.mark.parametrize("path", list(sources("src")), ids=shown)
def test_no_module_imports_the_root(path):
    # `from ecliptic import tree` names a package below the root, and is what import-linter sees.
    packages = {child.stem for child in SRC.iterdir()}
    roots = []
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            roots += [alias.name for alias in node.names if alias.name == "ecliptic"]
        elif isinstance(node, ast.ImportFrom) and node.module == "ecliptic":
            roots += [alias.name for alias in node.names if alias.name not in packages]
    assert roots == []


@pytest.mark.parametrize(
    "line",
    [
        "import ecliptic.tree",
        "from ecliptic.tree import at",
        "from ..tree import at",
        "from . import x",
    ],
)
def test_the_search_finds_every_way_to_import_the_library(line):
    assert own_imports(ast.parse(line)) == [line]
