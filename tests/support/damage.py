"""Files cut off and with changed bits: each is read right, or refused by one of our errors."""

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ecliptic.errors import EclipticError

# How many damaged files: a few in each run of the tests, `FUZZ=10000` for a long run.
FUZZ = int(os.environ.get("FUZZ", "150"))
# What Python needs besides: errors, say.
_BASE = 1 << 20


def damaged(data: bytes, random: np.random.Generator) -> bytes:
    """The file, cut off or with a bit changed, anywhere."""
    place = int(random.integers(len(data)))
    if random.integers(3) == 0:
        return data[:place]
    # Half of the changes hit the beginning, where the header is.
    if random.integers(2):
        place = int(random.integers(min(len(data), 2000)))
    changed = bytearray(data)
    changed[place] ^= 1 << int(random.integers(8))
    return bytes(changed)


def survives(path: Path, read: Callable[[], Any], check: Callable[[Any], None], seed: int) -> int:
    """Damage a file many times and read it; return how often it was refused.

    Args:
        path: the file, which is whole at the start and at the end.
        read: reads it.
        check: raises an AssertionError unless what was read is what was written.
        seed: of the damages.

    Raises:
        AssertionError: what was read was wrong, or it took more memory than the file is large.
    """
    whole = path.read_bytes()
    random = np.random.default_rng(seed)
    refused = 0
    for number in range(FUZZ):
        path.write_bytes(damaged(whole, random))
        # To watch the memory makes Python several times slower.
        watched = number % 10 == 0
        if watched:
            tracemalloc.start()
        try:
            found = read()
        except EclipticError:
            refused += 1
        else:
            check(found)
            del found
        if watched:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 3 * len(whole) + _BASE
    path.write_bytes(whole)
    return refused
