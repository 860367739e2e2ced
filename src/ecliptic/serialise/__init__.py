"""Trees as files."""

from ecliptic.serialise._leaf import (
    SupportsReadSeek,
    SupportsWrite,
    default_deserialise_filter_spec,
    default_serialise_filter_spec,
)
from ecliptic.serialise._tree import tree_deserialise_leaves, tree_serialise_leaves

__all__ = [
    "SupportsReadSeek",
    "SupportsWrite",
    "default_deserialise_filter_spec",
    "default_serialise_filter_spec",
    "tree_deserialise_leaves",
    "tree_serialise_leaves",
]
