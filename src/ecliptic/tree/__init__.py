"""PyTrees: what is an array, splitting and joining, replacing, comparing, naming, printing.

Nothing here knows what a Module is: every function takes any PyTree.
"""

from ecliptic.tree._at import tree_at
from ecliptic.tree._check import tree_check
from ecliptic.tree._difference import first_difference
from ecliptic.tree._equal import equality, tree_equal
from ecliptic.tree._filter import combine, filter, partition
from ecliptic.tree._format import (
    TreeWLCustom,
    register_formatter,
    tree_pformat,
    tree_pprint,
)
from ecliptic.tree._hashable import hashable_combine, hashable_partition
from ecliptic.tree._omega import ω
from ecliptic.tree._one_level import tree_flatten_one_level
from ecliptic.tree._paths import (
    format_path,
    leaves_with_paths,
    match_path,
    parse_path,
    tree_paths,
)
from ecliptic.tree._predicates import (
    array_type,
    is_array,
    is_array_like,
    is_inexact_array,
    is_inexact_array_like,
)
from ecliptic.tree._text import Text, str2jax
from ecliptic.tree._updates import apply_updates

__all__ = [
    "Text",
    "TreeWLCustom",
    "apply_updates",
    "array_type",
    "combine",
    "equality",
    "filter",
    "first_difference",
    "format_path",
    "hashable_combine",
    "hashable_partition",
    "is_array",
    "is_array_like",
    "is_inexact_array",
    "is_inexact_array_like",
    "leaves_with_paths",
    "match_path",
    "parse_path",
    "partition",
    "register_formatter",
    "str2jax",
    "tree_at",
    "tree_check",
    "tree_equal",
    "tree_flatten_one_level",
    "tree_paths",
    "tree_pformat",
    "tree_pprint",
    "ω",
]
