"""The reference: each public name has one entry, which reads as its docstring does."""

import re

import pytest

from tests.support import reference
from tests.support.surface import public_values

PAGES = reference.pages()
ENTRY = re.compile(r"^`{7}\{py:(\w+)\} ((?:.+\n)+)\n", re.M)


def entries() -> dict[str, list[str]]:
    """The kinds of the entries of each name."""
    found: dict[str, list[str]] = {}
    for text in PAGES.values():
        for kind, names in ENTRY.findall(text):
            for line in names.splitlines():
                found.setdefault(line.partition("(")[0], []).append(kind)
    return found


def test_each_public_name_has_one_entry():
    found = entries()
    assert {name for name, _ in public_values()} == set(found)
    assert [name for name, kinds in found.items() if len(kinds) > 1] == []


def test_each_entry_is_in_the_index():
    missing = [e.anchor for e in reference.entries() if f"<{e.anchor}>`" not in PAGES["index.md"]]
    assert missing == []


def test_a_name_without_a_docstring_is_an_error(monkeypatch):
    def undocumented(): ...

    undocumented.__module__ = "ecliptic.tree._new"
    monkeypatch.setattr(reference, "public_values", lambda: [("ecliptic.new", undocumented)])
    with pytest.raises(reference.MissingEntryError, match=r"`ecliptic.new` has no docstring"):
        reference.pages()


def test_a_name_of_no_group_is_an_error(monkeypatch):
    def homeless():
        """Is documented."""

    homeless.__module__ = "ecliptic.elsewhere"
    monkeypatch.setattr(reference, "public_values", lambda: [("ecliptic.new", homeless)])
    with pytest.raises(reference.MissingEntryError, match="belongs to no group"):
        reference.pages()


def test_a_signature_is_what_a_user_types():
    assert "ecliptic.nn.Linear(in_features, out_features, use_bias=True" in PAGES["layers.md"]
    assert "ecliptic.is_array(element)" in PAGES["trees.md"]


DOC = """One line.

See [`field`][] and [`unknown`][].

Args:
    x: an array, of
        any shape.
    **options: others.

Raises:
    ShapeError: too large.

!!! Example

    Words.

    >>> 1 + 1
    2

    >>> 3
    3

!!! warning "Take care"

    It bites.
"""


@pytest.fixture
def written():
    known = {"field": "ecliptic.field", "ShapeError": "ecliptic.errors.ShapeError"}
    return reference._Writer(known).body(DOC)


@pytest.mark.parametrize(
    "part",
    [
        "See {py:obj}`field <ecliptic.field>` and `unknown`.",
        "**Arguments**\n\n- `x`: an array, of\n  any shape.\n- `**options`: others.",
        "- {py:obj}`ShapeError <ecliptic.errors.ShapeError>`: too large.",
        "**Example**\n\nWords.\n\n```pycon\n>>> 1 + 1\n2\n\n>>> 3\n3\n```",
        "````{admonition} Take care\nIt bites.\n````",
    ],
)
def test_a_docstring_becomes_markdown(written, part):
    assert part in written
