"""`tree_serialise_leaves` and `tree_deserialise_leaves`: the leaves of a tree as a file."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.tree_util as jtu
import numpy as np
from jaxtyping import PyTree

from ecliptic.errors import SerialisationError, StructureError
from ecliptic.serialise._file import opened_for_reading, opened_for_writing
from ecliptic.serialise._leaf import (
    SupportsReadSeek,
    SupportsWrite,
    default_deserialise_filter_spec,
    default_serialise_filter_spec,
)
from ecliptic.tree import format_path


def tree_serialise_leaves(
    path_or_file: str | Path | SupportsWrite[bytes],
    pytree: PyTree,
    filter_spec: PyTree[Callable[[Any, Any], Any]] = default_serialise_filter_spec,
    is_leaf: Callable[[Any], bool] | None = None,
) -> None:
    """Write the leaves of a PyTree to a file.

    The leaves are written in order, without names, each in NumPy's `.npy` format. The structure is
    not written: `tree_deserialise_leaves` needs a tree that has it.

    Args:
        path_or_file: where to write to. A path gets the suffix `.eqx` if it has none; its file is
            replaced at the end, in one step, so that it holds the old leaves or the new ones at
            any moment. An open binary file is written to from where it stands, and stays open.
        pytree: the tree.
        filter_spec: a function `(file, leaf)` that writes one leaf, or a prefix of `pytree` with
            such functions as leaves. By default arrays, NumPy scalars, typed PRNG keys and Python
            numbers are written, and nothing of other leaves.
        is_leaf: as in `jax.tree.map`: which nodes of `pytree` are leaves too.

    Raises:
        SerialisationError: a leaf cannot be written; the message has its path.
        StructureError: `filter_spec` is no prefix of `pytree`, or holds something else than
            functions.

    !!! Example

        >>> import io, jax.numpy as jnp
        >>> from ecliptic.serialise import tree_deserialise_leaves, tree_serialise_leaves
        >>> file = io.BytesIO()
        >>> tree_serialise_leaves(file, {"weight": jnp.ones(2), "step": 10})
        >>> _ = file.seek(0)
        >>> tree_deserialise_leaves(file, {"weight": jnp.zeros(2), "step": 0})
        {'step': 10, 'weight': Array([1., 1.], dtype=float32)}
    """
    leaves, _ = jtu.tree_flatten_with_path(pytree, is_leaf=is_leaf)
    specs = _spec_of_each_leaf(filter_spec, pytree, is_leaf)
    with opened_for_writing(path_or_file) as f:
        for (path, leaf), spec in zip(leaves, specs, strict=True):
            try:
                spec(f, leaf)
            except OSError:
                raise
            except Exception as error:
                raise _at("Cannot write the leaf", path, str(error)) from error


def tree_deserialise_leaves(
    path_or_file: str | Path | SupportsReadSeek[bytes],
    like: PyTree,
    filter_spec: PyTree[Callable[[Any, Any], Any]] = default_deserialise_filter_spec,
    is_leaf: Callable[[Any], bool] | None = None,
) -> PyTree:
    """Read the leaves of a PyTree from a file written by `tree_serialise_leaves`.

    The leaves have no names in the file: they are taken in order, and each has to have the shape
    and the dtype of its place in `like`.

    Args:
        path_or_file: where to read from. A path gets the suffix `.eqx` if it has none, and its
            file has to end with the last leaf. An open binary file is read from where it stands,
            and is left standing after the last leaf, so that one file can hold several trees.
        like: a tree of the structure that was written. The values of its arrays do not matter:
            they may be `jax.ShapeDtypeStruct`s, as `filter_eval_shape` makes them. Leaves that
            were not written, such as functions, are taken from here. `like` stays as it is.
        filter_spec: a function `(file, leaf of like)` that reads one leaf, or a prefix of `like`
            with such functions as leaves.
        is_leaf: as in `jax.tree.map`: which nodes of `like` are leaves too.

    Returns:
        A tree of the structure of `like` with the leaves from the file.

    Raises:
        SerialisationError: a leaf has another shape, dtype or type than in `like`, or the file has
            fewer or more leaves; the message has the path of the leaf.
        StructureError: `filter_spec` is no prefix of `like`, or holds something else than
            functions.

    !!! Example

        >>> import io
        >>> from ecliptic.serialise import tree_deserialise_leaves, tree_serialise_leaves
        >>> file = io.BytesIO()
        >>> tree_serialise_leaves(file, {"rate": 0.1, "name": "adam"})
        >>> _ = file.seek(0)
        >>> tree_deserialise_leaves(file, {"rate": 0.0, "name": "sgd"})
        {'name': 'sgd', 'rate': 0.1}
    """
    leaves, treedef = jtu.tree_flatten_with_path(like, is_leaf=is_leaf)
    specs = _spec_of_each_leaf(filter_spec, like, is_leaf)
    loaded = []
    with opened_for_reading(path_or_file) as f:
        for (path, leaf), spec in zip(leaves, specs, strict=True):
            try:
                value = spec(f, leaf)
            except OSError:
                raise
            except Exception as error:
                raise _at("Cannot read the leaf", path, str(error)) from error
            _check_leaf(path, leaf, value)
            loaded.append(value)
        if isinstance(path_or_file, str | os.PathLike) and f.read(1):
            last = f"the last leaf of `like`, at path {_shown(leaves[-1][0])}" if leaves else "it"
            raise SerialisationError(
                f"The file {str(path_or_file)!r} goes on after {last}: more leaves were written to "
                f"it than the {len(leaves)} of `like`. Build `like` as the tree was built that was "
                "written."
            )
    return jtu.tree_unflatten(treedef, loaded)


def _spec_of_each_leaf(
    filter_spec: PyTree, pytree: PyTree, is_leaf: Callable[[Any], bool] | None
) -> list[Any]:
    specs, treedef = jtu.tree_flatten(filter_spec)
    try:
        branches = treedef.flatten_up_to(pytree)
    except ValueError as error:
        raise StructureError(
            f"`filter_spec` is no prefix of the tree: it has the structure {treedef}, and the tree "
            f"{jtu.tree_structure(pytree)}. ({error})"
        ) from error
    of_each = []
    for spec, branch in zip(specs, branches, strict=True):
        if not callable(spec):
            raise StructureError(
                f"`filter_spec` holds {spec!r} of type `{type(spec).__name__}`, but its leaves are "
                "functions of a file and a leaf. Where nothing shall be done, put "
                "`lambda file, leaf: None` for writing and `lambda file, leaf: leaf` for reading."
            )
        of_each += [spec] * jtu.tree_structure(branch, is_leaf=is_leaf).num_leaves
    return of_each


def _shown(path: Any) -> str:
    return f"'{format_path(path)}'" if path else "'' (the whole tree)"


def _at(what: str, path: Any, why: str) -> SerialisationError:
    return _about(path, f"{what} at path {_shown(path)}: {why}")


def _about(path: Any, message: str) -> SerialisationError:
    error = SerialisationError(message)
    error.key_path = path
    return error


def _check_leaf(path: Any, leaf: Any, value: Any) -> None:
    """Compares a loaded leaf with its place in the skeleton."""
    array = isinstance(leaf, jax.Array | jax.ShapeDtypeStruct | np.ndarray)
    if array and isinstance(value, jax.Array | jax.ShapeDtypeStruct | np.ndarray):
        for what in ("shape", "dtype"):
            expected, found = getattr(leaf, what), getattr(value, what)
            if expected != found:
                raise _changed(path, what, expected, found)
    kinds: Any = type(leaf)
    if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct):
        kinds = jax.Array | jax.ShapeDtypeStruct
    if not isinstance(value, kinds):
        raise _changed(path, "type", type(leaf), type(value))


def _changed(path: Any, what: str, expected: Any, found: Any) -> SerialisationError:
    return _about(
        path,
        f"Deserialised leaf at path {_shown(path)} has changed {what} from {expected} in `like` to "
        f"{found} on disk. Build `like` as the tree was built that was written, or change the leaf "
        "on the way with `filter_spec`.",
    )
