"""One call of a mapped function, on flat lists.

Leaves with an axis go to `jax.vmap` as one list, and all others stay in the closure. Outputs come
back in one list for each axis that `out_axes` names, so that a vmappable type puts the elements
together at the right axis itself. No tree is ever rebuilt with holes in it, which such a type could
not map.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.tree_util import tree_flatten_with_path, tree_leaves
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic._jax._trace import is_mapped_by, trace_tag
from ecliptic.errors import ArgumentError
from ecliptic.transform._axes import Axis, IsLeaf, Laid, Side, lay
from ecliptic.transform._sizes import not_an_array
from ecliptic.tree import format_path, is_array, leaves_with_paths
from ecliptic.tree._passage import Passage


class Options(NamedTuple):
    """How a function is mapped."""

    in_axes: Any
    out_axes: Any
    groups: list[Axis]
    axis_size: int | None
    is_leaf: IsLeaf
    jaxkwargs: dict[str, Any]


def output_side(value: PyTree) -> Side:
    """The output of a function, for messages."""
    return Side("out_axes", value, lambda path: format_path(path, root="out"))


# Where an output goes. Numbers from 0 on are groups of outputs with the same axis.
_SHARED = -1
_STATIC = -2


class _Planned(NamedTuple):
    """How to find one leaf of the output again.

    Args:
        group: the list in which it is.
        place: its place there.
        move: the axis to move it to, where no list has that axis.
        path: its path, for vmappable objects.
    """

    group: int
    place: int
    move: Axis = None
    path: str | None = None


class Mapping:
    """One call of a mapped function."""

    def __init__(
        self,
        fun: Callable[..., Any],
        inputs: Side,
        laid: Laid,
        mapped: list[int],
        options: Options,
    ) -> None:
        self.fun = fun
        self.inputs = inputs
        self.laid = laid
        self.mapped = mapped
        self.options = options
        self.tag: Any = None
        self.plan: list[_Planned] = []
        self.static: list[Any] = []
        self.out_treedef: Any = None
        self.holes: list[str] = []
        self.passage = Passage()

    def run(self) -> Any:
        """Maps the function, and returns its output."""
        options, laid = self.options, self.laid
        given = [laid.leaves[i] for i in self.mapped]
        axes = [laid.axes[i] for i in self.mapped]
        if not given and type(options.axis_size) is int:
            # So that there is a value of which it is known that this `jax.vmap` maps it.
            given, axes = [np.zeros(options.axis_size, np.bool_)], [0]
        vmapped = jax.vmap(
            self._on_flat_list,
            in_axes=(axes,),
            out_axes=(options.groups, None),
            axis_size=options.axis_size,
            **options.jaxkwargs,
        )
        try:
            groups, shared = vmapped(given)
        except Exception as error:
            self._explain(error, given)
            raise
        self.passage.finish()
        return self._finish(groups, shared)

    def _on_flat_list(self, values: list[Any]) -> Any:
        laid = self.laid
        self.plan, self.static, self.holes = [], [], []
        self.tag = _new_tag(values, [laid.leaves[i] for i in self.mapped])
        leaves = laid.leaves.copy()
        for i, value in zip(self.mapped, values, strict=False):
            leaves[i] = value
        args, kwargs = self.passage.unflatten(laid.treedef, leaves)
        side = output_side(self.fun(*args, **kwargs))
        out = lay(side, self.options.out_axes, self.options.is_leaf)
        self.out_treedef = out.treedef
        groups: list[list[Any]] = [[] for _ in self.options.groups]
        shared: list[Any] = []
        for number, (leaf, axis) in enumerate(zip(out.leaves, out.axes, strict=True)):
            self.plan.append(self._sort(side, number, leaf, axis, groups, shared))
        return groups, shared

    def _sort(
        self,
        side: Side,
        number: int,
        leaf: Any,
        axis: Axis,
        groups: list[list[Any]],
        shared: list[Any],
    ) -> _Planned:
        """Puts one leaf of the output where it belongs."""
        path = None
        if _jax.is_vmappable(leaf):
            path = side.path_of_leaf(number)
            self.holes += _holes(leaf, path)
        if axis is not None:
            _check_output(side, number, leaf, axis)
            known = axis in self.options.groups
            group = self.options.groups.index(axis) if known else 0
            groups[group].append(leaf)
            return _Planned(group, len(groups[group]) - 1, None if known else axis, path)
        if path is None and not isinstance(leaf, jax.Array):
            self.static.append(leaf)
            return _Planned(_STATIC, len(self.static) - 1)
        if any(is_mapped_by(part, self.tag) for part in tree_leaves(leaf)):
            raise ArgumentError(
                f"`out_axes` is None for `{side.path_of_leaf(number)}`, but that output depends on "
                f"a mapped argument. Give it an axis.{_hint(side, number)}"
            )
        shared.append(leaf)
        return _Planned(_SHARED, len(shared) - 1, None, path)

    def _finish(self, groups: list[list[Any]], shared: list[Any]) -> Any:
        sources = [*groups, self.static, shared]
        leaves = []
        for group, place, move, path in self.plan:
            leaf = sources[group][place]
            if move is not None:
                # For vmappable objects too.
                leaf = jax.vmap(lambda x: x, in_axes=0, out_axes=move)(leaf)
            if path is not None:
                _check_for_leaks(leaf, path, self.tag)
            leaves.append(leaf)
        return self.out_treedef.unflatten(leaves)

    def _explain(self, error: Exception, given: list[Any]) -> None:
        """Adds a note to an error that a vmappable type may have raised over a None in it."""
        holes = self.holes.copy()
        for i, leaf in zip(self.mapped, given, strict=False):
            if _jax.is_vmappable(leaf):
                holes += _holes(leaf, self.inputs.path_of_leaf(i))
        if holes:
            error.add_note(
                f"filter_vmap: `{'`, `'.join(holes[:4])}` is None. An object of a registered "
                f"vmappable type is mapped by the functions that were registered with it, and they "
                f"may not expect this. (Partitioning, filtering and gradients put None in place of "
                f"arrays.) Take the arrays out of the object before passing or returning it."
            )


def _hint(side: Side, number: int) -> str:
    """What a key on the path to a leaf knows about outputs of its kind."""
    path = tree_flatten_with_path(side.value, is_leaf=_jax.is_vmappable)[0][number][0]
    return "".join([getattr(key, "hint", "") for key in path])


def _new_tag(values: list[Any], given: list[Any]) -> Any:
    """The tag of the trace that made the mapped values out of the given ones."""
    old = {id(leaf) for leaf in tree_leaves(given)}
    for value in tree_leaves(values):
        tag = trace_tag(value)
        if tag is not None and id(value) not in old:
            return tag
    return None


def _holes(value: Any, path: str) -> list[str]:
    """The places of the Nones in a vmappable object."""
    pairs = leaves_with_paths(value, root=path, is_leaf=lambda x: x is None)
    return [path for path, leaf in pairs if leaf is None]


def _check_for_leaks(value: Any, path: str, tag: Any) -> None:
    """Refuses a vmappable object with values of a single element in fields that are not batched."""
    if not any(is_mapped_by(part, tag) for part in tree_leaves(value)):
        return
    leaked = [at for at, part in leaves_with_paths(value) if is_mapped_by(part, tag)]
    kind = type(value).__name__
    raise ArgumentError(
        f"At `{path}`: the fields `{'`, `'.join(leaked[:4])}` of `{kind}` were set to values that "
        f"differ between the mapped elements, but `{kind}` is registered with JAX in such a way "
        f"that they are not batched. Keep what is mapped out of these fields. (For MJX: use "
        f"`Data.where` and not `jnp.where` on each array.)"
    )


_SCALARS = (bool, int, float, complex)


def _check_output(side: Side, number: int, leaf: Any, axis: Axis) -> None:
    """Refuses an axis that an output can't have."""
    if type(axis) is not int or _jax.is_vmappable(leaf):
        return
    if is_array(leaf):
        ndim = leaf.ndim + 1
    elif isinstance(leaf, _SCALARS):
        ndim = 1
    else:
        raise not_an_array(side, number, leaf, axis)
    if not -ndim <= axis < ndim:
        raise ArgumentError(
            f"`out_axes` gives axis {axis} to `{side.path_of_leaf(number)}`, but the mapped output "
            f"has only {ndim} dimension{'' if ndim == 1 else 's'}."
        )
