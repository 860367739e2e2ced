"""`hashable_partition`: a PyTree as arrays on one side, and a dictionary's key on the other."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax.tree_util as jtu
from jaxtyping import PyTree

from ecliptic.errors import LeafError, StructureError
from ecliptic.tree._one_level import PyTreeDef
from ecliptic.tree._paths import format_path


def hashable_partition(
    pytree: PyTree, filter_fn: Callable[[Any], bool]
) -> tuple[tuple[Any, ...], tuple[tuple[Hashable, ...], PyTreeDef]]:
    """Splits a PyTree into the leaves that a function picks, and all the rest as one hashable.

    `partition` gives two trees. The second half of what this gives is a key: of a dictionary or
    cache of what was computed for it, or a static argument of `jax.jit`.

    Args:
        pytree: the PyTree.
        filter_fn: which leaves to pick, `ecliptic.is_array` for instance.

    Returns:
        A tuple of the leaves, with `None` in the place of those that were not picked; and a
        hashable value of the others and of the structure. `hashable_combine` puts them together.

    Raises:
        LeafError: if a leaf that is not picked has no hash.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic.tree import hashable_combine, hashable_partition, is_array
        >>> arrays, static = hashable_partition({"x": jnp.zeros(2), "name": "x"}, is_array)
        >>> cache = {static: "compiled"}
        >>> hashable_combine(arrays, static)
        {'name': 'x', 'x': Array([0., 0.], dtype=float32)}
    """
    leaves, structure = jtu.tree_flatten(pytree)
    picked = [bool(filter_fn(leaf)) for leaf in leaves]
    pairs = list(zip(leaves, picked, strict=True))
    dynamic = tuple(leaf if pick else None for leaf, pick in pairs)
    static = tuple(None if pick else leaf for leaf, pick in pairs)
    try:
        hash(static)
    except TypeError as error:
        raise _unhashable(pytree, static, error) from error
    return dynamic, (static, structure)


def hashable_combine(
    dynamic_leaves: Sequence[Any], static: tuple[tuple[Hashable, ...], PyTreeDef]
) -> PyTree:
    """Puts together what `hashable_partition` split.

    Args:
        dynamic_leaves: the leaves that were picked, or others in their place.
        static: the rest.

    Returns:
        The PyTree.

    Raises:
        StructureError: if the number of leaves is not the same in both.
    """
    static_leaves, structure = static
    if len(dynamic_leaves) != len(static_leaves):
        raise StructureError(
            f"`hashable_combine` got {len(dynamic_leaves)} dynamic leaves for a tree of "
            f"{len(static_leaves)}. Pass the first half of what `hashable_partition` returned, "
            "with its `None` in place of each static leaf."
        )
    pairs = zip(dynamic_leaves, static_leaves, strict=True)
    return structure.unflatten([other if leaf is None else leaf for leaf, other in pairs])


def _unhashable(pytree: PyTree, static: tuple[Any, ...], error: TypeError) -> LeafError:
    paths = [path for path, _ in jtu.tree_flatten_with_path(pytree)[0]]
    for path, leaf in zip(paths, static, strict=True):
        try:
            hash(leaf)
        except TypeError:
            return LeafError(
                f"`hashable_partition`: the leaf at `{format_path(path, 'pytree')}`, of type "
                f"`{type(leaf).__qualname__}`, was not picked by `filter_fn`, and has no hash. Let "
                "`filter_fn` pick it, or use a hashable value (a tuple in place of a list)."
            )
    return LeafError(f"`hashable_partition`: {error}")
