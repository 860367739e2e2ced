"""The reference: one page for each public name, written from its docstring.

`python -m tests.support.reference` (`make reference`) writes the pages anew.
"""

import inspect
import re
import textwrap

from tests.support.project import ROOT
from tests.support.surface import public_values

FOLDER = ROOT / "docs" / "reference"

_SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes):$")
_ITEM = re.compile(r"^(\*{0,2}\w+(?:, \w+)*): ")


def pages() -> dict[str, str]:
    """The text of each page, by file name."""
    found = {
        name: v for name, v in sorted(public_values(), key=lambda x: x[0]) if _is_documented(v)
    }
    texts = {f"{_file_of(name)}.md": _page(name, value) for name, value in found.items()}
    lines = [f"- [`{name}`]({_file_of(name)}.md): {_first_line(v)}" for name, v in found.items()]
    head = "# Reference\n\nEvery public name, in alphabetical order.\n\n"
    return texts | {"index.md": head + "\n".join(sorted(lines, key=str.lower)) + "\n"}


def _is_documented(value: object) -> bool:
    return (inspect.isclass(value) or callable(value)) and bool(inspect.getdoc(value))


def _file_of(name: str) -> str:
    return name.removeprefix("ecliptic.")


def _first_line(value: object) -> str:
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())


def _signature(name: str, value: object) -> str:
    if inspect.isclass(value) and issubclass(value, BaseException):
        return f"class {name}({', '.join(base.__name__ for base in value.__bases__)})"
    try:
        parameters = inspect.signature(value).parameters.values()  # pyright: ignore
    except (ValueError, TypeError):
        return name
    # A default that is an object without a literal of its own is shown by dots.
    shown = [
        p.replace(
            annotation=inspect.Parameter.empty,
            default=_Dots() if p.default is not p.empty and _is_opaque(p.default) else p.default,
        )
        for p in parameters
    ]
    return f"{name}{inspect.Signature(shown)}"


class _Dots:
    def __repr__(self) -> str:
        return "..."


def _is_opaque(default: object) -> bool:
    return not isinstance(default, int | float | str | bool | tuple | type(None))


def _page(name: str, value: object) -> str:
    body = _markdown(inspect.getdoc(value) or "")
    return f"# `{name}`\n\n```text\n{_signature(name, value)}\n```\n\n{body}"


def _markdown(doc: str) -> str:
    """A Google docstring as Markdown: sections as headings, their items as a list."""
    doc = re.sub(r"^!!! Example\n((?:\n|    .*\n?)+)", _example, doc, flags=re.M)
    doc = re.sub(r"\[(`[^`]+`)\]\[\]", r"\1", doc)
    lines: list[str] = []
    in_section = False
    for line in doc.split("\n"):
        section = _SECTION.match(line)
        if section:
            in_section = True
            lines += [f"## {'Arguments' if section[1] == 'Args' else section[1]}", ""]
        elif in_section and line.startswith("    "):
            item = _ITEM.match(line[4:])
            lines.append(
                f"- `{item[1]}`: {line[4 + item.end() :]}" if item else f"  {line.strip()}"
            )
        else:
            in_section = in_section and not line
            lines.append(line)
    return "\n".join(line.rstrip() for line in lines).strip() + "\n"


def _example(match: "re.Match[str]") -> str:
    return f"## Example\n\n```pycon\n{textwrap.dedent(match[1]).strip()}\n```\n"


def write() -> None:
    """Writes all pages, and removes those of names that are gone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    texts = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
