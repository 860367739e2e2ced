"""`plot_histograms`: how the elements of each array in a tree are distributed."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic.errors import LeafError
from ecliptic.tree import filter as keep
from ecliptic.tree import is_inexact_array, leaves_with_paths
from ecliptic.view._figure import new_figure


def plot_histograms(
    tree: PyTree,
    *,
    filter_spec: PyTree = is_inexact_array,
    bins: int | str = 40,
    columns: int = 4,
    root: str = "model",
) -> Any:
    """Draw a histogram of the elements of each array in a tree: of weights, or of gradients.

    Above each stands the path, and below it mean and standard deviation, and how many elements are
    zero or not finite (these are not in the histogram). Gradients of a layer that are all zero, or
    smaller by far than those of others, are so seen at a glance.

    Args:
        tree: a model; or its gradients, or its updates, as they come out of `filter_grad`.
        filter_spec: which arrays to draw, as in `ecliptic.partition`. By default, all of real or
            complex numbers; of complex numbers, absolute values are drawn.
        bins: how many bars, or a rule for it, as in `numpy.histogram`.
        columns: how many histograms stand side by side.
        root: the name of the tree in paths.

    Returns:
        A `matplotlib.figure.Figure`: a notebook shows it, `savefig` writes it to a file.

    Raises:
        MissingPackageError: `matplotlib` is not installed.
        LeafError: an array is traced, or there is none.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> import ecliptic as ec
        >>> from ecliptic.view import plot_histograms
        >>> model = ec.nn.MLP(2, 1, width_size=8, depth=1, key=jax.random.key(0))
        >>> gradients = ec.filter_grad(lambda model, x: model(x).sum())(model, jnp.ones(2))
        >>> figure = plot_histograms(gradients)
        >>> [axes.get_title() for axes in figure.axes]
        ['model.layers[0].weight', 'model.layers[0].bias',
         'model.layers[1].weight', 'model.layers[1].bias']
    """
    found = leaves_with_paths(keep(tree, filter_spec), root=root)
    if not found:
        raise LeafError(
            "`plot_histograms` found no array to draw: the tree has none, or `filter_spec` picks "
            "none. By default, these are arrays of real or complex numbers."
        )
    numbers = [_elements(path, leaf) for path, leaf in found]
    figure, axes = new_figure(len(found), columns, (3.0, 2.2))
    for place, (path, _), values in zip(axes, found, numbers, strict=True):
        _draw(place, path, values, bins)
    return figure


def _elements(path: str, leaf: Any) -> np.ndarray:
    if isinstance(leaf, _jax.Tracer):
        raise LeafError(
            f"`plot_histograms` cannot draw the array at `{path}`: it is traced, by `jax.jit` or "
            "another transformation, and has no values yet. Return it, and draw it outside."
        )
    values = np.asarray(leaf).ravel()
    if jnp.issubdtype(values.dtype, jnp.complexfloating):
        return np.abs(values)
    return values.astype(np.float64)


def _draw(axes: Any, path: str, values: np.ndarray, bins: int | str) -> None:
    finite = values[np.isfinite(values)]
    axes.set_title(path, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.locator_params(axis="x", nbins=4)
    axes.set_yticks([])
    notes = []
    if finite.size:
        axes.hist(finite, bins=bins)
        notes.append(f"{finite.mean():.3g} ± {finite.std():.3g}")
        zeros = int((finite == 0).sum())
        if zeros:
            notes.append(f"{zeros} of {values.size} zero")
    if finite.size < values.size:
        notes.append(f"{values.size - finite.size} of {values.size} not finite")
        axes.set_facecolor("mistyrose")
    axes.set_xlabel("\n".join(notes), fontsize=7)
