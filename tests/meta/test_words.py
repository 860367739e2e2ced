"""The text of the project speaks of the project alone, in one spelling."""

import re

import pytest

from tests.support.project import documents, shown, texts

# What belongs to the making of a version and not to it, and what a reader cannot look up.
FOREIGN = re.compile(
    r"""
      \bissues?\s+\#?\d+              # a number in a tracker
    | (?<![\w&/])\#\d{2,}\b
    | (?<!scope=")\bsessions?\b
    | \bsub-?agents?\b | \bthe\s+lead\b | \bprompt\b | \bLLMs?\b | \bchatbots?\b
    | /work/ | venv3\d\d
    | \b(?:FIXME|TODO|XXX)\b
    | \bindex[-_]url\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
AMERICAN = re.compile(
    r"\b(?:behavior|serializ|normaliz|optimiz|factoriz|recogniz|vectoriz|favorite|labeled)\w*", re.I
)
THIS = "tests/meta/test_words.py"
TEXTS = [path for path in texts() if shown(path) != THIS]


@pytest.mark.parametrize("path", TEXTS, ids=shown)
def test_a_text_speaks_of_the_project_alone(path):
    text = path.read_text(encoding="utf-8")
    found = [f"{text.count(chr(10), 0, m.start()) + 1}: {m[0]}" for m in FOREIGN.finditer(text)]
    assert found == []


@pytest.mark.parametrize("path", documents(), ids=shown)
def test_a_document_is_in_british_spelling(path):
    prose = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.S)
    assert AMERICAN.findall(prose) == []


@pytest.mark.parametrize("text", ["see issue 12", "as in #709", "a session", "fixme: later"])
def test_the_search_finds_foreign_words(text):
    assert FOREIGN.search(text)


@pytest.mark.parametrize("text", ["a known issue", "#1f77b4", 'scope="session"', "nothing to do"])
def test_the_search_leaves_plain_words_alone(text):
    assert not FOREIGN.search(text)
