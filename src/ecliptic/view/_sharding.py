"""`plot_sharding`: which device holds which part of each array."""

from typing import Any

import jax
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic.errors import LeafError
from ecliptic.tree import is_array, leaves_with_paths, tree_pformat
from ecliptic.view._figure import new_figure

Span = tuple[int, int]


def plot_sharding(tree: PyTree, *, columns: int = 4, root: str = "model") -> Any:
    """Draw how each array in a tree is spread over devices.

    An array is drawn as a rectangle: its rows are the first axis that is split, its columns the
    second one; axes that are whole on every device only count if none or one is split. In each part
    stand the numbers of the devices that hold it, several where it is replicated. For one array of
    one or two axes, as text, there is `jax.debug.visualize_array_sharding`.

    Args:
        tree: any PyTree, or one array. Arrays may be given by a `jax.ShapeDtypeStruct` with a
            sharding. Arrays of NumPy, which are on no device, are left out.
        columns: how many arrays stand side by side.
        root: the name of the tree in paths.

    Returns:
        A `matplotlib.figure.Figure`: a notebook shows it, `savefig` writes it to a file.

    Raises:
        MissingPackageError: `matplotlib` is not installed.
        LeafError: there is no array on devices, or one is traced.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from jax.sharding import NamedSharding, PartitionSpec
        >>> from ecliptic.view import plot_sharding
        >>> mesh = jax.make_mesh((2, 2), ("x", "y"))
        >>> weight = jax.device_put(
        ...     jnp.ones((8, 4)), NamedSharding(mesh, PartitionSpec("x", None))
        ... )
        >>> figure = plot_sharding({"weight": weight})
        >>> sorted(text.get_text() for text in figure.axes[0].texts)
        ['0, 1', '2, 3']
    """
    found = [(path, leaf) for path, leaf in leaves_with_paths(tree, root=root) if _is_placed(leaf)]
    if not found:
        raise LeafError(
            "`plot_sharding` found no array that is on devices: the tree has no array of JAX, and "
            "no `jax.ShapeDtypeStruct` with a sharding."
        )
    parts = [_parts(path, leaf) for path, leaf in found]
    figure, axes = new_figure(len(found), columns, (2.6, 2.2))
    for place, (path, leaf), of_leaf in zip(axes, found, parts, strict=True):
        _draw(place, f"{path}\n{_type(leaf)}", leaf.shape, of_leaf)
    return figure


def _is_placed(leaf: Any) -> bool:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf.sharding is not None
    return is_array(leaf) and isinstance(leaf, jax.Array)


def _type(leaf: Any) -> str:
    return tree_pformat(leaf, struct_as_array=True)


def _parts(path: str, leaf: Any) -> dict[tuple[Span, ...], list[int]]:
    """The devices that hold each part, by where it begins and ends along each axis."""
    if isinstance(leaf, _jax.Tracer):
        raise LeafError(
            f"`plot_sharding` cannot draw the array at `{path}`: it is traced, by `jax.jit` or "
            "another transformation, and on no device yet. Return it, and draw it outside; in the "
            "function, `jax.debug.inspect_array_sharding` tells of it."
        )
    parts: dict[tuple[Span, ...], list[int]] = {}
    for device, index in leaf.sharding.devices_indices_map(leaf.shape).items():
        spans = tuple(part.indices(size)[:2] for part, size in zip(index, leaf.shape, strict=True))
        parts.setdefault(spans, []).append(device.id)
    return parts


def _draw(
    axes: Any, title: str, shape: tuple[int, ...], parts: dict[tuple[Span, ...], list[int]]
) -> None:
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    vertical, horizontal = _axes_to_draw(shape, parts)
    height = shape[vertical] if vertical is not None else 1
    width = shape[horizontal] if horizontal is not None else 1
    drawn: dict[tuple[Span, Span], list[int]] = {}
    for spans, devices in parts.items():
        rows = (0, 1) if vertical is None else spans[vertical]
        cells = (0, 1) if horizontal is None else spans[horizontal]
        drawn.setdefault((rows, cells), []).extend(devices)
    for (rows, cells), devices in drawn.items():
        devices = sorted(set(devices))
        corner, size = (cells[0], rows[0]), (cells[1] - cells[0], rows[1] - rows[0])
        # One colour for one set of devices, in all of the pictures.
        colour = f"C{devices[0] % 10}"
        axes.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor="white", alpha=0.6))
        middle = corner[0] + size[0] / 2, corner[1] + size[1] / 2
        axes.text(*middle, _listed(devices), ha="center", va="center", fontsize=7)
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_title(title, fontsize=8)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_ylabel("" if vertical is None else f"axis {vertical}", fontsize=7)
    axes.set_xlabel("" if horizontal is None else f"axis {horizontal}", fontsize=7)


def _axes_to_draw(
    shape: tuple[int, ...], parts: dict[tuple[Span, ...], list[int]]
) -> tuple[int | None, int | None]:
    split = [i for i in range(len(shape)) if len({spans[i] for spans in parts}) > 1]
    # The whole axes fill up what is left, the last ones first, as matrices are written.
    whole = [i for i in reversed(range(len(shape))) if i not in split]
    chosen = sorted((split + whole)[:2])
    if len(chosen) < 2:
        return None, (chosen[0] if chosen else None)
    return chosen[0], chosen[1]


def _listed(devices: list[int]) -> str:
    if len(devices) > 4 and devices == list(range(devices[0], devices[-1] + 1)):
        return f"{devices[0]}–{devices[-1]}"
    shown = ", ".join(map(str, devices[:6]))
    return shown if len(devices) <= 6 else f"{shown}, …"
