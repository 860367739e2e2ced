"""Where the files of the project are, for tests that read them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "ecliptic"
DESIGN = ROOT / "docs" / "design"
# Pages whose code is one program.
GUIDES = sorted(p for name in ("guides", "errors") for p in (ROOT / "docs" / name).glob("*.md"))

_FOLDERS = (".ci", "bench", "docs", "examples", "src", "tests")
_TEXT = {".json", ".md", ".py", ".toml", ""}


def sources(*folders: str) -> Iterator[Path]:
    """Every Python file under the folders, sorted."""
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def documents() -> list[Path]:
    """Every Markdown file of the project."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


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
        if path.suffix in _TEXT and not hidden and path.name != "LICENSE":
            yield path


def parse(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def shown(path: Path) -> str:
    """A path as a test's name or message shows it."""
    return path.relative_to(ROOT).as_posix()
