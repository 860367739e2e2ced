"""Small programs that run on both libraries in one process.

Equal are: values, gradients, the structure of trees, what is printed, the class that an error can
be caught as, the categories of warnings. A difference on purpose is a row of ``_differences.py``;
a row whose program no longer differs is a failure, too.

``python -m conformance.parity [REGEX]`` runs those whose names match.
"""

import importlib
import re
import sys
from collections.abc import Iterator
from types import ModuleType

from conformance.parity import (
    control,
    derivatives,
    filters,
    internal,
    jit,
    layers,
    modules,
    runtime,
    serialisation,
    state,
    text,
    trees,
    vmap,
)
from conformance.parity._differences import ON_PURPOSE
from conformance.parity._outcome import difference, run
from conformance.parity._table import Program

TOPICS = (
    modules,
    filters,
    trees,
    text,
    jit,
    vmap,
    derivatives,
    layers,
    state,
    serialisation,
    runtime,
    control,
    internal,
)
PROGRAMS: dict[str, Program] = {
    name: program for topic in TOPICS for name, program in topic.TABLE.programs.items()
}


def libraries() -> tuple[ModuleType, ModuleType]:
    """Equinox, and what stands in for it. With their submodules imported."""
    names = "equinox", "ecliptic.compat.equinox"
    for name in names:
        importlib.import_module(f"{name}.internal")
    return importlib.import_module(names[0]), importlib.import_module(names[1])


def compare(name: str) -> str | None:
    """Runs a program on both libraries.

    Returns:
        What is wrong, None if nothing: a difference that is not on purpose, or a row of the
        differences on purpose that is none.
    """
    theirs, ours = libraries()
    program = PROGRAMS[name]
    found = difference(run(program, theirs), run(program, ours))
    if name not in ON_PURPOSE:
        return found
    return None if found else "is listed as a difference on purpose, and is none"


def check(pattern: str = "") -> Iterator[tuple[str, str | None]]:
    """Compares the programs whose names match, one after the other."""
    for name in PROGRAMS:
        if re.search(pattern, name):
            yield name, compare(name)


def main() -> None:
    """Prints what is wrong, and the number of programs."""
    count = wrong = 0
    for name, problem in check(*sys.argv[1:2]):
        count += 1
        if problem:
            wrong += 1
            print(f"{name}: {problem}\n", flush=True)
    print(f"{count} programs, {wrong} differ")
    sys.exit(wrong > 0)
