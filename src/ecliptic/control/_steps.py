"""The inputs and outputs of a scan: what happens along the axis of steps.

Arrays are sliced and stacked, everything else is held. An object of a type that is registered with
JAX as vmappable (`BCOO`, MJX's `DataWarp`) may keep metadata that depends on its batch axes, which
`jax.lax.scan` leaves as it was. Here the owner's own rules turn the whole into one step's element,
and elements into the whole. They see to the metadata; the axis of steps is the first one of *every*
array inside, those included that the owner does not batch under `jax.vmap`: each step has its own.
"""

from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten, tree_leaves, tree_map

from ecliptic import _jax
from ecliptic.errors import LeafError
from ecliptic.module import Static
from ecliptic.transform import Output, pack_output
from ecliptic.tree import is_array
from ecliptic.tree._passage import Passage


class Steps:
    """The inputs of a scan, taken apart.

    Args:
        xs: any PyTree.
    """

    def __init__(self, xs: Any) -> None:
        self._leaves, self._treedef = tree_flatten(xs, is_leaf=_jax.is_vmappable)
        self.arrays = [x for x in tree_leaves(self._leaves) if is_array(x)]
        self._passage = Passage()

    def take(self, slices: Sequence[Any]) -> Any:
        """One step's part, given the slices of `arrays`."""
        rest = iter(slices)
        elements = [_take(leaf, rest) for leaf in self._leaves]
        return self._passage.unflatten(self._treedef, elements)

    def finish(self) -> None:
        """Use up in the whole what the user's function used up in one step's part."""
        self._passage.finish()


def _take(leaf: Any, rest: Any) -> Any:
    if is_array(leaf):
        return next(rest)
    if not _jax.is_vmappable(leaf):
        return leaf
    whole = [x for x in tree_leaves(leaf) if is_array(x)]
    slices = {id(array): next(rest) for array in whole}

    def element(part: Any, spec: Any) -> Any:
        if id(part) in slices:
            return slices[id(part)]
        return _handler(_jax.to_elt_handlers, part)(element, None, part, spec)

    out = element(leaf, 0)
    return tree_map(lambda x: slices.get(id(x), x), out)


def _handler(handlers: Any, part: Any) -> Any:
    """The owner's rule for `part`, if it is one that an integer axis can be given to."""
    known = handlers.get(type(part))
    spec_type, _ = _jax.vmappables.get(type(part), (None, None))
    if known is None or spec_type is not int:
        name = type(part).__qualname__
        raise LeafError(
            f"A scan cannot take steps along a `{name}`: its type is registered with JAX as "
            f"vmappable, but not by an integer axis, so there is no telling which axis the steps "
            f"are on. Scan over its arrays, and build the `{name}` in the function."
        )
    return known


class _Element:
    """A node for one step's object of a vmappable type. Its children are the arrays inside.

    `like` holds the object with descriptions in place of its arrays, and these descriptions.
    """

    def __init__(self, arrays: Sequence[Any], like: Static[Any]) -> None:
        self.arrays = arrays
        self.like = like


jax.tree_util.register_pytree_node(
    _Element,
    lambda e: (e.arrays, e.like),
    lambda like, arrays: _Element(arrays, cast(Static[Any], like)),
)


def _as_element(leaf: Any) -> Any:
    if not _jax.is_vmappable(leaf):
        return leaf
    _handler(_jax.from_elt_handlers, leaf)
    leaves, treedef = tree_flatten(leaf)
    positions = [i for i, x in enumerate(leaves) if is_array(x)]
    held = [None if is_array(x) else x for x in leaves]
    described = [jax.ShapeDtypeStruct(jnp.shape(leaves[i]), leaves[i].dtype) for i in positions]

    for i, description in zip(positions, described, strict=True):
        held[i] = description
    return _Element([leaves[i] for i in positions], Static((treedef.unflatten(held), described)))


def _whole(element: _Element, size: int) -> Any:
    """An object of the stacked arrays of its elements."""
    # The owner's rule is given an element whose arrays are mere descriptions, and asks for the
    # stacked array in the place of each that it batches.
    one, described = element.like.value
    stacked = {id(d): array for d, array in zip(described, element.arrays, strict=True)}

    def whole(_: Any, part: Any, spec: Any) -> Any:
        if id(part) in stacked:
            return jnp.moveaxis(stacked[id(part)], 0, spec)
        return _handler(_jax.from_elt_handlers, part)(whole, size, part, spec)

    return tree_map(lambda x: stacked.get(id(x), x), whole(size, one, 0))


def pack_step(out: Any) -> Any:
    """One step's output, as the traced function returns it."""
    return pack_output(tree_map(_as_element, out, is_leaf=_jax.is_vmappable))


def unpack_steps(packed: Any, size: int) -> Any:
    """The outputs of all steps, of what the scan made of `pack_step`."""
    tree = packed.rebuild() if isinstance(packed, Output) else packed
    return tree_map(
        lambda x: _whole(x, size) if isinstance(x, _Element) else x,
        tree,
        is_leaf=lambda x: isinstance(x, _Element),
    )
