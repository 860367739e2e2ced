"""The engines of the loops, on flat lists of arrays."""

from ecliptic.control._loops._buffer import Buffer, buffer_at_set
from ecliptic.control._loops._scan import checkpointed_scan, lax_scan
from ecliptic.control._loops._while import (
    bounded_while_loop,
    checkpointed_while_loop,
    lax_while_loop,
)

__all__ = [
    "Buffer",
    "bounded_while_loop",
    "buffer_at_set",
    "checkpointed_scan",
    "checkpointed_while_loop",
    "lax_scan",
    "lax_while_loop",
]
