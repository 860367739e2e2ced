"""Ecliptic: Modules, filtered transformations and the tools around them, for JAX."""

from ecliptic.module import (
    AbstractClassVar,
    AbstractVar,
    Module,
    Partial,
    Static,
    field,
    module_update_wrapper,
)
from ecliptic.transform import Exported, filter_jit
from ecliptic.tree import (
    apply_updates,
    combine,
    filter,
    is_array,
    is_array_like,
    is_inexact_array,
    is_inexact_array_like,
    partition,
    tree_at,
    tree_check,
    tree_equal,
    tree_flatten_one_level,
    tree_pformat,
    tree_pprint,
)

__all__ = [
    "AbstractClassVar",
    "AbstractVar",
    "Exported",
    "Module",
    "Partial",
    "Static",
    "apply_updates",
    "combine",
    "field",
    "filter",
    "filter_jit",
    "is_array",
    "is_array_like",
    "is_inexact_array",
    "is_inexact_array_like",
    "module_update_wrapper",
    "partition",
    "tree_at",
    "tree_check",
    "tree_equal",
    "tree_flatten_one_level",
    "tree_pformat",
    "tree_pprint",
]
