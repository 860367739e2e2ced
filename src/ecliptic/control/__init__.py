"""Loops and branches: those of `jax.lax`, over any PyTree."""

import importlib
from typing import TYPE_CHECKING, Any

from ecliptic.control._cond import filter_cond, filter_switch
from ecliptic.control._loops import Buffer, buffer_at_set
from ecliptic.control._map import filter_associative_scan, filter_map
from ecliptic.control._maybe_buffer import MaybeBuffer
from ecliptic.control._progress import (
    AbstractProgress,
    NoProgress,
    TextProgress,
    TqdmProgress,
)
from ecliptic.control._scan import filter_scan
from ecliptic.control._scan_trick import scan_trick
from ecliptic.control._while_loop import filter_fori_loop, filter_while_loop

if TYPE_CHECKING:
    from ecliptic.control._conditional import maybe_set_p, select_if_vmap_p

__all__ = [
    "AbstractProgress",
    "Buffer",
    "MaybeBuffer",
    "NoProgress",
    "TextProgress",
    "TqdmProgress",
    "buffer_at_set",
    "filter_associative_scan",
    "filter_cond",
    "filter_fori_loop",
    "filter_map",
    "filter_scan",
    "filter_switch",
    "filter_while_loop",
    "maybe_set_p",
    "scan_trick",
    "select_if_vmap_p",
]


def __getattr__(name: str) -> Any:
    # Primitives are borrowed from JAX, which must not be a condition of the import.
    if name in ("maybe_set_p", "select_if_vmap_p"):
        return getattr(importlib.import_module("ecliptic.control._conditional"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
