"""What the pictures have in common."""

import math
from typing import Any

from ecliptic.errors import MissingPackageError


def new_figure(count: int, columns: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    """Make a figure with some axes in a grid.

    It is none of pyplot's: nothing keeps it alive but the caller, and no window opens.

    Args:
        count: how many axes.
        columns: how many stand side by side.
        size: width and height of each, in inches.

    Returns:
        The figure, and its axes.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise MissingPackageError(
            "pictures are drawn by the package `matplotlib`, which is not installed. Install it "
            "(`pip install matplotlib`, or `ecliptic[view]`)."
        ) from error
    columns = max(1, min(columns, count))
    rows = max(1, math.ceil(count / columns))
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).flatten().tolist()
    for unused in axes[count:]:
        unused.remove()
    return figure, axes[:count]
