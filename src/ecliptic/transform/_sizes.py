"""Whether the arguments of a mapped function have the axes that they shall be mapped over."""

from typing import Any

from ecliptic import _jax
from ecliptic.errors import ArgumentError
from ecliptic.transform._axes import Axis, Laid, Side
from ecliptic.tree import is_array


def not_an_array(side: Side, number: int, leaf: Any, axis: Axis) -> ArgumentError:
    """The error for an axis of something without axes."""
    return ArgumentError(
        f"`{side.option}` gives axis {axis} to `{side.path_of_leaf(number)}`, which is not an "
        f"array but has type `{type(leaf).__name__}`. Use None for it, or `if_array({axis})` for "
        f"the tree around it."
    )


def check_sizes(side: Side, laid: Laid, mapped: list[int], axis_size: int | None) -> None:
    """Checks axes and sizes of the mapped arguments.

    JAX does so too, but by numbers of leaves, which name the wrong argument where a vmappable
    object is among them.
    """
    size = axis_size
    known = size is not None
    for i in mapped:
        leaf, axis = laid.leaves[i], laid.axes[i]
        if type(axis) is not int:
            continue
        shape = getattr(leaf, "shape", None)
        if not isinstance(shape, tuple):
            if not _jax.is_vmappable(leaf):
                raise not_an_array(side, i, leaf, axis)
            continue
        try:
            found = shape[axis]
        except IndexError:
            _check_range(side, i, leaf, axis)
            continue
        if size is None:
            size = found
        elif found != size:
            raise _different_sizes(side, laid, mapped, axis_size)
        known = True
    if not known:
        named = ", ".join(
            f"`{side.path_of_leaf(i)}` (`{type(laid.leaves[i]).__name__}`)" for i in mapped[:4]
        )
        raise ArgumentError(
            f"Cannot tell the size of the mapped axis from {named}: no `.shape` says it. Pass "
            f"`axis_size=`."
        )


def _check_range(side: Side, number: int, leaf: Any, axis: int) -> None:
    if _jax.is_vmappable(leaf):
        # Its type says best what is wrong.
        return
    name = side.path_of_leaf(number)
    ndim = len(leaf.shape)
    hint = (
        f" For an argument that is the same for every element, write `in_axes={{{name!r}: None}}`."
        if name.isidentifier()
        else ""
    )
    raise ArgumentError(
        f"`in_axes` gives axis {axis} to `{name}`, but it has only {ndim} "
        f"dimension{'' if ndim == 1 else 's'}.{hint}"
    )


def _different_sizes(side: Side, laid: Laid, mapped: list[int], axis_size: Any) -> ArgumentError:
    lines: dict[str, str] = {}
    if axis_size is not None:
        lines[str(axis_size)] = f"  * {axis_size}: `axis_size`"
    for i in mapped:
        leaf, axis = laid.leaves[i], laid.axes[i]
        shape = getattr(leaf, "shape", None)
        if type(axis) is int and isinstance(shape, tuple) and -len(shape) <= axis < len(shape):
            kind = "" if is_array(leaf) else f"{type(leaf).__name__}, "
            here = f"`{side.path_of_leaf(i)}` ({kind}shape {shape}, axis {axis})"
            lines.setdefault(str(shape[axis]), f"  * {shape[axis]}: {here}")
    listing = "\n".join(lines.values())
    return ArgumentError(f"Inconsistent sizes of the mapped axis:\n{listing}")
