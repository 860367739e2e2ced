"""Look at a model: a table of its parts, its differences from another, a page, pictures."""

from ecliptic.tree._differences import Difference
from ecliptic.tree._distance import Distance
from ecliptic.view._diff import TreeDiff, tree_diff
from ecliptic.view._rows import SummaryRow
from ecliptic.view._summary import TreeSummary, tree_summary

__all__ = [
    "Difference",
    "Distance",
    "SummaryRow",
    "TreeDiff",
    "TreeSummary",
    "tree_diff",
    "tree_summary",
]
