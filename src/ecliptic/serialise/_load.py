"""`load` and `load_metadata`: the named leaves of a file, in a skeleton or alone."""

import dataclasses
import os
from collections.abc import Callable, Iterator
from typing import Any, Literal, overload

import numpy as np
from jaxtyping import PyTree

from ecliptic.errors import FileFormatError, SerialisationError
from ecliptic.serialise._container import Container
from ecliptic.serialise._describe import configuration, describe_function
from ecliptic.serialise._encoding import (
    Form,
    Pending,
    Record,
    decode_array,
    form_of_record,
    put,
    read_value,
    rebuild,
)
from ecliptic.serialise._report import LoadReport, compare, mismatch, wanted_forms
from ecliptic.serialise._select import FilterSpec, Rename, flatten, nested, picked, renamed

# How much is read before it is put on the devices: the host needs no more than this besides.
_CHUNK = 1 << 28


@dataclasses.dataclass(frozen=True)
class FileMetadata:
    """What a file says about itself.

    Attributes:
        metadata: what was given to `save`.
        leaves: each leaf's dtype and shape, for instance `float32[2, 3]`, by name.
        not_saved: what was not written, in words, by path.
        static: the class and the static fields of each Module, by path.
        versions: of Ecliptic, JAX, NumPy and Python, when the file was written.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "tree.safetensors"
        >>> _ = ec.save(path, {"a": jnp.ones(2)})
        >>> dict(ec.load_metadata(path).leaves)
        {"['a']": 'float32[2]'}
    """

    metadata: Any
    leaves: dict[str, str]
    not_saved: dict[str, str]
    static: dict[str, dict[str, Any]]
    versions: dict[str, str]


@overload
def load(
    path: str | os.PathLike[str],
    like: PyTree = None,
    *,
    strict: Literal[True] = True,
    rename: Rename = None,
    filter_spec: FilterSpec = True,
    is_leaf: Callable[[Any], bool] | None = None,
    mmap: bool = False,
) -> Any: ...


@overload
def load(
    path: str | os.PathLike[str],
    like: PyTree = None,
    *,
    strict: bool,
    rename: Rename = None,
    filter_spec: FilterSpec = True,
    is_leaf: Callable[[Any], bool] | None = None,
    mmap: bool = False,
) -> tuple[Any, LoadReport]: ...


def load(
    path: str | os.PathLike[str],
    like: PyTree = None,
    *,
    strict: bool = True,
    rename: Rename = None,
    filter_spec: FilterSpec = True,
    is_leaf: Callable[[Any], bool] | None = None,
    mmap: bool = False,
) -> Any:
    """Read a tree from a file that `save` wrote, or any safetensors file.

    Leaves are found by name, and have to have the shape and the dtype of their places in `like`.

    Args:
        path: the file; without a suffix it gets `.safetensors`.
        like: a tree of the structure that was saved. The values of its arrays do not matter: they
            may be `jax.ShapeDtypeStruct`s, as `filter_eval_shape` makes them. It says which arrays
            are JAX's and which NumPy's, where they shall be (arrays and shapes with a sharding),
            and holds what no file can, such as functions. Without it, the leaves come in a nested
            dictionary.
        strict: whether any difference in names, shapes or dtypes is an error. If false, what fits
            is loaded, the rest is taken from `like`, and a report is returned too.
        rename: from names in the file to paths in `like`: a mapping, whose keys may be beginnings
            of names, or a function of a name. `None` for a path leaves a leaf out.
        filter_spec: what to load; the rest is taken from `like`. A pattern of paths such as
            `"encoder.**"`, or what `ecliptic.filter` takes. Only what is loaded is read.
        is_leaf: as in `jax.tree.map`: which nodes of `like` are leaves too.
        mmap: whether NumPy arrays (without `like`, all arrays) look into the file, read-only. Then
            nothing is read before it is used, and nothing is checked for damage. The file must not
            be written to as long as they live; `save` never does that, it makes a new one.

    Returns:
        The tree, or with `strict=False` the tree and a `LoadReport`.

    Raises:
        MismatchError: the file has other leaves than `like`; the message has the report.
        FileFormatError: the file is damaged, or no safetensors file.
        SerialisationError: `rename` does not fit, or a dtype needs 64 bits to be enabled.

    !!! Example

        >>> import os, tempfile
        >>> import jax.numpy as jnp
        >>> from ecliptic.serialise import load, save
        >>> path = os.path.join(tempfile.mkdtemp(), "model")
        >>> _ = save(path, {"weight": jnp.ones(2), "rate": 1e-3})
        >>> load(path)
        {'weight': Array([1., 1.], dtype=float32), 'rate': 0.001}
        >>> load(path, {"w": jnp.zeros(2), "rate": 0.0}, rename={"['weight']": "['w']"})
        {'rate': 0.001, 'w': Array([1., 1.], dtype=float32)}
    """
    with Container(path) as container:
        file = _File(container)
        if like is None:
            tree, report = _load_alone(file, rename, filter_spec, mmap)
        else:
            tree, report = _load_like(file, like, strict, rename, filter_spec, is_leaf, mmap)
    return tree if strict else (tree, report)


def load_metadata(path: str | os.PathLike[str]) -> FileMetadata:
    """Read what a file says about itself, and none of its tensors.

    Args:
        path: the file; without a suffix it gets `.safetensors`.

    Returns:
        The metadata, and the names and forms of the leaves.

    Raises:
        FileFormatError: the file is damaged, or no safetensors file.

    !!! Example

        >>> import os, tempfile
        >>> import jax.numpy as jnp
        >>> from ecliptic.serialise import load_metadata, save
        >>> path = os.path.join(tempfile.mkdtemp(), "model")
        >>> _ = save(path, [jnp.ones(2), jnp.tanh], metadata={"epoch": 3})
        >>> found = load_metadata(path)
        >>> found.metadata, found.leaves, found.not_saved
        ({'epoch': 3}, {'[0]': 'float32[2]'}, {'[1]': 'jax.numpy.tanh'})
    """
    with Container(path) as container:
        file = _File(container)
        return FileMetadata(
            metadata=container.info.get("metadata"),
            leaves={name: str(file.form(name)) for name in file.names},
            not_saved=container.info.get("not_saved", {}),
            static=container.info.get("static", {}),
            versions=container.info.get("versions", {}),
        )


class _File:
    """The leaves of an open file."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.records: dict[str, Record] = container.info.get("leaves", {})
        self.names = list(dict.fromkeys([*container.entries, *self.records]))

    def stored(self, name: str) -> str:
        """The name under which the tensor of a leaf is stored."""
        return self.records.get(name, {}).get("same", name)

    def record(self, name: str) -> Record:
        return self.records.get(self.stored(name), {})

    def form(self, name: str) -> Form:
        record, stored = self.record(name), self.stored(name)
        if "value" in record:
            return Form(record["kind"])
        entry = self.container.entries.get(stored)
        if entry is None:
            raise FileFormatError(f"The file has no tensor {stored!r} for the leaf {name!r}.")
        try:
            return form_of_record(record, self.container.host_dtype(stored), entry.shape)
        except (ValueError, TypeError, KeyError) as error:
            raise FileFormatError(
                f"The leaf {name!r} has a record that cannot be read ({error})."
            ) from error

    def leaf(self, name: str, like: Any, mmap: bool) -> Any:
        """A leaf, or what is to be put on a device."""
        record, stored = self.record(name), self.stored(name)
        if "value" in record:
            return read_value(record, like)
        mapped = mmap and (like is None or isinstance(like, np.ndarray))
        if mapped and record.get("kind") != "key":
            return decode_array(record, self.container.map(stored))
        host = decode_array(record, self.container.read(stored))
        try:
            return rebuild(record, host, like)
        except SerialisationError as error:
            raise SerialisationError(f"Cannot load the leaf {name!r}: {error}") from error

    def leaves(self, wanted: list[tuple[str, Any]], mmap: bool) -> Iterator[Any]:
        """The leaves of some names, each for a leaf of the skeleton (or None)."""
        shared: dict[Any, int] = {}
        result: list[Any] = []
        pending: list[int] = []
        size = 0
        for name, like in wanted:
            key = (self.stored(name), type(like), getattr(like, "weak_type", None))
            if key in shared and getattr(like, "sharding", None) == getattr(
                wanted[shared[key]][1], "sharding", None
            ):
                result.append(_Same(shared[key]))
                continue
            shared[key] = len(result)
            leaf = self.leaf(name, like, mmap)
            result.append(leaf)
            if isinstance(leaf, Pending):
                pending.append(len(result) - 1)
                size += leaf.host.nbytes
            if size > _CHUNK:
                _put_all(result, pending)
                pending, size = [], 0
        _put_all(result, pending)
        return (result[leaf.place] if isinstance(leaf, _Same) else leaf for leaf in result)


@dataclasses.dataclass(frozen=True)
class _Same:
    """The leaf at another place."""

    place: int


def _put_all(result: list[Any], pending: list[int]) -> None:
    for place, array in zip(pending, put([result[i] for i in pending]), strict=True):
        result[place] = array


def _load_alone(file: _File, rename: Rename, filter_spec: Any, mmap: bool) -> tuple[Any, Any]:
    by_path = renamed(file.names, rename)
    if not isinstance(filter_spec, str) and filter_spec is not True:
        raise SerialisationError("Without `like`, `filter_spec` is a pattern of paths.")
    picks = picked(list(by_path), None, filter_spec, None)
    paths = [path for path, pick in zip(by_path, picks, strict=True) if pick]
    for path in paths:
        file.form(by_path[path])
    leaves = file.leaves([(by_path[path], None) for path in paths], mmap)
    values = dict(zip(paths, leaves, strict=True))
    return nested(values), LoadReport(loaded=tuple(paths))


def _load_like(
    file: _File,
    like: PyTree,
    strict: bool,
    rename: Rename,
    filter_spec: Any,
    is_leaf: Any,
    mmap: bool,
) -> tuple[Any, LoadReport]:
    paths, leaves, treedef = flatten(like, is_leaf)
    picks = picked(paths, like, filter_spec, is_leaf)
    by_path = renamed(file.names, rename)
    forms = wanted_forms(
        {path: leaf for path, leaf, pick in zip(paths, leaves, picks, strict=True) if pick}, by_path
    )
    part = filter_spec is not True
    saved = {path: file.form(name) for path, name in by_path.items() if path in forms or not part}
    report = compare(
        saved,
        forms,
        name=by_path.__getitem__,
        ignore_extra=part,
        notes=_notes(file, like, dict(zip(paths, leaves, strict=True))),
    )
    if strict and not report.complete:
        raise mismatch(f"in {str(file.container.path)!r}", report)
    place = {path: i for i, path in enumerate(paths)}
    wanted = [(by_path[path], leaves[place[path]]) for path in report.loaded]
    for path, leaf in zip(report.loaded, file.leaves(wanted, mmap), strict=True):
        leaves[place[path]] = leaf
    return treedef.unflatten(leaves), report


def _notes(file: _File, like: PyTree, leaves: dict[str, Any]) -> tuple[str, ...]:
    """What differs in functions and static fields."""
    info = file.container.info
    if not info:
        return ()
    notes = [
        f"{path}: {was} when it was saved, {now} in `like`"
        for path, was in info.get("not_saved", {}).items()
        if path in leaves and (now := describe_function(leaves[path])) != was
    ]
    now = configuration(like)
    for path, was in info.get("static", {}).items():
        old, new = was.get("static", {}), now.get(path, {}).get("static", {})
        notes += [
            f"{path}{'.' * bool(path)}{name}: {old[name]!r} when it was saved, {new[name]!r} in "
            "`like`"
            for name in old
            if name in new and old[name] != new[name]
        ]
    return tuple(notes)
