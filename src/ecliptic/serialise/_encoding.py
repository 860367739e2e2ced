"""One leaf in the named format: how each kind is written, and made again.

| leaf | tensor | record |
|---|---|---|
| JAX array of a dtype that safetensors has | itself | none |
| NumPy array, NumPy scalar | itself | `{"kind": "numpy"}`, `{"kind": "scalar"}` |
| complex | real and imaginary parts along a last axis | `{"dtype": "complex64"}` |
| another dtype (`int4`, dates, words) | its bytes along a last axis | `{"dtype": "int4"}` |
| typed PRNG keys | their key data | `{"kind": "key", "implementation": "threefry2x32"}` |
| Python number, string, bytes | none | `{"kind": "float", "value": "0x1.0p-3"}` |
| an array that is at another place too | none | `{"same": "the other path"}` |

Nothing is pickled, and no name in a file is ever looked up in Python.
"""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from ecliptic import _jax
from ecliptic.errors import SerialisationError
from ecliptic.serialise._leaf import (
    EXTENDED,
    host_array,
    is_key,
    is_written,
    key_layout,
    weakened,
)

Record = dict[str, Any]

# Those that every version of safetensors has and every reader knows.
_NATIVE = frozenset(
    np.dtype(name)
    for name in (
        *("bool", "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"),
        *(f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)),
    )
)
_ARRAYS = (jax.Array, np.generic)
_PARTS = {"complex64": "float32", "complex128": "float64"}


class Form(NamedTuple):
    """What has to agree between a leaf in the file and its place in the skeleton.

    Args:
        type: the name of a dtype, or of a type of Python.
        shape: the shape; `()` for what is no array.
    """

    type: str
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.type}[{', '.join(map(str, self.shape))}]" if self.shape else self.type


# ------------------------------------------------------------------------------------- writing


def encode(leaf: Any) -> tuple[Record, np.ndarray | None] | None:
    """Make a record and an array to store of a leaf; None if it is taken from the skeleton.

    Raises:
        SerialisationError: it is an array without a value, or one that only pickling could write.
    """
    if _is_plain_array(leaf):
        array = np.asarray(leaf)
        return {}, array if array.flags.c_contiguous else np.ascontiguousarray(array)
    if not isinstance(leaf, _ARRAYS):
        kind = _kind_of_value(leaf)
        if kind is not None:
            return {"kind": kind, "value": _VALUES[kind].write(leaf)}, None
    array = host_array(leaf)
    if array is None:
        return None
    array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    if is_key(leaf):
        return {"kind": "key", "implementation": key_layout(leaf)[0]}, array
    record: Record = {}
    if isinstance(leaf, np.ndarray | np.generic):
        record["kind"] = "numpy" if isinstance(leaf, np.ndarray) else "scalar"
    elif getattr(leaf, "weak_type", False):
        record["weak"] = True
    return _stored(record, array)


def _is_plain_array(leaf: Any) -> bool:
    # What nearly all leaves are, told from the rest quickly.
    if not isinstance(leaf, jax.Array) or isinstance(leaf, _jax.Tracer):
        return False
    return leaf.dtype in _NATIVE and not leaf.weak_type


def _stored(record: Record, array: np.ndarray) -> tuple[Record, np.ndarray]:
    dtype = array.dtype
    if dtype in _NATIVE:
        return record, array
    record["dtype"] = _dtype_text(dtype)
    flat = array.reshape(-1)
    if dtype.name in _PARTS and dtype.isnative:
        return record, flat.view(_PARTS[dtype.name]).reshape(*array.shape, 2)
    if not dtype.itemsize:
        return record, np.zeros((*array.shape, 0), np.uint8)
    return record, flat.view(np.uint8).reshape(*array.shape, dtype.itemsize)


def _dtype_text(dtype: np.dtype[Any]) -> Any:
    if dtype == jax.dtypes.float0:
        return "float0"
    return dtype.name if dtype.isbuiltin == EXTENDED else np.lib.format.dtype_to_descr(dtype)


class _Value(NamedTuple):
    """How values of a type of Python are written as JSON, without loss, and read."""

    type: type
    write: Any
    read: Any


_VALUES = {
    "bool": _Value(bool, bool, bool),
    # As a hexadecimal number, whose length Python does not limit.
    "int": _Value(int, hex, lambda text: int(text, 16)),
    "float": _Value(float, float.hex, float.fromhex),
    "complex": _Value(
        complex,
        lambda x: [x.real.hex(), x.imag.hex()],
        lambda parts: complex(*map(float.fromhex, parts)),
    ),
    "str": _Value(str, str, str),
    "bytes": _Value(bytes, bytes.hex, bytes.fromhex),
}


def _kind_of_value(leaf: Any) -> str | None:
    for kind, value in _VALUES.items():
        if type(leaf) is value.type:
            return kind
    # An `IntEnum`, say. Its number is written; the skeleton says which class it is of.
    for kind in ("bool", "int", "float", "complex"):
        if isinstance(leaf, _VALUES[kind].type):
            return kind
    return None


def read_value(record: Record, like: Any = None) -> Any:
    """The value of Python in a record, of the class that it has in the skeleton."""
    kind = record["kind"]
    value = _VALUES[kind].read(record["value"])
    return value if like is None or type(like) is type(value) else type(like)(value)


# ------------------------------------------------------------------------------------- reading


def form_of_leaf(leaf: Any) -> Form | None:
    """The form of a leaf of the skeleton; None if it is taken from the skeleton."""
    if not isinstance(leaf, _ARRAYS):
        kind = _kind_of_value(leaf)
        if kind is not None:
            return Form(kind)
    if is_key(leaf):
        return Form(f"key<{key_layout(leaf)[0]}>", tuple(leaf.shape))
    if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct) or is_written(leaf):
        return Form(_shown(np.dtype(leaf.dtype)), tuple(np.shape(leaf)))
    return None


def form_of_record(record: Record, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Form:
    """The form of a leaf in the file, which is stored with a dtype and a shape.

    Raises:
        ValueError: the record and what is stored do not fit; or TypeError, or KeyError.
    """
    if record.get("kind") == "key":
        name = record["implementation"]
        data = jax.ShapeDtypeStruct(shape, dtype)
        keys = jax.eval_shape(lambda d: jax.random.wrap_key_data(d, impl=name), data)
        return Form(f"key<{name}>", tuple(keys.shape))
    if "dtype" not in record:
        return Form(_shown(dtype), shape)
    actual = _dtype_of_text(record["dtype"])
    stored, last = (_PARTS[actual.name], 2) if _is_parts(actual) else ("uint8", actual.itemsize)
    if dtype != stored or shape[-1:] != (last,):
        raise ValueError(f"{record['dtype']!r} is not stored as {dtype} of shape {shape}")
    return Form(_shown(actual), shape[:-1])


def decode_array(record: Record, stored: np.ndarray) -> np.ndarray:
    """The array of a leaf (of keys, their data) from the stored one, without a copy."""
    if "dtype" not in record:
        return stored
    dtype = _dtype_of_text(record["dtype"])
    if not dtype.itemsize:
        return np.zeros(stored.shape[:-1], dtype)
    return stored.reshape(-1).view(dtype).reshape(stored.shape[:-1])


def _is_parts(dtype: np.dtype[Any]) -> bool:
    return dtype.name in _PARTS and dtype.isnative


@functools.cache
def _shown(dtype: np.dtype[Any]) -> str:
    if dtype == jax.dtypes.float0:
        return "float0"
    return dtype.name if dtype.isbuiltin else str(dtype.newbyteorder("="))


def _dtype_of_text(text: Any) -> np.dtype[Any]:
    if text == "float0":
        return np.dtype(jax.dtypes.float0)
    dtype = np.lib.format.descr_to_dtype(_as_descr(text))
    if dtype.hasobject or dtype.subdtype is not None:
        raise ValueError(f"the dtype {text!r} is never read")
    return dtype


def _as_descr(text: Any) -> Any:
    # JSON has lists only; NumPy takes a list for the fields, and a tuple for each and for a shape.
    if isinstance(text, str):
        return text
    fields = []
    for name, dtype, *shape in text:
        name = tuple(name) if isinstance(name, list) else name
        fields.append((name, _as_descr(dtype), *map(tuple, shape)))
    return fields


class Pending(NamedTuple):
    """An array in the host's memory that is to be put on a device.

    Args:
        host: the values (of keys, their data), in memory that nobody else has.
        weak: whether the array has a weak type.
        implementation: of typed keys; None for numbers.
        sharding: where it shall be; None for JAX's default device.
    """

    host: np.ndarray
    weak: bool = False
    implementation: str | None = None
    sharding: Any = None


def rebuild(record: Record, host: np.ndarray, like: Any) -> Any:
    """The leaf of an array: itself, or what is to be put on a device.

    Args:
        record: of the leaf.
        host: its array.
        like: the leaf of the skeleton, which says of what kind the leaf is; None to go by the
            record.

    Raises:
        SerialisationError: JAX has this dtype only with 64 bits enabled.
    """
    if like is None:
        kind = record.get("kind", "jax")
        if kind == "scalar":
            return host[()]
        if kind == "numpy" or not _fits_jax(host.dtype):
            return host
        return Pending(host, record.get("weak", False), record.get("implementation"))
    if isinstance(like, np.ndarray):
        return host.astype(like.dtype, copy=False)
    if isinstance(like, np.generic):
        return host[()]
    if not _fits_jax(host.dtype):
        raise SerialisationError(
            f"it has dtype {host.dtype}, which JAX holds only when 64 bits are enabled: call "
            "`jax.config.update('jax_enable_x64', True)` first."
        )
    given = isinstance(like, jax.ShapeDtypeStruct) or getattr(like, "committed", False)
    sharding = getattr(like, "sharding", None) if given else None
    return Pending(host, getattr(like, "weak_type", False), record.get("implementation"), sharding)


def _fits_jax(dtype: np.dtype[Any]) -> bool:
    known = dtype.kind in "biufc" or dtype.isbuiltin == EXTENDED
    return known and jax.dtypes.canonicalize_dtype(dtype) == dtype


def put(pending: list[Pending]) -> list[jax.Array]:
    """Put arrays on their devices, all at once. The host's memory becomes theirs where it can."""
    arrays: list[Any] = [None] * len(pending)
    straight = [i for i, p in enumerate(pending) if p.sharding is not None and _is_plain(p)]
    for i, array in zip(straight, _placed([pending[i] for i in straight]), strict=True):
        arrays[i] = array
    others = [i for i, array in enumerate(arrays) if array is None]
    hosts: Any = [pending[i].host for i in others]
    for i, array in zip(others, jax.device_put(hosts), strict=True):
        arrays[i] = _finished(pending[i], array)
    return arrays


def _is_plain(pending: Pending) -> bool:
    return not pending.weak and pending.implementation is None


def _placed(pending: list[Pending]) -> list[jax.Array]:
    hosts: Any = [p.host for p in pending]
    return jax.device_put(hosts, [p.sharding for p in pending])


def _finished(pending: Pending, array: jax.Array) -> jax.Array:
    if pending.weak:
        array = weakened(array)
    if pending.implementation is not None:
        array = jax.random.wrap_key_data(array, impl=pending.implementation)
    return array if pending.sharding is None else jax.device_put(array, pending.sharding)
