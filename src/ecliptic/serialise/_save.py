"""`save`: a tree as a file of named leaves."""

import json
import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from ecliptic.errors import SerialisationError
from ecliptic.serialise._container import SUFFIX, write_container
from ecliptic.serialise._describe import configuration, describe_function, versions
from ecliptic.serialise._encoding import Record, encode
from ecliptic.serialise._file import with_suffix
from ecliptic.serialise._select import FilterSpec, flatten, picked


def save(
    path: str | os.PathLike[str],
    tree: PyTree,
    *,
    metadata: Any = None,
    filter_spec: FilterSpec = True,
    is_leaf: Callable[[Any], bool] | None = None,
) -> dict[str, str]:
    """Write a PyTree to a file in which every leaf has its name.

    The file is a safetensors file, which other programs can read: each array is a tensor that is
    named by its path, such as `layers[0].weight`. Arrays of all dtypes of JAX and NumPy, typed
    PRNG keys, Python numbers, strings and bytes are written, without loss, and never pickled.
    An array that is at several places is written once. What no file can hold, such as an
    activation function, is listed in the result, and `load` takes it from its skeleton.

    The new file takes the place of an old one in one step, when it is on disk: whenever the
    program is killed, there is the old file or the new one, whole.

    Args:
        path: where to write to. It gets the suffix `.safetensors` if it has none.
        tree: the tree.
        metadata: anything that JSON can hold, for instance the hyper-parameters that the skeleton
            is built with. `load_metadata` reads it.
        filter_spec: what to save: a pattern of paths such as `"encoder.**"`, or what
            `ecliptic.filter` takes. By default everything.
        is_leaf: as in `jax.tree.map`: which nodes of `tree` are leaves too.

    Returns:
        What was not written: its path, and in words what it is.

    Raises:
        SerialisationError: a leaf has no value (it is being traced), or cannot be written without
            pickling; the message has its path.

    !!! Example

        >>> import os, tempfile
        >>> import ecliptic as ec, jax
        >>> from ecliptic.serialise import load, load_metadata, save
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "model")
        >>> sizes = {"in_size": 2, "out_size": 1, "width_size": 8, "depth": 1}
        >>> model = ec.nn.MLP(**sizes, key=jax.random.key(0))
        >>> list(save(path, model, metadata=sizes))
        ['activation', 'final_activation']
        >>> like = ec.nn.MLP(**load_metadata(path).metadata, key=jax.random.key(1))
        >>> bool(ec.tree_equal(load(path, like), model))
        True
    """
    paths, leaves, _ = flatten(tree, is_leaf)
    writing = _Writing()
    for name, leaf, pick in zip(
        paths, leaves, picked(paths, tree, filter_spec, is_leaf), strict=True
    ):
        if pick:
            writing.add(name, leaf)
    info = {
        "versions": versions(),
        "metadata": _as_metadata(metadata),
        "static": configuration(tree),
        "leaves": writing.records,
        "not_saved": writing.left,
    }
    write_container(with_suffix(path, SUFFIX), writing.arrays, info)
    return writing.left


# Leaves that can be at several places; numbers are not worth it.
_SHARED = (jax.Array, np.ndarray)


class _Writing:
    """What there is to write so far."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.records: dict[str, Record] = {}
        self.left: dict[str, str] = {}
        self._names: dict[int, str] = {}

    def add(self, name: str, leaf: Any) -> None:
        first = self._names.setdefault(id(leaf), name) if isinstance(leaf, _SHARED) else name
        if first != name:
            self.records[name] = {"same": first}
            return
        try:
            encoded = encode(leaf)
        except (SerialisationError, RuntimeError) as error:
            raise SerialisationError(f"Cannot save the leaf at path {name!r}: {error}") from error
        if encoded is None:
            self.left[name] = describe_function(leaf)
            return
        record, array = encoded
        if record:
            self.records[name] = record
        if array is not None:
            self.arrays[name] = array


def _as_metadata(metadata: Any) -> Any:
    try:
        text = json.dumps(metadata)
    except (TypeError, ValueError) as error:
        raise SerialisationError(
            "`metadata` can hold what JSON can: dictionaries with strings as keys, lists, strings, "
            f"numbers, booleans and None ({error})."
        ) from error
    return json.loads(text)
