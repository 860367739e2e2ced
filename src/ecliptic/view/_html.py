"""Pieces of HTML that stand by themselves: no script, no style sheet, no request."""

from collections.abc import Sequence
from html import escape

_CELL = "text-align:left;padding:0.15em 0.8em;white-space:pre-wrap;vertical-align:top"
# A click selects all of it, to be copied.
PATH = "font-family:monospace;user-select:all"


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column holds paths."""
    head = "".join(f'<th style="{_CELL}">{escape(text)}</th>' for text in heading)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(row: Sequence[str]) -> str:
    path, *others = map(escape, row)
    first = f'<td style="{_CELL};{PATH}">{path}</td>'
    return first + "".join(f'<td style="{_CELL}">{text}</td>' for text in others)
