"""`filter_shard`: where the arrays of a PyTree are."""

from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding
from jax.tree_util import tree_flatten, tree_flatten_with_path, tree_structure
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic.errors import ArgumentError, ArgumentTypeError, StructureError
from ecliptic.tree import first_difference, format_path, is_array

_Target = Sharding | None


def _as_sharding(entry: Any, path: Any, name: str) -> _Target:
    if entry is None or isinstance(entry, Sharding):
        return entry
    if isinstance(entry, jax.Device):
        return SingleDeviceSharding(entry)
    if isinstance(entry, PartitionSpec):
        mesh = jax.sharding.get_abstract_mesh()
        if mesh.empty:
            raise ArgumentError(
                f"`{format_path(path, name)}` is the partition {entry}, and there "
                f"is no mesh for it. Call `jax.set_mesh(mesh)` before, or give a "
                f"`jax.sharding.NamedSharding(mesh, {entry})`."
            )
        if _jax.trace_state_clean():
            return NamedSharding(jax.sharding.get_mesh(), entry)
        return NamedSharding(mesh, entry)
    raise ArgumentTypeError(
        f"`{format_path(path, name)}` must be a device, a sharding, a "
        f"`PartitionSpec` or None; got {entry!r} of type `{type(entry).__qualname__}`."
    )


def lay_shardings(x: PyTree, shardings: PyTree, name: str) -> list[_Target]:
    """The sharding of each leaf of `x`; `name` is what the prefix tree was given as."""
    entries, treedef = tree_flatten_with_path(shardings, is_leaf=lambda node: node is None)
    try:
        subtrees = treedef.flatten_up_to(x)
    except ValueError as error:
        raise StructureError(
            f"`{name}` must be a tree prefix of `x`, but it is not: "
            f"{first_difference(shardings, x, lambda node: node is None)}."
        ) from error
    found: list[_Target] = []
    for (path, entry), subtree in zip(entries, subtrees, strict=True):
        found += [_as_sharding(entry, path, name)] * tree_structure(subtree).num_leaves
    return found


def _constrain(array: Any, sharding: Sharding) -> Any:
    if isinstance(sharding, NamedSharding) and AxisType.Explicit in sharding.mesh.axis_types:
        # On these axes shardings are part of types, which only this changes.
        return jax.sharding.reshard(array, sharding)
    return jax.lax.with_sharding_constraint(array, sharding)


def filter_shard(x: PyTree[Any], device_or_shardings: PyTree[Any]) -> PyTree[Any]:
    """Puts the arrays of a PyTree on devices.

    Outside of a trace the arrays are moved, as by `jax.device_put`. Inside, for instance under
    `filter_jit`, the compiler is told where to have them, as by
    `jax.lax.with_sharding_constraint`. Leaves that are no arrays stay what they are.

    Args:
        x: the PyTree.
        device_or_shardings: where to: a device, a `jax.sharding.Sharding`, or a `PartitionSpec`
            for the mesh that `jax.set_mesh` has set. Or a PyTree of these, which is a prefix of
            `x`, in which None leaves arrays where they are.

    Returns:
        The same tree.

    Raises:
        StructureError: if `device_or_shardings` is no prefix of `x`.
        ArgumentTypeError: if it has something else in it.
        ArgumentError: if there is no mesh for a `PartitionSpec`.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> from jax.sharding import NamedSharding, PartitionSpec
        >>> mesh = jax.make_mesh((4,), ("data",))
        >>> batch = {"x": jnp.ones((8, 2)), "name": "batch"}
        >>> batch = filter_shard(batch, NamedSharding(mesh, PartitionSpec("data")))
        >>> batch["name"], len(batch["x"].addressable_shards)
        ('batch', 4)
    """
    leaves, treedef = tree_flatten(x)
    targets = lay_shardings(x, device_or_shardings, "device_or_shardings")
    wanted = {
        i: target
        for i, (leaf, target) in enumerate(zip(leaves, targets, strict=True))
        if target is not None and is_array(leaf)
    }
    arrays = [leaves[i] for i in wanted]
    if _jax.trace_state_clean():
        placed = jax.device_put(arrays, list(wanted.values()))
    else:
        placed = map(_constrain, arrays, wanted.values())
    for i, array in zip(wanted, placed, strict=True):
        leaves[i] = array
    return treedef.unflatten(leaves)
