"""The file of the named format: safetensors, and what Ecliptic writes into its metadata.

A safetensors file is the length of a header, the header (JSON: the name, dtype, shape and place of
each tensor, and a dictionary of strings called `__metadata__`) and the bytes of the tensors. It is
written and read here, and not by the package of that name, which copies once more when it reads and
has no way to say where to, and takes longer to write many arrays. The package is the judge of it in
the tests.

`__metadata__["ecliptic"]` is JSON again, and starts with the checksums: that of the whole header
(with zeros in its own place), and that of each tensor, in the order of the header.
"""

import concurrent.futures
import functools
import io
import itertools
import json
import math
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ecliptic.errors import FileFormatError, SerialisationError
from ecliptic.serialise._file import with_suffix, written_beside

SUFFIX = ".safetensors"
FORMAT = 1

# What safetensors calls the dtypes, and what NumPy and `ml_dtypes` do. `None` are packed: several
# numbers in a byte, or one across two.
_DTYPES: dict[str, tuple[str | None, int]] = {
    "BOOL": ("bool", 8),
    "U8": ("uint8", 8),
    "I8": ("int8", 8),
    "U16": ("uint16", 16),
    "I16": ("int16", 16),
    "U32": ("uint32", 32),
    "I32": ("int32", 32),
    "U64": ("uint64", 64),
    "I64": ("int64", 64),
    "F16": ("float16", 16),
    "BF16": ("bfloat16", 16),
    "F32": ("float32", 32),
    "F64": ("float64", 64),
    "C64": ("complex64", 64),
    "F8_E4M3": ("float8_e4m3fn", 8),
    "F8_E5M2": ("float8_e5m2", 8),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8),
    "F8_E8M0": ("float8_e8m0fnu", 8),
    "F4": (None, 4),
    "F6_E2M3": (None, 6),
    "F6_E3M2": (None, 6),
}

# The limit of safetensors itself.
_LONGEST_HEADER = 100_000_000
_NAMES = {np.dtype(known): name for name, (known, _) in _DTYPES.items() if known is not None}
# How many bytes, and how many pieces, are given to the system in one call.
_AT_ONCE = 1 << 23
_MOST_AT_ONCE = 256
_KEY = "ecliptic"
_CRC_OPENING = '{"crc32":"'
_NO_CRC = "00000000"
_BLOCK = 4096
_WORD = np.dtype("<u8")
# XLA takes memory of this alignment over as it is.
_ALIGNMENT = 64


class Entry(NamedTuple):
    """A tensor in the file.

    Args:
        dtype: its name in safetensors.
        shape: its shape.
        start: its first byte, counted from the start of the file.
        stop: the byte after its last.
    """

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


def checksum(data: np.ndarray) -> str:
    """The checksum of an array of bytes, as it is written into the file.

    It is the CRC-32 of the sums (unsigned, of 64 bits each) of all whole blocks of 4 KiB, and of
    the bytes that are left. Each changed bit and each exchanged block changes it, and it takes a
    tenth of the time of a CRC-32 of all.
    """
    size = data.size
    if size < _BLOCK:
        return f"{zlib.crc32(data.data):08x}"
    whole = size - size % _BLOCK
    crc = 0
    if whole:
        words = data[:whole].view(_WORD).reshape(-1, _BLOCK // 8)
        crc = zlib.crc32(np.add.reduce(words, axis=1).data)
    if whole < size:
        crc = zlib.crc32(data[whole:].data, crc)
    return f"{crc:08x}"


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The bytes of a contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8)


def write_container(path: Path, arrays: Mapping[str, np.ndarray], info: dict[str, Any]) -> None:
    """Write a file whole, or leave the one that is there.

    Args:
        path: where to.
        arrays: contiguous arrays of dtypes that safetensors has.
        info: what else to write, as JSON.
    """
    # The widest first, so that each is aligned.
    names = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    parts = [as_bytes(arrays[name]) for name in names]
    ends = itertools.accumulate(part.size for part in parts)
    entries = {
        name: {
            "dtype": _NAMES[arrays[name].dtype],
            "shape": arrays[name].shape,
            "data_offsets": (end - part.size, end),
        }
        for name, part, end in zip(names, parts, ends, strict=True)
    }
    header = _header(entries, info)
    with (
        written_beside(Path(os.path.realpath(path))) as beside,
        open(beside, "wb", buffering=0) as f,
        concurrent.futures.ThreadPoolExecutor(2) as threads,
    ):
        # The checksums are computed while the file is written, and put in their places afterwards.
        sums = threads.submit(lambda: "".join(map(checksum, parts)))
        _write(f, [memoryview(header), *(part.data for part in parts)], threads)
        f.seek(0)
        _write(f, [memoryview(_with_checksums(header, sums.result()))], threads)


# Where the system cannot write many at once, they go one by one.
_writev = getattr(os, "writev", lambda fd, parts: os.write(fd, parts[0]))


def _write(f: io.FileIO, parts: list[memoryview], threads: concurrent.futures.Executor) -> None:
    """Write all of some parts, and begin to bring them to the disk meanwhile."""
    syncing, unsynced = None, 0
    for pieces in _batches(parts):
        unsynced += _write_pieces(f, pieces)
        if unsynced >= _AT_ONCE and (syncing is None or syncing.done()):
            if syncing is not None:
                syncing.result()
            syncing, unsynced = threads.submit(os.fsync, f.fileno()), 0
    if syncing is not None:
        syncing.result()


def _batches(parts: list[memoryview]) -> Iterator[list[memoryview]]:
    # Many small ones at once: the system takes large pieces much faster.
    batch, size = [], 0
    for part in parts:
        for start in range(0, part.nbytes, _AT_ONCE):
            batch.append(part[start : start + _AT_ONCE])
            size += batch[-1].nbytes
            if size >= _AT_ONCE or len(batch) == _MOST_AT_ONCE:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _write_pieces(f: io.FileIO, pieces: list[memoryview]) -> int:
    size = sum(piece.nbytes for piece in pieces)
    while pieces:
        done = _writev(f.fileno(), pieces)
        while pieces and done >= pieces[0].nbytes:
            done -= pieces.pop(0).nbytes
        if done:
            pieces[0] = pieces[0][done:]
    return size


def _header(entries: dict[str, Any], info: dict[str, Any]) -> bytes:
    """The first bytes of a file, with room for the checksums."""
    text = _json({"crc32": _NO_CRC * (1 + len(entries)), "format": FORMAT, **info})
    raw = _json({"__metadata__": {_KEY: text}, **entries}).encode()
    if len(raw) > _LONGEST_HEADER:
        raise SerialisationError(
            f"The names and records of {len(entries)} arrays take {len(raw)} bytes, and a "
            f"safetensors file has room for {_LONGEST_HEADER}. Save the tree in parts, with "
            "`filter_spec`, or stack arrays."
        )
    raw += b" " * (-len(raw) % 8)
    return len(raw).to_bytes(8, "little") + raw


def _with_checksums(header: bytes, sums: str) -> bytes:
    place = _place_of_crc(header)
    start, rest = header[:place], sums.encode() + header[place + len(_NO_CRC) + len(sums) :]
    crc = zlib.crc32((start + _NO_CRC.encode() + rest)[8:])
    return start + f"{crc:08x}".encode() + rest


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"))


def _place_of_crc(header: bytes) -> int:
    opening = json.dumps(_CRC_OPENING)[:-1].encode()
    return header.index(opening) + len(opening)


class Container:
    """A file that is open for reading. Use it in a `with` statement.

    Args:
        path: the file; without a suffix it gets `.safetensors`.

    Attributes:
        entries: the tensors by name.
        info: what Ecliptic wrote about the tree; empty if the file was made by others.

    Raises:
        FileFormatError: the file is no safetensors file, or is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = with_suffix(path, SUFFIX)
        self._file = open(self.path, "rb", buffering=0)  # noqa: SIM115
        self._map: mmap.mmap | None = None
        try:
            self.entries, self.info, self._sums = self._header()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "Container":
        return self

    def __exit__(self, *_: object) -> None:
        # A mapping lives as long as the arrays that look into it.
        self._file.close()

    def _broken(self, why: str) -> FileFormatError:
        return FileFormatError(
            f"The file {str(self.path)!r} {why}. It was cut off, damaged, or written by something "
            "else than `ecliptic.save` or safetensors: copy it again, or save again."
        )

    def _header(self) -> tuple[dict[str, Entry], dict[str, Any], dict[str, str]]:
        size = os.fstat(self._file.fileno()).st_size
        if size < 8:
            raise self._broken(f"has {size} bytes, fewer than any safetensors file")
        length = int.from_bytes(self._bytes(0, 8), "little")
        if length > min(size - 8, _LONGEST_HEADER):
            raise self._broken(
                f"says that its header has {length} bytes, but {size - 8} bytes follow, and a "
                f"header has {_LONGEST_HEADER} at most"
            )
        raw = bytes(self._bytes(8, length))
        try:
            header = json.loads(raw)
            metadata = dict(header.pop("__metadata__", {}).items())
            entries = {name: _entry(value, 8 + length) for name, value in header.items()}
            info = json.loads(metadata[_KEY]) if _KEY in metadata else {}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self._broken(
                f"has no readable header ({type(error).__name__}: {error})"
            ) from error
        self._check_places(entries, 8 + length, size)
        return entries, info, dict(zip(entries, self._checksums(raw, entries, info), strict=False))

    def _check_places(self, entries: dict[str, Entry], start: int, size: int) -> None:
        for entry in sorted(entries.values(), key=lambda e: (e.start, e.stop)):
            if entry.start != start:
                raise self._broken("has tensors that overlap, or bytes between them")
            start = entry.stop
        if start != size:
            raise self._broken(f"has {size} bytes, and its header speaks of {start}")

    def _checksums(self, raw: bytes, entries: dict[str, Entry], info: Any) -> list[str]:
        if not info and json.dumps(_CRC_OPENING)[1:-1].encode() not in raw:
            return []  # Made by others.
        try:
            number, text = info["format"], info["crc32"]
            crc, *sums = (text[i : i + len(_NO_CRC)] for i in range(0, len(text), len(_NO_CRC)))
            place = _place_of_crc(raw)
        except (KeyError, TypeError, ValueError) as error:
            raise self._broken("has a damaged header") from error
        known = zlib.crc32(raw[:place] + _NO_CRC.encode() + raw[place + len(_NO_CRC) :])
        if crc != f"{known:08x}" or len(sums) != len(entries):
            raise self._broken("has a damaged header: its checksum is wrong")
        if number != FORMAT:
            raise FileFormatError(
                f"The file {str(self.path)!r} has version {number!r} of Ecliptic's format, and "
                f"this version of Ecliptic reads {FORMAT}. Install a newer Ecliptic."
            )
        return sums

    def _bytes(self, start: int, length: int) -> np.ndarray:
        """Read bytes into memory of their own, aligned as XLA wants it."""
        memory = np.empty(length + _ALIGNMENT, np.uint8)
        first = -memory.__array_interface__["data"][0] % _ALIGNMENT  # (`ctypes` is slow.)
        data = memory[first : first + length]
        self._file.seek(start)
        done = 0
        while done < length:
            count = self._file.readinto(data[done:].data)
            if not count:
                raise self._broken(f"ends at byte {start + done}, while it is being read")
            done += count
        return data

    def host_dtype(self, name: str) -> np.dtype[Any]:
        """The dtype of a tensor as it lies in the file.

        Raises:
            FileFormatError: no dtype of NumPy lies like that.
        """
        dtype = _DTYPES[self.entries[name].dtype][0]
        if dtype is None:
            raise FileFormatError(
                f"The tensor {name!r} in {str(self.path)!r} has the packed dtype "
                f"{self.entries[name].dtype}, which NumPy has not. Leave it out with "
                "`filter_spec`, or convert it with the program that wrote it."
            )
        return _host_dtype(dtype)

    def read(self, name: str) -> np.ndarray:
        """Read one tensor into memory of its own.

        Raises:
            FileFormatError: the bytes are not those that were written.
        """
        entry, dtype = self.entries[name], self.host_dtype(name)
        data = self._bytes(entry.start, entry.stop - entry.start)
        if self.info and checksum(data) != self._sums[name]:
            raise self._broken(f"has a damaged tensor {name!r}: its checksum is wrong")
        if dtype == np.bool_ and data.size and data.max() > 1:
            raise self._broken(f"has a tensor {name!r} of booleans that are neither 0 nor 1")
        return data.view(dtype).reshape(entry.shape)

    def map(self, name: str) -> np.ndarray:
        """Look at one tensor in the file, of which nothing is read before it is used."""
        entry, dtype = self.entries[name], self.host_dtype(name)
        if entry.start == entry.stop:
            return np.zeros(entry.shape, dtype)
        if self._map is None:
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        data = np.frombuffer(self._map, np.uint8, entry.stop - entry.start, entry.start)
        return data.view(dtype).reshape(entry.shape)


@functools.cache
def _host_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(name)


def _entry(value: Any, data: int) -> Entry:
    dtype, shape, (start, stop) = value["dtype"], value["shape"], value["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*shape, start, stop)):
        raise ValueError("a shape or a place holds something else than non-negative integers")
    if math.prod(shape) * _DTYPES[dtype][1] != 8 * (stop - start):
        raise ValueError(f"a tensor of {dtype} and shape {shape} has {stop - start} bytes")
    return Entry(dtype, tuple(shape), data + start, data + stop)
