"""One level of a tree."""

from typing import Any

import jax.tree_util as jtu
from jaxtyping import PyTree

from ecliptic.errors import StructureError


def tree_flatten_one_level(pytree: PyTree) -> tuple[list[PyTree], jtu.PyTreeDef]:
    """Flatten a PyTree by one level: into its immediate children.

    Args:
        pytree: any PyTree.

    Returns:
        The children, and a structure that builds the node from them. A leaf is its own only
        child.

    Raises:
        StructureError: `pytree` is among its own children.

    >>> children, structure = tree_flatten_one_level({"a": 1, "b": (2, 3)})
    >>> children
    [1, (2, 3)]
    >>> structure.unflatten([4, 5])
    {'a': 4, 'b': 5}
    """
    seen = False

    def is_child(node: Any) -> bool:
        nonlocal seen
        if node is not pytree:
            return True
        if seen and node is not None:
            raise StructureError(
                f"a {type(node).__name__} is among its own children, and so is no PyTree. Such a "
                "node is built as in `x = []; x.append(x)`."
            )
        seen = True
        return False

    return jtu.tree_flatten(pytree, is_leaf=is_child)
