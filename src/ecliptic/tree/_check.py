"""Is this a tree at all?"""

from typing import Any

from ecliptic.errors import StructureError
from ecliptic.tree._one_level import children_with_keys
from ecliptic.tree._paths import KeyPath, format_path


def tree_check(pytree: Any) -> None:
    """Check that a PyTree is a tree: that no node is shared, and none contains itself.

    A node that stands in two places becomes two nodes whenever the tree is flattened and built
    again, at each `jax.jit` boundary for instance, which is rarely what its author meant. Shared
    leaves, and nodes without leaves, do no harm and are let pass.

    Args:
        pytree: any PyTree.

    Raises:
        StructureError: a node appears in two places, or within itself.

    >>> tree_check([[1], [1]])
    >>> shared = [1]
    >>> tree_check([shared, shared])
    Traceback (most recent call last):
    ...
    ecliptic.errors.StructureError: ...
    """
    _visit(pytree, (), {}, set())


def _visit(node: Any, path: KeyPath, seen: dict[int, tuple[Any, KeyPath]], above: set[int]) -> bool:
    """Check one node, and return whether there is a leaf in it."""
    if id(node) in above:
        _, first = seen[id(node)]
        raise StructureError(
            f"the {type(node).__name__} at `{format_path(first, 'pytree')}` contains itself, at "
            f"`{format_path(path, 'pytree')}`. A PyTree must be a tree, without cycles."
        )
    children = children_with_keys(node)
    if children is None:
        return True
    earlier = seen.setdefault(id(node), (node, path))[1]
    above.add(id(node))
    # A list, for every child has to be visited.
    has_leaf = any([_visit(child, (*path, key), seen, above) for key, child in children])
    above.remove(id(node))
    if has_leaf and earlier != path:
        raise StructureError(
            f"the same {type(node).__name__} appears at `{format_path(earlier, 'pytree')}` and at "
            f"`{format_path(path, 'pytree')}`. It would become two copies when the tree is "
            "flattened and built again, at each `jax.jit` boundary for instance. Make a copy on "
            "purpose, or keep it in one place."
        )
    return has_leaf
