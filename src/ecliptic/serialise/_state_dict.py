"""`to_state_dict` and `from_state_dict`: a tree as a flat dictionary of its leaves by path."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ecliptic.errors import SerialisationError
from ecliptic.serialise._encoding import Form, Pending, form_of_leaf, put, rebuild
from ecliptic.serialise._report import LoadReport, compare, mismatch
from ecliptic.serialise._select import FilterSpec, Rename, flatten, picked, renamed
from ecliptic.tree import match_path

Transpose = Mapping[str, tuple[int, ...]] | Callable[[str, np.ndarray], np.ndarray] | None


def to_state_dict(
    tree: PyTree,
    *,
    filter_spec: FilterSpec = True,
    is_leaf: Callable[[Any], bool] | None = None,
) -> dict[str, Any]:
    """List the leaves of a tree by path.

    Args:
        tree: the tree.
        filter_spec: which leaves: a pattern of paths such as `"**.weight"`, or what
            `ecliptic.filter` takes.
        is_leaf: as in `jax.tree.map`: which nodes of `tree` are leaves too.

    Returns:
        A dictionary from paths such as `layers[0].weight` to the leaves as they are: arrays, typed
        keys, numbers, strings and bytes. What no file can hold, such as functions, is left out.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic.serialise import to_state_dict
        >>> to_state_dict({"layers": [{"weight": jnp.ones(2), "activation": jnp.tanh}]})
        {"['layers'][0]['weight']": Array([1., 1.], dtype=float32)}
    """
    paths, leaves, _ = flatten(tree, is_leaf)
    picks = picked(paths, tree, filter_spec, is_leaf)
    return {
        path: leaf
        for path, leaf, pick in zip(paths, leaves, picks, strict=True)
        if pick and form_of_leaf(leaf) is not None
    }


@overload
def from_state_dict(
    like: PyTree,
    state_dict: Mapping[str, Any],
    *,
    rename: Rename = None,
    transpose: Transpose = None,
    strict: Literal[True] = True,
    cast: bool = False,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any: ...


@overload
def from_state_dict(
    like: PyTree,
    state_dict: Mapping[str, Any],
    *,
    rename: Rename = None,
    transpose: Transpose = None,
    strict: bool,
    cast: bool = False,
    is_leaf: Callable[[Any], bool] | None = None,
) -> tuple[Any, LoadReport]: ...


def from_state_dict(
    like: PyTree,
    state_dict: Mapping[str, Any],
    *,
    rename: Rename = None,
    transpose: Transpose = None,
    strict: bool = True,
    cast: bool = False,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Build a tree with the leaves of a flat dictionary.

    Args:
        like: a tree of the structure to build; as in `load`.
        state_dict: leaves by name. Arrays of JAX and NumPy, tensors of PyTorch, and numbers. They
            are copied where they could be changed.
        rename: from names in the dictionary to paths in `like`: a mapping, whose keys may be
            beginnings of names, or a function of a name. `None` for a path leaves a leaf out.
        transpose: how to order axes, as `numpy.transpose` takes it, by pattern of path, such as
            `{"**.weight": (1, 0)}`; or a function of path and array that returns an array.
        strict: whether any difference in names, shapes or dtypes is an error, as in `load`.
        cast: whether floating and complex arrays become those of the dtype in `like`. The default
            does not, since precision can be lost.
        is_leaf: as in `jax.tree.map`: which nodes of `like` are leaves too.

    Returns:
        The tree, or with `strict=False` the tree and a `LoadReport`.

    Raises:
        MismatchError: the dictionary has other leaves than `like`; the message has the report.
        SerialisationError: `rename` or `transpose` does not fit.

    !!! Example

        >>> import jax, jax.numpy as jnp, numpy as np
        >>> import ecliptic as ec
        >>> from ecliptic.serialise import from_state_dict
        >>> like = ec.nn.Linear(2, 3, key=jax.random.key(0))
        >>> kernel = {"kernel": np.ones((2, 3), np.float32), "bias": np.zeros(3, np.float32)}
        >>> layer = from_state_dict(
        ...     like, kernel, rename={"kernel": "weight"}, transpose={"weight": (1, 0)}
        ... )
        >>> layer(jnp.ones(2))
        Array([2., 2., 2.], dtype=float32)
    """
    paths, leaves, treedef = flatten(like, is_leaf)
    by_path = renamed(state_dict, rename)
    values = {path: as_leaf(state_dict[name]) for path, name in by_path.items()}
    values = _transposed(values, transpose)
    wanted = {
        p: form for p, leaf in zip(paths, leaves, strict=True) if (form := form_of_leaf(leaf))
    }
    places = dict(zip(paths, leaves, strict=True))
    if cast:
        values = cast_like(values, places)
    saved = {
        path: form_of_leaf(value) or Form(type(value).__name__) for path, value in values.items()
    }
    report = compare(saved, wanted, name=by_path.__getitem__, ignore_extra=False)
    if strict and not report.complete:
        raise mismatch("in `state_dict`", report)
    filled = fill(places, {path: values[path] for path in report.loaded})
    tree = treedef.unflatten([filled[path] for path in paths])
    return tree if strict else (tree, report)


def as_leaf(value: Any) -> Any:
    """A value as a leaf: tensors of PyTorch become NumPy arrays."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        # Not `numpy()`, which has no bfloat16.
        tensor = value.detach().cpu().contiguous()
        return np.array(jnp.from_dlpack(tensor)) if tensor.numel() else _empty(tensor)
    return value


def _empty(tensor: Any) -> np.ndarray:
    return np.zeros(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))


def _transposed(values: dict[str, Any], transpose: Transpose) -> dict[str, Any]:
    if transpose is None:
        return values
    if callable(transpose):
        return {path: transpose(path, value) for path, value in values.items()}
    result = dict(values)
    for pattern, axes in transpose.items():
        matched = [path for path in values if match_path(pattern, path)]
        if not matched:
            raise SerialisationError(f"`transpose` has {pattern!r}, which no path matches.")
        for path in matched:
            try:
                result[path] = np.transpose(np.asarray(values[path]), axes)
            except ValueError as error:
                raise SerialisationError(
                    f"`transpose` cannot order the axes of {path!r}, of shape "
                    f"{np.shape(values[path])}, as {axes}: {error}."
                ) from error
    return result


def cast_like(values: Mapping[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """Bring inexact arrays to the dtypes that they have in a skeleton."""
    result = dict(values)
    for path, value in values.items():
        place = like.get(path)
        own, wanted = getattr(value, "dtype", None), getattr(place, "dtype", None)
        if own != wanted and _can_cast(own, wanted):
            result[path] = np.asarray(value).astype(wanted)
    return result


def _can_cast(own: Any, wanted: Any) -> bool:
    if own is None or wanted is None or not jnp.issubdtype(own, jnp.inexact):
        return False
    kinds = jnp.inexact if jnp.issubdtype(own, jnp.floating) else jnp.complexfloating
    return jnp.issubdtype(wanted, kinds)


def fill(places: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Put values into places of the same form; each becomes a leaf of the kind that is there."""
    filled = dict(places)
    pending: dict[str, Pending] = {}
    for path, value in values.items():
        leaf = _place(value, places[path])
        if isinstance(leaf, Pending):
            pending[path] = leaf
        else:
            filled[path] = leaf
    return filled | dict(zip(pending, put(list(pending.values())), strict=True))


def _place(value: Any, like: Any) -> Any:
    if not isinstance(value, jax.Array | np.ndarray | np.generic):
        return value if type(value) is type(like) else type(like)(value)
    if isinstance(like, np.ndarray | np.generic):
        return rebuild({}, np.array(value), like)
    if isinstance(value, jax.Array):
        sharding = getattr(like, "sharding", None)
        committed = isinstance(like, jax.ShapeDtypeStruct) or getattr(like, "committed", False)
        return jax.device_put(value, sharding) if committed and sharding is not None else value
    return rebuild({}, np.array(value, order="C"), like)
