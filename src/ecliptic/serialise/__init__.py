"""Trees as files."""

from ecliptic.module import TorchRule, register_torch_rule
from ecliptic.serialise._checkpoints import Checkpoints
from ecliptic.serialise._leaf import (
    SupportsReadSeek,
    SupportsWrite,
    default_deserialise_filter_spec,
    default_serialise_filter_spec,
)
from ecliptic.serialise._load import FileMetadata, load, load_metadata
from ecliptic.serialise._onnx import to_onnx
from ecliptic.serialise._report import Difference, LoadReport, Renaming
from ecliptic.serialise._save import save
from ecliptic.serialise._state_dict import from_state_dict, to_state_dict
from ecliptic.serialise._torch import from_torch
from ecliptic.serialise._tree import tree_deserialise_leaves, tree_serialise_leaves

__all__ = [
    "Checkpoints",
    "Difference",
    "FileMetadata",
    "LoadReport",
    "Renaming",
    "SupportsReadSeek",
    "SupportsWrite",
    "TorchRule",
    "default_deserialise_filter_spec",
    "default_serialise_filter_spec",
    "from_state_dict",
    "from_torch",
    "load",
    "load_metadata",
    "register_torch_rule",
    "save",
    "to_onnx",
    "to_state_dict",
    "tree_deserialise_leaves",
    "tree_serialise_leaves",
]
