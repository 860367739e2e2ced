"""A tree as arrays for Orbax and JSON for all else, and back.

The JSON has the path of each leaf and the records of `_encoding`, which hold numbers and strings
and say what an array was. The arrays have numbers for names, so that no name in a tree can disturb
Orbax, and are of dtypes that every version of it has.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic.errors import FileFormatError, SerialisationError
from ecliptic.serialise._describe import configuration, describe_function, versions
from ecliptic.serialise._encoding import (
    Form,
    Record,
    decode_array,
    encode,
    form_of_record,
    put,
    read_value,
    rebuild,
)
from ecliptic.serialise._leaf import host_array, is_key, key_layout
from ecliptic.serialise._select import flatten

# Each value of a dtype of fewer than 8 bits is one of the wider dtype.
_WIDER = {
    "int2": "int8",
    "int4": "int8",
    "uint2": "uint8",
    "uint4": "uint8",
    "float4_e2m1fn": "float32",
}


def taken_apart(tree: PyTree, is_leaf: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays for Orbax, and all else as JSON."""
    paths, leaves, _ = flatten(tree, is_leaf)
    arrays: dict[str, Any] = {}
    records: dict[str, Record] = {}
    left: dict[str, str] = {}
    for path, leaf in zip(paths, leaves, strict=True):
        try:
            found = _encoded(leaf)
        except (SerialisationError, RuntimeError) as error:
            raise SerialisationError(f"Cannot save the leaf at path {path!r}: {error}") from error
        if found is None:
            left[path] = describe_function(leaf)
            continue
        record, array = found
        if array is not None:
            record = {**record, "shape": list(array.shape), "stored": str(array.dtype)}
            if array.size:
                record["number"] = str(len(arrays))
                arrays[record["number"]] = array
        records[path] = record
    info = {
        "leaves": records,
        "not_saved": left,
        "static": configuration(tree),
        "versions": versions(),
    }
    return arrays, info


def _encoded(leaf: Any) -> tuple[Record, Any] | None:
    if not isinstance(leaf, jax.Array):
        found = encode(leaf)
        if found is None or found[1] is None:
            return found
        # Orbax writes later, and the array may be changed until then.
        return found[0], np.array(found[1])
    if isinstance(leaf, _jax.Tracer) or leaf.is_deleted():
        host_array(leaf)  # It raises the error.
    if is_key(leaf):
        record: Record = {"kind": "key", "implementation": key_layout(leaf)[0]}
        return record, jax.random.key_data(leaf)
    record = {"weak": True} if getattr(leaf, "weak_type", False) else {}
    return _narrow(record, leaf)


def _narrow(record: Record, array: jax.Array) -> tuple[Record, jax.Array]:
    """Small dtypes as some that Orbax has."""
    name = array.dtype.name
    if name in _WIDER:
        return {**record, "wide": name}, array.astype(_WIDER[name])
    if name.startswith("float8"):
        return {**record, "wide": name}, jax.lax.bitcast_convert_type(array, jnp.uint8)
    return record, array


class Saved:
    """The leaves of a checkpoint, as its JSON file has them."""

    def __init__(self, info: dict[str, Any]) -> None:
        self.records: dict[str, Record] = info["leaves"]

    def number(self, name: str) -> str:
        """The name that an array has for Orbax."""
        return self.records[name]["number"]

    def form(self, name: str) -> Form:
        """The form of a leaf."""
        record = self.records[name]
        if "value" in record:
            return Form(record["kind"])
        shape = tuple(record["shape"])
        if "wide" in record:
            return Form(record["wide"], shape)
        try:
            return form_of_record(record, np.dtype(record["stored"]), shape)
        except (ValueError, TypeError, KeyError) as error:
            raise FileFormatError(
                f"The leaf {name!r} has a record that cannot be read ({error})."
            ) from error

    def targets(self) -> dict[str, Any]:
        """Something for Orbax to make of each array."""
        return {
            record["number"]: _host_target(record)
            for record in self.records.values()
            if "number" in record
        }

    def target(self, name: str, like: Any) -> Any:
        """What Orbax shall make of an array: one on devices, or NumPy's; None for nothing."""
        record = self.records[name]
        if "number" not in record:
            return None
        sharding = _sharding(like)
        if sharding is None or "kind" in record or "dtype" in record:
            return _host_target(record)
        dtype = np.dtype(record["stored"])
        return jax.ShapeDtypeStruct(tuple(record["shape"]), dtype, sharding=sharding)

    def leaf(self, name: str, like: Any, arrays: dict[str, Any]) -> Any:
        """A leaf, from what Orbax made of the arrays."""
        record = self.records[name]
        if "value" in record:
            return read_value(record, like)
        dtype = np.dtype(record["stored"])
        if "number" in record:
            array = arrays[record["number"]]
        else:
            array = np.zeros(tuple(record["shape"]), dtype)
        if isinstance(array, jax.Array):
            return _widened(record, array)
        host = np.array(_widened(record, decode_array(record, array)))
        leaf = rebuild(record, host, like)
        return leaf if leaf is host or isinstance(leaf, np.ndarray | np.generic) else put([leaf])[0]


def _host_target(record: Record) -> np.ndarray:
    # One number that stands for all.
    return np.broadcast_to(np.zeros((), record["stored"]), tuple(record["shape"]))


def _sharding(like: Any) -> Any:
    if not isinstance(like, jax.Array | jax.ShapeDtypeStruct) or is_key(like):
        return None
    given = isinstance(like, jax.ShapeDtypeStruct) or getattr(like, "committed", False)
    weak = getattr(like, "weak_type", False)
    return like.sharding if given and not weak else None


def _widened(record: Record, array: Any) -> Any:
    """Small dtypes again."""
    name = record.get("wide")
    if name is None:
        return array
    if name in _WIDER:
        return array.astype(name)
    if isinstance(array, jax.Array):
        return jax.lax.bitcast_convert_type(array, np.dtype(name))
    return array.view(name)
