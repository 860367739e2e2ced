"""Adding an update to the parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import PyTree

from ecliptic.errors import LeafError, StructureError
from ecliptic.tree._difference import first_difference
from ecliptic.tree._paths import format_path
from ecliptic.tree._predicates import is_array


def apply_updates(model: PyTree, updates: PyTree) -> PyTree:
    """Add updates, such as an optimiser gives, to the leaves of a model.

    A leaf keeps its dtype: the sum is taken in the wider of the two, and rounded to that of the
    leaf, as `optax.apply_updates` does.

    Args:
        model: any PyTree.
        updates: a PyTree whose structure is a prefix of that of `model`, in which `None` stands
            for leaves, and whole subtrees, that stay as they are.

    Returns:
        A PyTree with the structure of `model`.

    Raises:
        StructureError: the structures do not fit.
        LeafError: a leaf and its update cannot be added, or their sum has another shape or kind
            of number than the leaf.

    >>> apply_updates([1.0, "relu"], [0.5, None])
    [1.5, 'relu']
    """
    steps, treedef = jtu.tree_flatten_with_path(updates, is_leaf=lambda node: node is None)
    try:
        parts = treedef.flatten_up_to(model)
    except ValueError as error:
        where = first_difference(updates, model, lambda node: node is None)
        raise StructureError(
            f"the structure of `updates` does not fit that of `model`: {where}. Take the gradient, "
            "the optimiser's state and the update from the same filtered model."
        ) from error
    return treedef.unflatten(
        [_add(part, step, path) for part, (path, step) in zip(parts, steps, strict=True)]
    )


def _add(leaf: Any, step: Any, path: tuple[Any, ...]) -> Any:
    if step is None or getattr(step, "dtype", None) == jax.dtypes.float0:
        return leaf
    at = format_path(path, root="model")
    if not (_is_number(leaf) and _is_number(step)):
        raise LeafError(
            f"cannot add an update to `{at}`: the leaf is {_kind(leaf)} and the update is "
            f"{_kind(step)}. Use `None` as the update of whatever does not train."
        )
    if not (is_array(leaf) or is_array(step)):
        return leaf + step
    if jnp.shape(step) not in ((), jnp.shape(leaf)):
        raise LeafError(
            f"the update of `{at}` has shape {jnp.shape(step)}, but the leaf has shape "
            f"{jnp.shape(leaf)}."
        )
    if not _same_kind(leaf, step):
        raise LeafError(
            f"the update of `{at}` is {_kind(step)}, which a leaf that is {_kind(leaf)} cannot "
            "hold. Use `None` as its update (take gradients of `is_inexact_array` leaves only), "
            "or convert one of the two."
        )
    return _sum(leaf, step)


def _sum(leaf: Any, step: Any) -> Any:
    if not is_array(leaf):
        return leaf + step
    if not is_array(step) or leaf.dtype == step.dtype:
        return (leaf + step).astype(leaf.dtype)
    # By hand, for with strict promotion JAX does not add unlike dtypes.
    with jax.numpy_dtype_promotion("standard"):
        wide = jnp.promote_types(leaf.dtype, step.dtype)
    return (leaf.astype(wide) + step.astype(wide)).astype(leaf.dtype)


def _is_number(value: Any) -> bool:
    if is_array(value):
        return jnp.issubdtype(value.dtype, jnp.number)
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def _same_kind(leaf: Any, step: Any) -> bool:
    return _rank(step) <= _rank(leaf)


def _rank(value: Any) -> int:
    dtype = value.dtype if is_array(value) else np.dtype(type(value))
    kinds = (jnp.integer, jnp.floating, jnp.complexfloating)
    return next(rank for rank, kind in enumerate(kinds) if jnp.issubdtype(dtype, kind))


def _kind(value: Any) -> str:
    if is_array(value):
        return f"an array of dtype {value.dtype}"
    return "None" if value is None else f"a {type(value).__name__}"
