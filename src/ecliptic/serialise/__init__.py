"""Trees as files."""

from ecliptic.serialise._leaf import (
    SupportsReadSeek,
    SupportsWrite,
    default_deserialise_filter_spec,
    default_serialise_filter_spec,
)
from ecliptic.serialise._load import FileMetadata, load, load_metadata
from ecliptic.serialise._report import Difference, LoadReport, Renaming
from ecliptic.serialise._save import save
from ecliptic.serialise._tree import tree_deserialise_leaves, tree_serialise_leaves

__all__ = [
    "Difference",
    "FileMetadata",
    "LoadReport",
    "Renaming",
    "SupportsReadSeek",
    "SupportsWrite",
    "default_deserialise_filter_spec",
    "default_serialise_filter_spec",
    "load",
    "load_metadata",
    "save",
    "tree_deserialise_leaves",
    "tree_serialise_leaves",
]
