"""The value of one entry of a state: what may be in it, and what may come after it."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu

from ecliptic.errors import StateValueError
from ecliptic.state._index import place_of
from ecliptic.tree import format_path, tree_pformat

_NUMBERS = (bool, int, float, complex)


def as_entry(init: Any, key: Any) -> Any:
    """An initial value, with arrays for all its leaves.

    Raises:
        StateValueError: a leaf is neither an array nor a number.
    """
    return jtu.tree_map_with_path(lambda path, leaf: _as_array(leaf, path, key), init)


def _as_array(leaf: Any, path: jtu.KeyPath, key: Any) -> Any:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        # The skeleton of a state, to load another one into.
        return leaf
    try:
        return jnp.asarray(leaf)
    except (TypeError, ValueError) as error:
        raise StateValueError(
            f"A state consists of arrays and numbers, but the value for {place_of(key)} has "
            f"{leaf!r} of type `{type(leaf).__name__}` at `{format_path(path, 'value')}`. Keep "
            "what is no array in a field of the layer."
        ) from error


def fit(old: Any, new: Any, key: Any) -> Any:
    """The value `new`, if it may take the place of `old`.

    Args:
        old: the value before.
        new: the value after.
        key: the key of the entry, for the message.

    Returns:
        The new value, with arrays for all its leaves.

    Raises:
        StateValueError: the structure, a shape or a dtype is another.
    """
    leaves, treedef = jtu.tree_flatten(old)
    others, structure = jtu.tree_flatten(new)
    if treedef != structure:
        raise _misfit(old, new, key, f"the structures {treedef} and {structure} differ")
    fitted = [_fit_leaf(one, other, key) for one, other in zip(leaves, others, strict=True)]
    for number, (one, other) in enumerate(zip(leaves, fitted, strict=True)):
        if jnp.shape(one) != jnp.shape(other) or one.dtype != other.dtype:
            path = format_path(jtu.tree_flatten_with_path(old)[0][number][0], "value")
            raise _misfit(
                old, new, key, f"`{path}` was {tree_pformat(one)} and is {tree_pformat(other)}"
            )
    return jtu.tree_unflatten(treedef, fitted)


def _fit_leaf(old: Any, new: Any, key: Any) -> Any:
    """`new` as an array; of the dtype of `old` if it is a Python number of such a kind."""
    weak = getattr(old, "weak_type", False)
    if type(new) in _NUMBERS and not jnp.issubdtype(old.dtype, jax.dtypes.extended):
        with jax.numpy_dtype_promotion("standard"):
            fits = jnp.result_type(old.dtype, new) == old.dtype
        return jnp.asarray(new, old.dtype if fits and not weak else None)
    array = _as_array(new, (), key)
    # Another weak type would be another program for the next call.
    stronger = getattr(array, "weak_type", False) and not weak
    return jnp.asarray(array, array.dtype) if stronger else array


def _misfit(old: Any, new: Any, key: Any, why: str) -> StateValueError:
    shapes = _batch_hint(old, new)
    return StateValueError(
        f"Old and new values have different structures/shapes/dtypes. The value for "
        f"{place_of(key)} in the state was {tree_pformat(old)}, and the new value is "
        f"{tree_pformat(new)}: {why}. A state keeps its structure, shapes and dtypes from the "
        f"first call to the last.{shapes}"
    )


def _batch_hint(old: Any, new: Any) -> str:
    pairs = zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=False)
    for one, other in pairs:
        before, after = jnp.shape(one), jnp.shape(other)
        if len(before) > len(after) and before[len(before) - len(after) :] == after:
            return (
                " The old value has an axis more, as the state of a batch of models has it: map "
                "the state too, with the axis 0 in `in_axes` and `out_axes`."
            )
        if len(after) > len(before) and after[len(after) - len(before) :] == before:
            return (
                " The new value has an axis more, as after a call for a whole batch: a layer acts "
                "on one example; map it with `jax.vmap`, with an `axis_name=`, `None` for the "
                "state in `in_axes` and `out_axes`, and take the mean over that axis."
            )
    return ""
