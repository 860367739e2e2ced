"""Loops and branches: those of `jax.lax`, over any PyTree."""

from typing import TYPE_CHECKING

from ecliptic._later import later
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
    from typing import Any

    maybe_set_p: Any
    select_if_vmap_p: Any

# Primitives are borrowed from JAX, which must not be a condition of the import.
__getattr__ = later(
    __name__,
    {
        "maybe_set_p": "ecliptic.primitive._conditional",
        "select_if_vmap_p": "ecliptic.primitive._conditional",
    },
)

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
