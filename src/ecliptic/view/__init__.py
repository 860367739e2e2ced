"""Look at a model: a table of its parts, its differences from another, a page, pictures."""

from ecliptic.tree._differences import Difference
from ecliptic.tree._distance import Distance
from ecliptic.view._diff import TreeDiff, tree_diff

__all__ = [
    "Difference",
    "Distance",
    "TreeDiff",
    "tree_diff",
]
