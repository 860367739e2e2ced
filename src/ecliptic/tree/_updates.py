"""Adding an update to the parameters."""

from functools import lru_cache
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import PyTree

from ecliptic.errors import LeafError, StructureError
from ecliptic.tree._difference import first_difference
from ecliptic.tree._paths import KeyPath, format_path
from ecliptic.tree._predicates import is_array

_T = TypeVar("_T")


def apply_updates(model: _T, updates: PyTree) -> _T:
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


def _add(leaf: Any, step: Any, path: KeyPath) -> Any:
    if step is None or getattr(step, "dtype", None) == jax.dtypes.float0:
        return leaf
    if not (_is_number(leaf) and _is_number(step)):
        raise LeafError(
            f"cannot add an update to `{_at(path)}`: the leaf is {_kind(leaf)} and the update is "
            f"{_kind(step)}. Use `None` as the update of whatever does not train."
        )
    if not (is_array(leaf) or is_array(step)):
        return leaf + step
    if np.shape(step) not in ((), np.shape(leaf)):
        raise LeafError(
            f"the update of `{_at(path)}` has shape {np.shape(step)}, but the leaf has shape "
            f"{np.shape(leaf)}."
        )
    if not _same_kind(leaf, step):
        raise LeafError(
            f"the update of `{_at(path)}` is {_kind(step)}, which a leaf that is {_kind(leaf)} "
            "cannot hold. Use `None` as its update (take gradients of `is_inexact_array` leaves "
            "only), or convert one of the two."
        )
    return _sum(leaf, step)


def _at(path: KeyPath) -> str:
    return format_path(path, root="model")


def _sum(leaf: Any, step: Any) -> Any:
    if not is_array(leaf):
        return leaf + step
    if not is_array(step) or leaf.dtype == step.dtype:
        total = leaf + step
        return total if total.dtype == leaf.dtype else total.astype(leaf.dtype)
    # By hand, for with strict promotion JAX does not add unlike dtypes.
    with jax.numpy_dtype_promotion("standard"):
        wide = jnp.promote_types(leaf.dtype, step.dtype)
    return (leaf.astype(wide) + step.astype(wide)).astype(leaf.dtype)


def _is_number(value: Any) -> bool:
    if is_array(value):
        return _rank_of_dtype(value.dtype) is not None
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def _same_kind(leaf: Any, step: Any) -> bool:
    return _rank(step) <= _rank(leaf)


def _rank(value: Any) -> int:
    rank = _rank_of_dtype(value.dtype if is_array(value) else np.dtype(type(value)))
    assert rank is not None
    return rank


@lru_cache(maxsize=256)
def _rank_of_dtype(dtype: Any) -> int | None:
    """Order the kinds of numbers, each of which holds the ones before; `None` for the rest."""
    kinds = (jnp.integer, jnp.floating, jnp.complexfloating)
    return next((rank for rank, kind in enumerate(kinds) if jnp.issubdtype(dtype, kind)), None)


def _kind(value: Any) -> str:
    if is_array(value):
        return f"an array of dtype {value.dtype}"
    return "None" if value is None else f"a {type(value).__name__}"
