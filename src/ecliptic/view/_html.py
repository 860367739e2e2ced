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


def folding_table(
    heading: Sequence[str],
    rows: Sequence[Sequence[str]],
    levels: Sequence[int],
    right: Sequence[bool],
    totals: Sequence[str],
    depth: int | None,
) -> str:
    """A table of a tree whose parts can be folded.

    Args:
        heading: the names of the columns, of which the first holds paths.
        rows: the texts of each row.
        levels: how deep each row is; what is deeper and follows is in it.
        right: which columns are aligned to the right.
        totals: lines below.
        depth: down to which level parts are unfolded at first; all by default.
    """
    # All rows are grids of the same columns, sized by the longest text that stands in each.
    columns = [max(len(row[i]) for row in (heading, *rows)) for i in range(len(heading))]
    columns[0] += 2 * max(levels, default=0) + 2
    columns = [min(n, 60) for n in columns]
    grid = " ".join(f"{n + 2}ch" for n in columns)
    parts = [_cells(heading, right, 0, f"{_BOLD};{_RULE}")]
    open_levels: list[int] = []
    for i, (row, level) in enumerate(zip(rows, levels, strict=True)):
        while open_levels and open_levels[-1] >= level:
            open_levels.pop()
            parts.append("</details>")
        line = _cells(row, right, level, "")
        if i + 1 < len(rows) and levels[i + 1] > level:
            is_open = " open" if depth is None or level < depth else ""
            parts.append(f'<details{is_open}><summary style="cursor:pointer">{line}</summary>')
            open_levels.append(level)
        else:
            parts.append(line)
    parts += ["</details>"] * len(open_levels)
    parts += [f"<div>{escape(line)}</div>" for line in totals]
    style = f"font-family:monospace;font-size:90%;overflow-x:auto;--grid:{grid}"
    return f'<div class="ecliptic-summary" style="{style}">{"".join(parts)}</div>'


_BOLD = "font-weight:bold"
_RULE = "border-bottom:1px solid currentColor"


def _cells(row: Sequence[str], right: Sequence[bool], level: int, style: str) -> str:
    cells = []
    for i, (text, is_right) in enumerate(zip(row, right, strict=True)):
        align = "right" if is_right else "left"
        more = f"{PATH};padding-left:{2 * level}ch" if i == 0 else "padding-left:1ch"
        cells.append(
            f'<span style="text-align:{align};overflow-wrap:anywhere;{more}">{escape(text)}</span>'
        )
    # In a `summary` the triangle would take a line of its own beside a block.
    layout = "display:inline-grid;grid-template-columns:var(--grid);vertical-align:top"
    return f'<div style="{layout};{style}">{"".join(cells)}</div>'
