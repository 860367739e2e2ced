"""A type checker run over small files, and what they expect of it.

A line of a case says what the checker must report there, in a comment at its end:

- `# reveals: T` after `reveal_type(...)`: the type that it must show;
- `# error: rule`: the rule that must complain about this line.

What is not announced must not be reported, so a case also states what is right.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_EXPECTED = re.compile(r"#\s*(?P<kind>reveals|error):\s*(?P<text>.+?)\s*$")
_REVEALED = re.compile(r'^Type of ".*" is "(?P<type>.*)"$', re.DOTALL)


class Report(NamedTuple):
    """One thing that the checker says, or must say.

    Args:
        file: name of the case.
        line: number of the line, from 1.
        kind: `reveals` or `error`.
        text: the type shown, or the rule that complains.
    """

    file: str
    line: int
    kind: str
    text: str


def expected(cases: Path) -> set[Report]:
    """What the comments of the cases announce."""
    return {
        Report(path.name, number, match["kind"], match["text"])
        for path in sorted(cases.glob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := _EXPECTED.search(line))
    }


def reported(cases: Path) -> set[Report]:
    """What pyright says about the cases, in its standard mode."""
    result = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, cases],
        capture_output=True,
        text=True,
        check=False,
    )
    return {_read(item) for item in json.loads(result.stdout)["generalDiagnostics"]}


def _read(item: dict) -> Report:
    file, line = Path(item["file"]).name, item["range"]["start"]["line"] + 1
    if item["severity"] == "information" and (match := _REVEALED.match(item["message"])):
        return Report(file, line, "reveals", match["type"])
    return Report(file, line, item["severity"], item.get("rule", item["message"]))
