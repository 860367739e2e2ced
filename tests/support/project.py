"""Where the files of the project are, for tests that read them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "ecliptic"
DESIGN = ROOT / "docs" / "design"
# Pages whose code is one program.
_GUIDES = ("guides/*.md", "errors/*.md", "migrate/*.md", "tutorials/*.md", "faq.md", "index.md")
GUIDES = sorted(
    path
    for pattern in _GUIDES
    for path in (ROOT / "docs").glob(pattern)
    if path.name != "index.md" or path.parent.name == "docs"
)
# What the build of the site writes, and git ignores.
GENERATED = tuple(ROOT / "docs" / name for name in ("gallery", "pictures", "reference"))

_FOLDERS = (".ci", "bench", "conformance", "docs", "examples", "src", "tests")
_TEXT = {".json", ".md", ".py", ".toml", ""}


def sources(*folders: str) -> Iterator[Path]:
    """Every Python file under the folders, sorted."""
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def documents() -> list[Path]:
    """Every Markdown file of the project."""
    found = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    return [path for path in found if not is_generated(path)]


def is_generated(path: Path) -> bool:
    """Whether the build of the site writes the file."""
    return any(path.resolve().is_relative_to(folder) for folder in GENERATED)


def code_of(document: Path, label: str = "python") -> list[str]:
    """The pieces of code in a document that have a label, in order.

    `python mjx` is for what needs packages that the other tests do without.
    """
    text = document.read_text(encoding="utf-8")
    return re.findall(rf"^```{label}\n(.*?)^```$", text, flags=re.S | re.M)


def texts() -> Iterator[Path]:
    """Every file that a person reads, save the licence, whose words are not ours."""
    files = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in _FOLDERS:
        files += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in sorted(files):
        hidden = path.name.startswith(".") and path.name != ".gitignore"
        hidden |= is_generated(path)
        if path.suffix in _TEXT and not hidden and path.name != "LICENSE":
            yield path


def parse(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def shown(path: Path) -> str:
    """A path as a test's name or message shows it."""
    return path.relative_to(ROOT).as_posix()
