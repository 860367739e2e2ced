"""The reference: one entry for each public name, written from its docstring, grouped by capability.

`pages` gives the text of each page, in MyST, as the site is built from it. `python -m
tests.support.reference` (`make reference`) writes them to `docs/reference`, which git ignores.
"""

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from conformance.surface import Shown, bare_signature
from tests.support.project import ROOT
from tests.support.reference_groups import CONSTANTS, GROUPS, Group
from tests.support.surface import public_values

FOLDER = ROOT / "docs" / "reference"
ERRORS = ROOT / "docs" / "errors"

_SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes|References?|Source|Notes?):$")
_ITEM = re.compile(r"^(\*{0,2}\w[\w.]*(?:, \*{0,2}\w+)*): ?")
_ADMONITION = re.compile(r'^!!! (\w+)(?: "(.*)")?$')
_REFERENCE = re.compile(r"\[`([^`]+)`\]\[([^\]]*)\]")
_TITLES = {"Args": "Arguments"}


class MissingEntryError(Exception):
    """A public name has no text, or belongs to no group."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One public value, under the name that references lead to."""

    anchor: str
    value: Any


def entries() -> list[Entry]:
    """Every public value, once, in alphabetical order of the last part of its name."""
    found = [Entry(name, value) for name, value in public_values()]
    return sorted(found, key=lambda entry: _last(entry.anchor).lower())


def pages() -> dict[str, str]:
    """The text of each page, by file name.

    Raises:
        MissingEntryError: if a public name has no docstring, or belongs to no group.
    """
    grouped: dict[str, list[Entry]] = {group.slug: [] for group in GROUPS}
    problems = []
    everything = entries()
    for entry in everything:
        group = group_of(entry)
        if group is None:
            problems.append(f"`{entry.anchor}` belongs to no group of reference_groups.py")
        elif not text_of(entry):
            problems.append(f"`{entry.anchor}` has no docstring")
        else:
            grouped[group.slug].append(entry)
    if problems:
        raise MissingEntryError("\n".join(problems))
    writer = _Writer({_last(entry.anchor): entry.anchor for entry in everything})
    groups = [group for group in GROUPS if grouped[group.slug]]
    texts = {f"{g.slug}.md": writer.page(g, grouped[g.slug]) for g in groups}
    return texts | {"index.md": writer.index(groups, grouped)}


def group_of(entry: Entry) -> Group | None:
    """The group whose place is the longest beginning of where the value is defined."""
    home = f"{getattr(entry.value, '__module__', '')}"
    if not home.startswith("ecliptic."):
        # Made by somebody else's class: it belongs where it is offered.
        home = entry.anchor.rpartition(".")[0]
    places = [
        (len(place), group)
        for group in GROUPS
        for place in group.places
        if f"{home}.".startswith(f"ecliptic.{place}.")
    ]
    return max(places, key=lambda x: x[0])[1] if places else None


def text_of(entry: Entry) -> str:
    """The docstring of a value, or what is written down for one that cannot have any."""
    if inspect.isclass(entry.value) or callable(entry.value):
        return inspect.getdoc(entry.value) or ""
    name = _last(entry.anchor)
    if type(entry.value).__name__ == "Primitive":
        return f"The primitive of JAX that [`{name.removesuffix('_p')}`][] binds."
    return CONSTANTS.get(entry.anchor.removeprefix("ecliptic."), "")


def _last(name: str) -> str:
    return name.rpartition(".")[2]


class _Writer:
    """Writes entries as MyST; knows which names there are to refer to."""

    def __init__(self, known: dict[str, str]):
        self.known = known

    def index(self, groups: list[Group], grouped: dict[str, list[Entry]]) -> str:
        lines = ["# Reference", "", "Every public name, by what it is for.", ""]
        for group in groups:
            lines += [f"## {group.title}", "", f"[{group.summary}]({group.slug}.md)", ""]
            for entry in grouped[group.slug]:
                lines.append(f"- {self._role(entry.anchor)}: {self._summary(entry)}")
            lines.append("")
        slugs = "\n".join(group.slug for group in groups)
        return "\n".join(lines) + f"\n```{{toctree}}\n:hidden:\n\n{slugs}\n```\n"

    def page(self, group: Group, members: list[Entry]) -> str:
        parts = [f"# {group.title}\n\n{group.summary}\n"]
        parts += [self._entry(entry) for entry in members]
        return "\n".join(parts)

    def _summary(self, entry: Entry) -> str:
        return self._inline(" ".join(text_of(entry).split("\n\n")[0].split()))

    def _entry(self, entry: Entry) -> str:
        value = entry.value
        if inspect.isclass(value) and issubclass(value, BaseException):
            bases = ", ".join(self._link(base.__name__) for base in value.__bases__)
            body = f"Bases: {bases}\n\n{self.body(text_of(entry))}\n{_advice(value.__name__)}"
            return _directive(7, "py:exception", entry.anchor, body)
        body = self.body(text_of(entry))
        if inspect.isclass(value):
            body += "".join(f"\n{method}" for method in self._methods(value))
            kind = "py:class"
        else:
            kind = "py:function" if callable(value) else "py:data"
        ending = _signature(value) if callable(value) else ""
        return _directive(7, kind, entry.anchor + ending, body)

    def _methods(self, cls: type) -> Iterator[str]:
        """The documented methods and properties of a class, and of its bases below `Module`."""
        for name in sorted({name for base in cls.__mro__ if _is_ours(base) for name in vars(base)}):
            value = inspect.getattr_static(cls, name)
            documented = inspect.getdoc(value) if name[:1] != "_" else None
            if not documented or name in vars(object):
                continue
            if isinstance(value, property):
                yield _directive(5, "py:property", name, self.body(documented))
            elif callable(getattr(cls, name)):
                static = isinstance(value, staticmethod | classmethod)
                ending = _signature(getattr(cls, name), skip_first=not static)
                yield _directive(5, "py:method", name + ending, self.body(documented))

    def body(self, doc: str) -> str:
        """A Google docstring as MyST: sections in bold, their items as a list."""
        blocks: list[str] = []
        for head, lines in _blocks(doc):
            text = textwrap.dedent("\n".join(lines)).strip("\n")
            admonition = _ADMONITION.match(head)
            if admonition:
                blocks.append(self._admonition(admonition, text))
            elif head:
                title = head.removesuffix(":")
                blocks.append(f"**{_TITLES.get(title, title)}**\n\n{self._items(title, text)}")
            else:
                blocks.append(self._examples(text))
        return "\n\n".join(block for block in blocks if block.strip()) + "\n"

    def _admonition(self, head: "re.Match[str]", text: str) -> str:
        if head[1] == "Example":
            return f"**{head[2] or 'Example'}**\n\n{self._examples(text)}"
        title = head[2] or head[1].capitalize()
        return f"````{{admonition}} {title}\n{self._examples(text)}\n````"

    def _items(self, section: str, text: str) -> str:
        lines: list[str] = []
        for line in text.split("\n"):
            item = _ITEM.match(line)
            if item and section != "Returns":
                name = self._link(item[1]) if section == "Raises" else f"`{item[1]}`"
                lines.append(f"- {name}: {self._inline(line[item.end() :])}".rstrip())
            elif line.startswith("    ") and section != "Returns":
                lines.append(f"  {self._inline(line[4:])}")
            else:
                lines.append(self._inline(line))
        return "\n".join(lines)

    def _examples(self, text: str) -> str:
        """Fences around what is typed to Python, up to the end of its output."""
        paragraphs = re.split(r"\n[ \t]*\n", text)
        fenced = [
            f"```pycon\n{p}\n```" if p.lstrip().startswith(">>> ") else self._inline(p)
            for p in paragraphs
        ]
        return "\n\n".join(fenced).replace("\n```\n\n```pycon\n", "\n\n")

    def _inline(self, text: str) -> str:
        return _REFERENCE.sub(lambda match: self._link(match[1]), text)

    def _link(self, name: str) -> str:
        anchor = self.known.get(_last(name))
        return self._role(anchor, name) if anchor else f"`{name}`"

    def _role(self, anchor: str, shown: str | None = None) -> str:
        return f"{{py:obj}}`{shown or anchor.removeprefix('ecliptic.')} <{anchor}>`"


def _advice(error: str) -> str:
    """Where the pages of errors say what to do, as their index has it."""
    for row in (ERRORS / "index.md").read_text(encoding="utf-8").splitlines():
        said, _, pages = row.strip("| ").partition(" | ")
        if row.startswith("|") and f"`{error}`" in said:
            return "What to do: " + re.sub(r"\]\((?=[\w-]+\.md)", "](../errors/", pages) + ".\n"
    return ""


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("ecliptic.") and cls.__name__ != "Module"


def _blocks(doc: str) -> Iterator[tuple[str, list[str]]]:
    """The parts of a docstring: the line that opens each (empty for plain text), and its lines."""
    head, lines = "", list[str]()
    for line in doc.split("\n"):
        opens = _SECTION.match(line) or _ADMONITION.match(line)
        if opens or (head and line and not line.startswith(" ")):
            yield head, lines
            head, lines = (line, []) if opens else ("", [line])
        else:
            lines.append(line)
    yield head, lines


def _directive(ticks: int, kind: str, signature: str, body: str) -> str:
    fence = "`" * ticks
    return f"{fence}{{{kind}}} {signature}\n\n{body.strip()}\n{fence}\n"


def _signature(value: Any, skip_first: bool = False) -> str:
    signature = bare_signature(value, _default)
    if signature is None:
        return "(...)"
    parameters = list(signature.parameters.values())
    return str(signature.replace(parameters=parameters[1:] if skip_first else parameters))


def _default(value: Any) -> Any:
    """A default as a user would type it."""
    if value is inspect.Parameter.empty or isinstance(value, int | float | str | None):
        return value
    if value in ((), []):
        return value
    if isinstance(value, type) or inspect.isroutine(value):
        module, name = value.__module__ or "", value.__qualname__
        if "<" not in name and not name.startswith("_") and not module.startswith("jax._"):
            return Shown(name if module == "builtins" else f"{module}.{name}")
    return Shown()


def write() -> None:
    """Writes all pages, and removes those of names that are gone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    texts = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = FOLDER / name
        # A page that is as it was keeps its date, so that the site need not be built anew.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
