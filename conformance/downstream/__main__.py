"""``python -m conformance.downstream SUITE``: one suite, compared with what is expected of it."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SUITES = Path(__file__).with_name("suites.toml")
ROOT = Path(__file__).parents[2]
CLONES = ROOT / ".cache" / "suites"


def read() -> dict[str, Any]:
    """The suites, by name."""
    return tomllib.loads(SUITES.read_text(encoding="utf-8"))


def clone(name: str, suite: dict[str, Any], folder: Path) -> Path:
    """Gets the tests of a suite, if they are not there yet."""
    place = folder / name
    if place.exists():
        return place
    if "sdist" in suite:
        place.mkdir(parents=True)
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*pip, "--dest", str(place), suite["sdist"]], check=True)
        (archive,) = place.glob("*.tar.gz")
        subprocess.run(["tar", "--strip-components=1", "-xzf", archive.name], cwd=place, check=True)
        return place
    git = ["git", "clone", "--quiet", "--depth", "1", "--branch", suite["tag"]]
    subprocess.run([*git, suite["repository"], str(place)], check=True)
    return place


def run(
    suite: dict[str, Any], place: Path, *, real: bool, every: int, options: list[str]
) -> dict[str, str]:
    """Runs the tests where they lie.

    Returns:
        Outcomes, by the id of the test.
    """
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.tsv"
        plugin = [] if real else ["-p", "ecliptic.compat.equinox.pytest_plugin"]
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        environment = {
            **os.environ, "PYTHONPATH": path, "RESULTS": str(results), "SAMPLE_EVERY": str(every),
            "EQX_GETKEY_SEED": "0", "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cpu"),
        }  # fmt: skip
        command = [sys.executable, "-m", "pytest", *plugin, "-p", "conformance.downstream.sampler"]
        subprocess.run(
            [*command, "-q", *suite["tests"], *options], cwd=place, env=environment, check=False
        )
        if not results.exists():
            sys.exit("no test ran: see above")
        lines = [line.split("\t", 1) for line in results.read_text("utf-8").splitlines()]
    # What failed in set-up or tear-down after a call that passed has two lines: the worse counts.
    outcomes: dict[str, str] = {}
    for outcome, test in lines:
        if outcomes.get(test) != "failed":
            outcomes[test] = outcome
    return outcomes


def unexpected(outcomes: dict[str, str], expected: dict[str, str]) -> Iterator[str]:
    """The failures that nothing in the list explains."""
    for test, outcome in outcomes.items():
        if outcome == "failed" and reason(test, expected) is None:
            yield test


def reason(test: str, expected: dict[str, str]) -> str | None:
    """Why a test may fail: an entry without parameters stands for all of them."""
    return expected.get(test) or expected.get(re.sub(r"\[.*\]$", "", test))


def main() -> None:
    """Runs one suite, and tells what is not as expected."""
    suites = read()
    parser = argparse.ArgumentParser(prog="python -m conformance.downstream", description=__doc__)
    parser.add_argument("suite", choices=suites)
    parser.add_argument("--clones", type=Path, default=CLONES)
    parser.add_argument("--real", action="store_true", help="on Equinox itself, to compare")
    parser.add_argument("--all", action="store_true", help="all tests, where a sample is usual")
    arguments, options = parser.parse_known_args()
    suite = suites[arguments.suite]
    place = clone(arguments.suite, suite, arguments.clones)
    every = 1 if arguments.all else suite.get("sample", 1)
    outcomes = run(suite, place, real=arguments.real, every=every, options=options)
    expected = suite.get("expected", {})
    count = {kind: list(outcomes.values()).count(kind) for kind in ("passed", "failed", "skipped")}
    print(f"\n{arguments.suite}: {', '.join(f'{n} {kind}' for kind, n in count.items())}")
    for test, outcome in outcomes.items():
        if (why := reason(test, expected)) and outcome != "skipped":
            print(f"  {outcome}, and may fail ({why}): {test}")
    wrong = list(unexpected(outcomes, expected))
    if not arguments.real:
        kinds = {
            test: "unexpected" if test in wrong else "expected" if outcome == "failed" else outcome
            for test, outcome in outcomes.items()
        }
        lines = [f"{kind}\t{test}\n" for test, kind in kinds.items()]
        (arguments.clones / f"{arguments.suite}.tsv").write_text("".join(lines), encoding="utf-8")
    for test in wrong:
        print(f"  UNEXPECTED failure: {test}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
