"""`inference_mode`: switches a whole model between training and inference."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PyTree

from ecliptic.module import Module, is_module
from ecliptic.tree import format_path, tree_flatten_one_level
from ecliptic.tree._one_level import children_with_keys

_FLAG = "inference"


def inference_mode(pytree: PyTree, value: bool = True) -> PyTree:
    """Set every flag `inference` in a model, so that layers such as `Dropout` know their mode.

    A flag is an attribute of this name that holds a boolean, at any depth, also below a node that
    has a flag of its own, and also a static field. Where a partitioned tree has a hole (`None`) in
    place of a flag, the flag is put there. Attributes that hold something else stay as they are.

    Args:
        pytree: a model, or any PyTree with models in it.
        value: what the flags shall be. Layers are made for training, with `False`.

    Returns:
        A copy of the tree with all flags set; `inference_flags` says which these are.

    !!! Example

        >>> from ecliptic import nn
        >>> model = nn.Sequential([nn.Dropout(0.1), nn.Dropout(0.2)])
        >>> [layer.inference for layer in nn.inference_mode(model)]
        [True, True]
    """

    def visit(path: tuple[Any, ...], leaf: Any) -> Any:
        if _has_static_flag(leaf):
            return _set_static_flag(leaf, value)
        return value if path and _is_flag(path[-1], leaf) else leaf

    return jtu.tree_map_with_path(visit, pytree, is_leaf=_is_end)


def inference_flags(pytree: PyTree) -> dict[str, bool | Array | None]:
    """List every flag `inference` in a model: what `inference_mode` sets.

    Look at it where a model behaves as in training although it should not: a flag may be missing,
    because a layer has none, or because the wrong part of a model was switched.

    Args:
        pytree: a model, or any PyTree with models in it.

    Returns:
        The value of each flag by its path; `None` for a hole in a partitioned tree.

    !!! Example

        >>> from ecliptic import nn
        >>> model = nn.Sequential([nn.Dropout(0.1), nn.Identity(), nn.Dropout(0.2)])
        >>> nn.inference_flags(nn.inference_mode(model))
        {'layers[0].inference': True, 'layers[2].inference': True}
    """
    found: dict[str, Any] = {}
    for path, leaf in jtu.tree_flatten_with_path(pytree, is_leaf=_is_end)[0]:
        if _has_static_flag(leaf):
            at = (*path, jtu.GetAttrKey(_FLAG))
            if isinstance(getattr(leaf, _FLAG), bool):
                found[format_path(at)] = getattr(leaf, _FLAG)
            for child_path, child in children_with_keys(leaf) or ():
                below = inference_flags(child)
                root = format_path((*path, child_path))
                found |= {f"{root}{_joint(key)}{key}": flag for key, flag in below.items()}
        elif path and _is_flag(path[-1], leaf):
            found[format_path(path)] = leaf
    return found


def _is_end(node: Any) -> bool:
    """Where a walk through a model stops: at leaves, holes, and flags that are structure."""
    return node is None or _has_static_flag(node)


def _joint(path: str) -> str:
    return "" if path[:1] in ("", "[") else "."


def _is_flag(key: Any, leaf: Any) -> bool:
    if not isinstance(key, jtu.GetAttrKey) or key.name != _FLAG:
        return False
    boolean = getattr(leaf, "dtype", None) == jnp.bool_
    return leaf is None or isinstance(leaf, bool) or boolean


def _has_static_flag(node: Any) -> bool:
    if not is_module(node):
        return False
    declared = type(node).__dataclass_fields__.get(_FLAG)
    return declared is not None and bool(declared.metadata.get("static", False))


def _set_static_flag(node: Module, value: bool) -> Module:
    children, treedef = tree_flatten_one_level(node)
    changed = jax.tree_util.tree_unflatten(
        treedef, [inference_mode(child, value) for child in children]
    )
    # Unflattening has just made this instance: nobody else has seen it.
    if isinstance(getattr(changed, _FLAG), bool):
        object.__setattr__(changed, _FLAG, value)
    return changed
