"""`tree_deserialise_leaves`, whose errors name a leaf by the keys of JAX, too."""

import functools
from collections.abc import Callable
from typing import Any

from jaxtyping import PyTree

from ecliptic import serialise
from ecliptic.errors import SerialisationError
from ecliptic.serialise import default_deserialise_filter_spec


@functools.wraps(serialise.tree_deserialise_leaves)
def tree_deserialise_leaves(
    path_or_file: Any,
    like: PyTree,
    filter_spec: PyTree[Callable[[Any, Any], Any]] = default_deserialise_filter_spec,
    is_leaf: Callable[[Any], bool] | None = None,
) -> PyTree:
    """`ecliptic.tree_deserialise_leaves`, with a line before the message of an error.

    Programs look there for the path of the leaf, as JAX writes paths.

    Args:
        path_or_file: as there.
        like: as there.
        filter_spec: as there.
        is_leaf: as there.
    """
    try:
        return serialise.tree_deserialise_leaves(path_or_file, like, filter_spec, is_leaf)
    except SerialisationError as error:
        if error.key_path is None:
            raise
        what = "Deserialised leaf at path" if error.__cause__ is None else "Error at leaf with path"
        error.args = (f"{what} {error.key_path}:\n{error}",)
        raise
