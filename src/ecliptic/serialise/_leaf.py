"""One leaf of a tree as bytes: what is written for each kind of leaf, and how it is read.

A stream is the leaves one after the other, each in NumPy's `.npy` format. Nothing is ever pickled.
NumPy writes the extended dtypes (`bfloat16`, `float8_*`, `int4`, …) as raw bytes of the same size;
the dtype of the skeleton says what they were. A typed PRNG key is written as its key data.
"""

import math
from typing import Any, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from ecliptic import _jax
from ecliptic.errors import SerialisationError
from ecliptic.tree import is_array, is_array_like

_T_co = TypeVar("_T_co", covariant=True)
_T_contra = TypeVar("_T_contra", contravariant=True)


@runtime_checkable
class SupportsWrite(Protocol[_T_contra]):
    """A file open for writing, as far as it is needed.

    !!! Example

        >>> import io
        >>> file: SupportsWrite[bytes] = io.BytesIO()
        >>> file.write(b"bytes")
        5
    """

    def write(self, data: _T_contra, /) -> Any:
        """Write some bytes."""


@runtime_checkable
class SupportsReadSeek(Protocol[_T_co]):
    """A file open for reading. Only `read` is ever called.

    !!! Example

        >>> import io
        >>> file: SupportsReadSeek[bytes] = io.BytesIO(b"bytes")
        >>> file.read(2)
        b'by'
    """

    def read(self, size: int, /) -> _T_co:
        """Read some bytes."""
        ...

    def seek(self, offset: int, whence: int, /) -> Any:
        """Move to another place."""


def default_serialise_filter_spec(f: SupportsWrite[bytes], x: Any) -> None:
    r"""Write one leaf: what `tree_serialise_leaves` does unless it is told otherwise.

    Arrays, NumPy scalars, typed PRNG keys and Python numbers are written; of anything else
    (functions, strings, …) nothing is, and loading takes it from the skeleton.

    Args:
        f: a binary file, open for writing.
        x: a leaf.

    Raises:
        SerialisationError: the leaf has no value yet (it is a tracer or a `ShapeDtypeStruct`), or
            cannot be written without pickling it.

    !!! Example

        >>> import io, jax.numpy as jnp
        >>> from ecliptic.serialise import default_serialise_filter_spec
        >>> f = io.BytesIO()
        >>> default_serialise_filter_spec(f, jnp.ones(2))
        >>> f.getvalue()[:6]
        b'\x93NUMPY'
    """
    array = host_array(x)
    if array is None:
        return
    if array.dtype.isbuiltin == EXTENDED and array.dtype.kind != "V":
        # NumPy would write a name of the dtype (`<f1`) that it cannot read.
        array = array.view(f"V{array.dtype.itemsize}")
    np.save(_Writable(f), array, allow_pickle=False)


def default_deserialise_filter_spec(f: SupportsReadSeek[bytes], x: Any) -> Any:
    """Read one leaf: what `tree_deserialise_leaves` does unless it is told otherwise.

    Args:
        f: a binary file, open for reading.
        x: the leaf of the skeleton, whose kind and dtype say how to read it.

    Returns:
        A leaf of the kind of `x`: a JAX array also for a `ShapeDtypeStruct`, with the weak type of
        `x`; a NumPy array, NumPy scalar, typed PRNG key or Python number. Where nothing was
        written, `x` itself.

    Raises:
        SerialisationError: the file holds no leaf of this dtype or kind.

    !!! Example

        >>> import io
        >>> from ecliptic.serialise import (
        ...     default_deserialise_filter_spec,
        ...     default_serialise_filter_spec,
        ... )
        >>> f = io.BytesIO()
        >>> default_serialise_filter_spec(f, 1e-8)
        >>> _ = f.seek(0)
        >>> default_deserialise_filter_spec(f, 0.0)
        1e-08
    """
    if isinstance(x, jax.ShapeDtypeStruct | jax.Array):
        return _read_key(f, x) if is_key(x) else _read_jax(f, x)
    if not is_written(x):
        return x
    if isinstance(x, np.ndarray):
        return _as_dtype(_read(f), x.dtype)
    if isinstance(x, np.generic):
        return _as_dtype(_read(f), x.dtype)[()]
    if isinstance(x, bool | int | float | complex):
        return _read_number(f, x)
    if is_array(x):
        return jnp.asarray(_read(f))
    raise _cannot_rebuild(x)


def host_array(x: Any) -> np.ndarray | None:
    """A leaf as a NumPy array (of keys, their data), or None if it is no array and no number.

    Raises:
        SerialisationError: the leaf has no value, or only pickling could write it.
    """
    if isinstance(x, _jax.Tracer):
        raise SerialisationError(
            "it is being traced and has no value yet. Save outside of `filter_jit` and other "
            "transformations."
        )
    if isinstance(x, jax.ShapeDtypeStruct):
        raise SerialisationError("it is a `jax.ShapeDtypeStruct`, which has no value to write.")
    if not isinstance(x, jax.Array) and not is_written(x):
        return None
    if is_key(x):
        x = jax.random.key_data(x)
    elif hasattr(type(x), "__jax_array__") and not is_array(x):
        raise _cannot_rebuild(x)
    array = np.asarray(x)
    if array.dtype.hasobject:
        raise SerialisationError(
            f"{x!r} of type `{type(x).__name__}` can only be written by pickling it, which is "
            "never done: reading it would run whatever code the file holds."
        )
    return array


def is_written(x: Any) -> bool:
    """Whether a leaf is an array or a number."""
    # `is_array_like` leaves out the NumPy scalars that nobody can compute with, such as dates.
    return is_array_like(x) or isinstance(x, np.generic)


def is_key(x: Any) -> bool:
    """Whether a leaf is an array of typed PRNG keys, or the shape of one."""
    # NumPy's own dtypes are no keys, and `issubdtype` is slow.
    if not hasattr(x, "dtype") or isinstance(x.dtype, np.dtype):
        return False
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _cannot_rebuild(x: Any) -> SerialisationError:
    return SerialisationError(
        f"it is a `{type(x).__name__}`, known only by its `__jax_array__`, and nothing says how to "
        "build one from an array. Write and read such leaves with functions of your own, given as "
        "`filter_spec`."
    )


class _Writable:
    """Any writable object, as a file that `numpy.save` takes for one."""

    def __init__(self, f: SupportsWrite[bytes]) -> None:
        self.write = f.write


class _Readable:
    """Any readable object, as a file that NumPy reads from in order."""

    def __init__(self, f: SupportsReadSeek[bytes]) -> None:
        self._read = f.read
        self.used = 0

    def read(self, size: int) -> bytes:
        data = self._read(size)
        if not isinstance(data, bytes):
            raise SerialisationError(
                f"the file gives `{type(data).__name__}` instead of bytes: open it in binary "
                "mode, as `open(path, 'rb')`."
            )
        self.used += len(data)
        return data


def _read(f: SupportsReadSeek[bytes]) -> np.ndarray:
    source = _Readable(f)
    try:
        shape, fortran, dtype = _read_header(source)
        if dtype.hasobject:
            raise ValueError("it holds pickled objects")
        data = _read_bytes(source, math.prod(shape) * dtype.itemsize)
    except Exception as error:
        if isinstance(error, OSError | SerialisationError):
            raise
        if source.used == 0:
            raise SerialisationError(
                "the file ends before it: the file holds fewer leaves than `like`."
            ) from error
        raise SerialisationError(
            f"the file holds no array there that can be read without unpickling ({error}). It was "
            "written by another function or from another structure, or it is damaged."
        ) from error
    if not dtype.itemsize:
        return np.zeros(shape, dtype)
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _read_header(source: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(source)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(source)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(source)
    raise ValueError(f"version {version} of the `.npy` format")


def _read_bytes(source: _Readable, size: int) -> bytearray:
    # Piece by piece: a damaged header may ask for more memory than there is.
    data = bytearray()
    while len(data) < size:
        piece = source.read(min(size - len(data), _PIECE))
        if not piece:
            raise ValueError(f"{size} bytes of numbers are announced, and {len(data)} are there")
        data += piece
    return data


_PIECE = 1 << 24

# What `numpy.dtype.isbuiltin` is for the dtypes of other packages, those of JAX's among them.
EXTENDED = 2


def _native(dtype: Any) -> np.dtype[Any]:
    return dtype.newbyteorder("=") if dtype.kind in "iufc" else dtype


def _as_dtype(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Takes raw bytes for what they were before NumPy wrote them."""
    raw = array.dtype.kind == "V" and array.dtype.names is None
    if raw and array.dtype.itemsize == dtype.itemsize and dtype.isbuiltin == EXTENDED:
        return array.view(dtype)
    return array


def _read_jax(f: SupportsReadSeek[bytes], x: Any) -> jax.Array:
    array = _as_dtype(_read(f), np.dtype(x.dtype))
    if array.dtype.kind not in "biufc" and array.dtype.isbuiltin != EXTENDED:
        return array  # pyright: ignore[reportReturnType]
    if jax.dtypes.canonicalize_dtype(array.dtype) != _native(array.dtype):
        if array.dtype == x.dtype:
            raise SerialisationError(
                f"it has dtype {array.dtype}, which JAX holds only when 64 bits are enabled: call "
                "`jax.config.update('jax_enable_x64', True)` first."
            )
        # JAX would hold it in another dtype; the comparison must see the one on disk.
        return array  # pyright: ignore[reportReturnType]
    loaded = jnp.asarray(array.astype(_native(array.dtype), copy=False))
    return (
        weakened(loaded) if getattr(x, "weak_type", False) and loaded.dtype == x.dtype else loaded
    )


def weakened(x: jax.Array) -> jax.Array:
    """The same values with a weak type, where the dtype is one that has weak types."""
    # There is no other public way to make a weakly typed array of given values.
    zero = jnp.asarray(x.dtype.type(0).item())
    return jnp.broadcast_to(zero, x.shape).at[...].set(x) if zero.dtype == x.dtype else x


def key_layout(x: Any) -> tuple[str, jax.ShapeDtypeStruct]:
    """The implementation of an array of keys (or the shape of one), and what its data are like."""
    implementations: list[Any] = []

    def key_data(key: Any) -> jax.Array:
        implementations.append(jax.random.key_impl(key))
        return jax.random.key_data(key)

    # Traced, because a `ShapeDtypeStruct` of keys answers neither question.
    like = jax.eval_shape(key_data, jax.ShapeDtypeStruct(x.shape, x.dtype))
    return implementations[0], like


def _read_key(f: SupportsReadSeek[bytes], x: Any) -> jax.Array:
    implementation, like = key_layout(x)
    data = _read(f)
    if data.dtype != like.dtype or data.shape != like.shape:
        raise SerialisationError(
            f"it is a PRNG key of shape {x.shape} and dtype {x.dtype}, with key data of shape "
            f"{like.shape} and dtype {like.dtype} in `like`, but of shape {data.shape} and dtype "
            f"{data.dtype} on disk."
        )
    return jax.random.wrap_key_data(jnp.asarray(data), impl=implementation)


# The kinds of NumPy dtypes that a Python number can be made of without loss, if the value fits.
_KINDS = {bool: "b", int: "iu", float: "iuf", complex: "iufc"}


def _read_number(f: SupportsReadSeek[bytes], x: complex) -> complex:
    array = _read(f)
    cls = next(cls for cls in (bool, int, float, complex) if isinstance(x, cls))
    if array.shape != () or array.dtype.kind not in _KINDS[cls]:
        raise SerialisationError(
            f"it is the number {x!r} of type `{type(x).__name__}` in `like`, but an array of shape "
            f"{array.shape} and dtype {array.dtype} on disk."
        )
    value = array.item()
    number = type(x)(value)
    if number != value and value == value:
        raise SerialisationError(
            f"the number {value!r} on disk has no exact value of type `{type(x).__name__}`, which "
            "it has in `like`."
        )
    return number
