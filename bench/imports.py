"""What ``import ecliptic`` adds to ``import jax``, in a fresh interpreter each time."""

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial

from bench._measure import Clock, Reported
from bench._row import Row

# What Ecliptic can work with, and what its demo and its tests use: none of it may be loaded before
# it is needed.
OPTIONAL = frozenset(
    [
        "beartype",
        "cloudpickle",
        "equinox",
        "flax",
        "hypothesis",
        "matplotlib",
        "optax",
        "orbax",
        "pytest",
        "safetensors",
        "sklearn",
        "tqdm",
        "treescope",
    ]
)

# `Module` is read so that an empty package cannot pass for a fast one.
PROGRAM = """
import importlib, json, sys, time
import jax
before = set(sys.modules)
start = time.perf_counter()
module = importlib.import_module(sys.argv[1])
seconds = time.perf_counter() - start
module.Module
print(json.dumps({"seconds": seconds, "loaded": sorted(set(sys.modules) - before)}))
"""


def imported(module: str) -> tuple[float, list[str]]:
    """Seconds that the import took on top of JAX, and the modules that it loaded.

    Raises:
        ImportError: if the interpreter failed; the message is the end of what it said.
    """
    command = [sys.executable, "-c", PROGRAM, module]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    if done.returncode:
        raise ImportError(f"import {module}: {done.stderr.strip().splitlines()[-1]}")
    answer = json.loads(done.stdout)
    return answer["seconds"], answer["loaded"]


@functools.cache
def _bytecode_folder() -> str:
    folder = tempfile.mkdtemp(prefix="ecliptic-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _environment() -> dict[str, str]:
    """An environment with compiled bytecode, as an installed package has it.

    The first import writes it, whatever this machine's settings; the minimum leaves that one out.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return environment | {"PYTHONPYCACHEPREFIX": _bytecode_folder()}


def refuse_optional(loaded: list[str]) -> None:
    """Raises an ImportError if an optional package is among the modules ``loaded``."""
    found = sorted({name.partition(".")[0] for name in loaded} & OPTIONAL)
    if found:
        raise ImportError(f"import ecliptic loads optional packages: {', '.join(found)}")


def _ecliptic() -> Clock:
    def sample() -> float:
        seconds, loaded = imported("ecliptic")
        refuse_optional(loaded)
        return seconds

    return Reported(sample)


def _peer(module: str) -> Clock:
    return Reported(lambda: imported(module)[0])


ROWS = (
    Row(
        "import ecliptic, on top of import jax",
        budget="imports.ecliptic",
        subject=_ecliptic,
        peers={"equinox": partial(_peer, "equinox"), "flax nnx": partial(_peer, "flax.nnx")},
        repeats=7,
    ),
)
