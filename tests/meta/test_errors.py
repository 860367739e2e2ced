"""The tree of exceptions is the one that its docstring draws."""

import copy
import inspect
import pickle
import re

import pytest

from ecliptic import errors
from tests.support.project import ROOT

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and value.__module__ == errors.__name__
}


def drawn() -> dict[str, tuple[str | None, str | None]]:
    """Each class of the drawing, with its parent in the drawing and its built-in counterpart."""
    rows: dict[str, tuple[str | None, str | None]] = {}
    parents: dict[int, str] = {}
    tree = (errors.__doc__ or "").split("```")[1]
    for line in tree.splitlines():
        match = re.match(r"(?P<lead>[│├└─ ]*)(?P<name>\w+)\s*(?:\((?P<builtin>[\w.]+)\))?", line)
        if match is None or not match["name"]:
            continue
        depth = len(match["lead"]) // 4
        parents[depth] = match["name"]
        rows[match["name"]] = (parents.get(depth - 1), match["builtin"])
    return rows


def test_the_drawing_holds_exactly_the_classes_of_the_module():
    assert set(drawn()) == set(CLASSES)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_bases_that_the_drawing_gives_it(name):
    parent, builtin = drawn()[name]
    bases = [base.__name__ for base in CLASSES[name].__bases__]
    expected = [part.rpartition(".")[2] for part in (parent, builtin) if part]
    assert bases == (expected or ["Exception"])


EXCEPTIONS = [value for value in CLASSES.values() if issubclass(value, errors.EclipticError)]


@pytest.mark.parametrize("kind", EXCEPTIONS)
def test_a_note_names_the_page_of_the_class(kind):
    error = kind("a message")
    assert str(error) == "a message"
    (note,) = error.__notes__
    match = re.fullmatch(r"See errors/([a-z-]+) in Ecliptic's documentation\.", note)
    page = (ROOT / "docs" / "errors" / f"{match[1]}.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{kind.__name__}\b", page)


def test_the_note_names_the_page_of_a_family_also_for_a_class_of_a_user():
    class MyError(errors.StateError):
        def __init__(self):
            pass

    assert "errors/layers-and-states" in MyError().__notes__[0]


@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_copy_has_one_note(again):
    error = again(errors.MissingPackageError("a message", name="package"))
    assert (str(error), len(error.__notes__)) == ("a message", 1)


def test_the_module_imports_nothing_of_the_library():
    source = inspect.getsource(errors)
    assert not re.search(r"^\s*(from|import) (ecliptic|\.)", source, flags=re.M)
