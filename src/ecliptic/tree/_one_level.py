"""One level of a tree."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import jax.tree_util as jtu
from jaxtyping import PyTree

from ecliptic.errors import StructureError

if TYPE_CHECKING:
    # JAX exports the class as a variable, which type checkers do not take for a type.
    PyTreeDef: TypeAlias = Any
else:
    from jax.tree_util import PyTreeDef


def tree_flatten_one_level(pytree: PyTree) -> tuple[list[PyTree], PyTreeDef]:
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
    return jtu.tree_flatten(pytree, is_leaf=_below(pytree))


def children_with_keys(node: PyTree) -> list[tuple[Any, PyTree]] | None:
    """List the immediate children of a node, each with its key; `None` for a leaf."""
    pairs, _ = jtu.tree_flatten_with_path(node, is_leaf=_below(node))
    if len(pairs) == 1 and not pairs[0][0]:
        return None
    return [(path[0], child) for path, child in pairs]


def _below(node: PyTree) -> Callable[[Any], bool]:
    """Make an `is_leaf` that stops at everything but `node` itself."""
    seen = False

    def is_child(candidate: Any) -> bool:
        nonlocal seen
        if candidate is not node or candidate is None:
            return candidate is not node
        if seen:
            raise StructureError(
                f"a {type(node).__name__} is among its own children, as after "
                "`x = []; x.append(x)`. A PyTree must be a tree, without cycles."
            )
        seen = True
        return False

    return is_child
