"""What a node holds as structure: the values that are no children of it."""

import dataclasses
from typing import Any

import jax.tree_util as jtu

from ecliptic.tree._one_level import children_with_keys


def static_parts(node: Any) -> dict[str, Any]:
    """List the values of a node that are part of the tree's structure.

    Args:
        node: any node of a tree. One of a class that is a dataclass says by its fields what it
            holds, whichever library made it; of others nothing is known.

    Returns:
        The values of the fields that are no children, by name.

    >>> import jax
    >>> @jax.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Scale:
    ...     factor: float
    ...     unit: str = dataclasses.field(metadata={"static": True})
    >>> static_parts(Scale(2.0, "cm"))
    {'unit': 'cm'}
    """
    if not dataclasses.is_dataclass(node) or isinstance(node, type):
        return {}
    children = children_with_keys(node)
    if children is None:
        return {}
    found = {f.name: getattr(node, f.name) for f in _set_fields(node)}
    names = [key.name for key, _ in children if isinstance(key, jtu.GetAttrKey)]
    if len(names) == len(children):
        return {name: value for name, value in found.items() if name not in names}
    # A class that was registered without names for its children.
    held = {id(child) for _, child in children}
    return {name: value for name, value in found.items() if id(value) not in held}


def _set_fields(node: Any) -> list[Any]:
    return [f for f in dataclasses.fields(node) if hasattr(node, f.name)]
