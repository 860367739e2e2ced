"""Writing a tree to a file and reading it back, beside safetensors and Equinox's stream.

The trees are small enough for every run; ``BENCH_TREE_BYTES=1000000000`` makes them those of the
budgets' wording: 1 GB in 200 arrays, and in 20,000.
"""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bench._measure import Clock, Reported
from bench._models import ECLIPTIC, EQUINOX, library
from bench._row import Row

BYTES = int(os.environ.get("BENCH_TREE_BYTES", "100000000"))
# How many arrays there are of 1 GB.
COUNTS = {"large arrays": 200, "small arrays": 20_000}
LARGE, SMALL = COUNTS


@functools.cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="ecliptic-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@functools.cache
def _tree(kind: str) -> list[dict[str, jax.Array]]:
    size = 1_000_000_000 // COUNTS[kind] // 4
    generator = np.random.default_rng(0)
    count = max(1, BYTES // (4 * size))
    return [{"weight": jnp.asarray(generator.random(size, np.float32))} for _ in range(count)]


def _timed(run: Callable[[], Any]) -> Clock:
    def sample() -> float:
        start = time.perf_counter()
        jax.block_until_ready(run())
        return time.perf_counter() - start

    return Reported(sample)


def _save(kind: str) -> Clock:
    save, tree, path = library(ECLIPTIC).serialise.save, _tree(kind), _folder() / f"{kind} save"
    return _timed(lambda: save(path, tree))


def _save_file(kind: str, *, sync: bool = False) -> Clock:
    import safetensors.numpy

    arrays = {f"[{i}]['weight']": x["weight"] for i, x in enumerate(_tree(kind))}
    path = _folder() / f"{kind}.reference"

    def run() -> None:
        # The same arrays, which are JAX's.
        safetensors.numpy.save_file({k: np.asarray(x) for k, x in arrays.items()}, path)
        if sync:
            with open(path, "rb") as f:
                os.fsync(f.fileno())

    return _timed(run)


def _save_stream(kind: str) -> Clock:
    write, tree = library(EQUINOX).tree_serialise_leaves, _tree(kind)
    return _timed(lambda: write(_folder() / f"{kind}.save.eqx", tree))


def _load(kind: str) -> Clock:
    serialise, tree, path = library(ECLIPTIC).serialise, _tree(kind), _folder() / kind
    serialise.save(path, tree)
    return _timed(lambda: serialise.load(path, tree))


def _load_stream(kind: str) -> Clock:
    theirs, tree, path = library(EQUINOX), _tree(kind), _folder() / f"{kind}.eqx"
    theirs.tree_serialise_leaves(path, tree)
    return _timed(lambda: theirs.tree_deserialise_leaves(path, tree))


def _load_file(kind: str) -> Clock:
    import safetensors.numpy

    path = _folder() / f"{kind}.load"
    arrays = {f"[{i}]['weight']": np.asarray(x["weight"]) for i, x in enumerate(_tree(kind))}
    safetensors.numpy.save_file(arrays, path)
    return _timed(lambda: [jnp.asarray(x) for x in safetensors.numpy.load_file(path).values()])


# The peak of a process's memory is that of its life, unless the system is told to forget it.
MEMORY = """
import sys, jax, jax.numpy as jnp
from ecliptic.serialise import load, save
jax.block_until_ready(jnp.zeros(1))
path, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
save(path + ".warm", [jnp.zeros(1)])
load(path + ".warm", [jnp.zeros(1)])
like = [{"weight": jax.ShapeDtypeStruct((size,), jnp.float32)} for _ in range(count)]

def read(name):
    with open("/proc/self/status") as f:
        return next(1024 * int(line.split()[1]) for line in f if line.startswith(name + ":"))

with open("/proc/self/clear_refs", "w") as f:
    f.write("5")
before = read("VmRSS")
tree = load(path, like)
print(read("VmHWM") - before)
"""


def _memory(kind: str) -> Clock:
    library(ECLIPTIC).serialise.save(_folder() / kind, _tree(kind))
    tree = _tree(kind)
    command = [sys.executable, "-c", MEMORY, str(_folder() / kind), str(len(tree))]
    command.append(str(tree[0]["weight"].size))

    def sample() -> float:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(done.stdout)

    return Reported(sample)


def _bytes(kind: str) -> Clock:
    total = float(sum(x["weight"].nbytes for x in _tree(kind)))
    return Reported(lambda: total)


def _rows(kind: str) -> tuple[Row, ...]:
    name = kind.partition(" ")[0]
    return (
        Row(
            f"save {kind}",
            budget=f"serialise.save-{name}",
            subject=partial(_save, kind),
            reference=partial(_save_file, kind),
            against="safetensors.numpy.save_file",
            peers={
                "and fsync": partial(_save_file, kind, sync=True),
                "equinox": partial(_save_stream, kind),
            },
            repeats=15,
        ),
        Row(
            f"load {kind}",
            budget=f"serialise.load-{name}",
            subject=partial(_load, kind),
            reference=partial(_load_stream, kind),
            against="Equinox's stream",
            peers={"safetensors": partial(_load_file, kind)},
            repeats=15,
        ),
        Row(
            f"load {kind}, peak of memory",
            budget="serialise.memory",
            subject=partial(_memory, kind),
            reference=partial(_bytes, kind),
            against="the bytes of the tree",
            repeats=1,
            quantity="B",
        ),
    )


ROWS = (*_rows(LARGE), *_rows(SMALL))
