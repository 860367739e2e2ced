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


# Own triangles: those of a browser would shift the columns.
_STYLE = """
.ecliptic-summary { font: 13px monospace; overflow-x: auto; white-space: nowrap }
.ecliptic-summary summary { list-style: none; cursor: pointer }
.ecliptic-summary summary::-webkit-details-marker { display: none }
.ecliptic-summary .row { display: grid; grid-template-columns: var(--columns); column-gap: 2ch }
.ecliptic-summary .row:hover { background: rgb(128 128 128 / 20%) }
.ecliptic-summary .row > span { white-space: normal; overflow-wrap: anywhere }
.ecliptic-summary .row > .right { text-align: right }
.ecliptic-summary .heading { font-weight: bold; border-bottom: 1px solid currentcolor }
.ecliptic-summary .path { position: relative }
.ecliptic-summary .path::before { content: "\\00a0\\00a0" }
.ecliptic-summary summary .path::before { content: "▸\\00a0" }
.ecliptic-summary details[open] > summary .path::before { content: "▾\\00a0" }
.ecliptic-summary button {
  all: unset; position: absolute; cursor: copy; opacity: 0; padding: 0 0.5ch;
}
.ecliptic-summary .row:hover button, .ecliptic-summary button:focus { opacity: 1 }
"""


def folding_table(
    heading: Sequence[str],
    rows: Sequence[Sequence[str]],
    levels: Sequence[int],
    right: Sequence[bool],
    totals: Sequence[str],
    depth: int | None,
) -> str:
    """A table of a tree whose parts can be folded, with a button that copies the path.

    Args:
        heading: the names of the columns, of which the first holds paths.
        rows: the texts of each row.
        levels: how deep each row is; what is deeper and follows is in it.
        right: which columns are aligned to the right.
        totals: lines below.
        depth: down to which level parts are unfolded at first; all by default.
    """
    parts = [_line(heading, right, 0, "row heading")]
    unfinished: list[int] = []
    for i, (row, level) in enumerate(zip(rows, levels, strict=True)):
        while unfinished and unfinished[-1] >= level:
            unfinished.pop()
            parts.append("</details>")
        line = _line(row, right, level, "row")
        if i + 1 < len(rows) and levels[i + 1] > level:
            is_open = " open" if depth is None or level < depth else ""
            parts.append(f"<details{is_open}><summary>{line}</summary>")
            unfinished.append(level)
        else:
            parts.append(line)
    parts += ["</details>"] * len(unfinished)
    parts += [f"<div>{escape(line)}</div>" for line in totals]
    columns = _columns(heading, rows, levels)
    return (
        f'<div class="ecliptic-summary" style="--columns: {columns}"><style>{_STYLE}</style>'
        f"{''.join(parts)}</div>"
    )


def _columns(heading: Sequence[str], rows: Sequence[Sequence[str]], levels: Sequence[int]) -> str:
    # Each row is a grid by itself: of one width, since all of them are as wide as the longest text.
    widths = [max(len(row[i]) for row in (heading, *rows)) for i in range(len(heading))]
    paths = [len(row[0]) + 2 * level for row, level in zip(rows, levels, strict=True)]
    widths[0] = max(paths) + _MARKER + _COPY
    return " ".join(f"{min(width, _WIDEST)}ch" for width in widths)


def _line(row: Sequence[str], right: Sequence[bool], level: int, css: str) -> str:
    path, *others = map(escape, row)
    button = "" if "heading" in css else _BUTTON
    cells = [f'<span class="path" style="padding-left: {2 * level}ch">{path}{button}</span>']
    for text, is_right in zip(others, right[1:], strict=True):
        cells.append(f"<span{_RIGHT if is_right else ''}>{text}</span>")
    return f'<div class="{css}">{"".join(cells)}</div>'


_WIDEST = 60
# What stands beside a path. (A button has no place in the text: it would begin a line of its own.)
_MARKER = 2
_COPY = 5
_RIGHT = ' class="right"'
# The text of the cell is the path. A click on the button does not fold the row.
_BUTTON = (
    '<button title="copy the path" onclick="event.preventDefault();'
    'navigator.clipboard.writeText(this.parentNode.firstChild.data)">copy</button>'
)
