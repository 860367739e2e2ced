"""Runs the examples and makes pages of them: their text, what they print, the pictures they leave.

Each example is run as a reader runs it, to the end of its training, in a process of its own (one
of them needs several devices, another takes the name of a library). Its environment has
GALLERY_OUT, the folder that it leaves pictures (`.png`, `.svg`) and views (`.html`) in; it is the
folder that it is run in, too. An example that fails ends the build. All of them together take
about a minute and a half on two cores; with SMOKE=1, as for every run of an example, less.

The text of an example is a docstring, whose first paragraph is what the index shows, and cells:
those that begin with `# %% [markdown]` are prose, in comments; those with `# %%` are code.
"""

import ast
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging

HERE = Path(__file__).parent
DOCS = HERE.parent
ROOT = DOCS.parent
GALLERY = DOCS / "gallery"
PICTURES = DOCS / "pictures"
VIEWS = "_views"
TIMEOUT = 900  # a busy machine takes its time

_CELL = re.compile(r"# %%")
_PROSE = re.compile(r"# %% \[(markdown|md)\]")
_UNSHOWN = re.compile(r"  # (noqa|pyright|type).*$", re.M)  # for checkers, not for readers
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Result:
    """What an example printed, and the names of the files that it left."""

    printed: str
    files: tuple[str, ...]

    def of_kind(self, *suffixes: str) -> list[str]:
        """The files with one of the suffixes."""
        return [name for name in self.files if name.endswith(suffixes)]


def run(script: Path, target: Path) -> Result:
    """Runs an example, and keeps its pictures and views in `target`.

    Raises:
        ExtensionError: it failed, or took too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "JAX_PLATFORMS": "cpu",
            **os.environ,
            "GALLERY_OUT": folder,
            "MPLBACKEND": "Agg",
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        }
        command = [sys.executable, str(script)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                env=environment,
                cwd=folder,
                timeout=TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ExtensionError(f"{script.name} took more than {TIMEOUT} s") from error
        if done.returncode != 0:
            raise ExtensionError(f"{script.name} failed:\n{done.stdout}\n{done.stderr[-5000:]}")
        target.mkdir(parents=True, exist_ok=True)
        names = []
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in (".png", ".svg", ".html"):
                shutil.copy(path, target / path.name)
                names.append(path.name)
    # A reader has no use for the name of a folder that is gone.
    printed = _ESCAPE.sub("", done.stdout).replace(f"{folder}{os.sep}", "").rstrip()
    return Result(printed, tuple(names))


@dataclasses.dataclass(frozen=True)
class Example:
    """The text of an example, in parts."""

    name: str
    title: str
    introduction: str
    cells: tuple[tuple[str, str], ...]  # pairs of prose and code

    @property
    def summary(self) -> str:
        """The first paragraph, as one line."""
        return " ".join(self.introduction.split("\n\n")[0].split())


def read(script: Path) -> Example:
    """Takes the text of an example apart."""
    text = script.read_text(encoding="utf-8")
    doc = ast.get_docstring(ast.parse(text)) or ""
    title = re.match(r"# (.+)\n+", doc)
    if title:
        doc = doc[title.end() :]
    code = re.sub(r'^(?:#!.*\n)?(?:# %%.*\n)?r?""".*?"""\n*', "", text, count=1, flags=re.S)
    cells = tuple(cell for cell in _cells(_UNSHOWN.sub("", code)) if any(cell))
    return Example(script.stem, title[1] if title else _title(script.stem), doc, cells)


def _cells(code: str) -> Iterator[tuple[str, str]]:
    """Pairs of prose and code; one of them is empty."""
    marker, lines = "", list[str]()
    for line in [*code.split("\n"), "# %%"]:
        if not _CELL.match(line):
            lines.append(line)
            continue
        if _PROSE.match(marker):
            prose = [part.removeprefix("#").removeprefix(" ") for part in lines]
            yield "\n".join(prose).strip("\n"), ""
        else:
            yield "", "\n".join(lines).strip("\n")
        marker, lines = line, []


def _title(stem: str) -> str:
    words = stem.replace("_", " ").replace("batch norm", "BatchNorm")
    words = re.sub(r"\b(mjx|ode|rnn)\b", lambda match: match[1].upper(), words)
    return words[0].upper() + words[1:]


def page(example: Example, result: Result | None) -> str:
    """The page of an example."""
    parts = [f"# {example.title}", example.introduction]
    if result is not None:
        parts += [_picture(example, name) for name in result.of_kind(".png", ".svg")]
    for prose, code in example.cells:
        parts += [prose, f"```python\n{code}\n```" if code else ""]
    if result is not None:
        parts += ["## What it prints", f"```text\n{result.printed}\n```"] if result.printed else []
        parts += [_view(example, name) for name in result.of_kind(".html")]
    parts.append(f"{{download}}`{example.name}.py <../../examples/{example.name}.py>`")
    return "\n\n".join(part for part in parts if part) + "\n"


def _picture(example: Example, name: str) -> str:
    alternative = f"{example.title}: {Path(name).stem.replace('_', ' ')}"
    return f"![{alternative}]({example.name}/{name})"


def _view(example: Example, name: str) -> str:
    source = f"../{VIEWS}/{example.name}/{name}"
    frame = f'<iframe class="view" title="{Path(name).stem}" src="{source}"></iframe>'
    return f"```{{raw}} html\n{frame}\n```"


def index(examples: list[Example], results: dict[str, Result | None]) -> str:
    """The page that leads to all others: a card an example."""
    lines = [
        "# Gallery",
        "",
        "Programs that run in seconds, on data that packages ship. What is printed and drawn here",
        "was printed and drawn by them while this site was built.",
        "",
        "::::{container} gallery",
    ]
    for example in examples:
        result = results[example.name]
        pictures = result.of_kind(".png", ".svg") if result else []
        lines += [":::{container} gallery-card", f"[{example.title}]({example.name}.md)", ""]
        lines += [f"[{_picture(example, pictures[0])}]({example.name}.md)", ""] if pictures else []
        lines += [example.summary, ":::"]
    lines += ["::::", "", "```{toctree}", ":hidden:", ""]
    lines += [f"{example.title} <{example.name}>" for example in examples]
    return "\n".join([*lines, "```", ""])


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _build(app: Sphinx) -> None:
    scripts = sorted((ROOT / "examples").glob("*.py"))
    examples = [read(script) for script in scripts]
    jobs = [(script, GALLERY / script.stem) for script in scripts]
    jobs += [(script, PICTURES) for script in sorted((DOCS / "_pictures").glob("*.py"))]
    results: dict[str, Result | None] = dict.fromkeys([example.name for example in examples])
    if app.config.gallery_run:
        _log.info("running %d examples ...", len(jobs))
        for _, target in jobs:
            shutil.rmtree(target, ignore_errors=True)
        with ThreadPoolExecutor(max_workers=2) as pool:
            for (script, _), result in zip(
                jobs, pool.map(lambda job: run(*job), jobs), strict=True
            ):
                results[script.stem] = result
    GALLERY.mkdir(exist_ok=True)
    for stale in set(GALLERY.iterdir()) - {GALLERY / "index.md"}:
        if stale.stem not in results:
            shutil.rmtree(stale) if stale.is_dir() else stale.unlink()
    for example in examples:
        _write(GALLERY / f"{example.name}.md", page(example, results[example.name]))
    _write(GALLERY / "index.md", index(examples, results))


def _copy_views(app: Sphinx, error: Exception | None) -> None:
    for path in [] if error else [*GALLERY.glob("*/*.html"), *PICTURES.glob("*.html")]:
        target = Path(app.outdir) / VIEWS / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    # Without a run (`-D gallery_run=0`), the pages show the text of the examples alone.
    app.add_config_value("gallery_run", True, "env", [bool, int, str])
    app.connect("builder-inited", _build)
    app.connect("build-finished", _copy_views)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
