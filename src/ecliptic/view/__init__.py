"""Look at a model: a table of its parts, its differences from another, a page, pictures."""

from ecliptic.tree._differences import Difference
from ecliptic.tree._distance import Distance
from ecliptic.view._diff import TreeDiff, tree_diff
from ecliptic.view._histograms import plot_histograms
from ecliptic.view._page import TreeHTML, tree_html
from ecliptic.view._rows import SummaryRow
from ecliptic.view._sharding import plot_sharding
from ecliptic.view._summary import TreeSummary, tree_summary

__all__ = [
    "Difference",
    "Distance",
    "SummaryRow",
    "TreeDiff",
    "TreeHTML",
    "TreeSummary",
    "plot_histograms",
    "plot_sharding",
    "tree_diff",
    "tree_html",
    "tree_summary",
]
