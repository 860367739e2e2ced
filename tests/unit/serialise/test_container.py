"""Files that are damaged or of another kind: one clear error, no memory for what is not there."""

import json
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from ecliptic.errors import FileFormatError, SerialisationError
from ecliptic.serialise import load, load_metadata, save
from ecliptic.serialise._container import Container
from tests.support.damage import FUZZ, survives
from tests.support.leaves import LEAVES, assert_same


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.safetensors"


def _write(path, header, data=b"", length=None):
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    length = len(text) if length is None else length
    path.write_bytes(length.to_bytes(8, "little") + text + data)


def _tensor(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


class TestDamaged:
    def test_each_damaged_file_is_refused(self, path):
        # `FUZZ=10000` tries as many. The weights are random, so that no change goes unnoticed.
        tree = {
            "x": np.random.default_rng(0).standard_normal(3000),
            "k": jax.random.key(1),
            **LEAVES,
        }
        save(path, tree, metadata={"rate": 0.1})

        def check(found):
            for name, leaf in tree.items():
                assert_same(found[name], leaf)

        assert survives(path, lambda: load(path), check, seed=0) == FUZZ

    def test_exchanged_blocks_are_noticed(self, path):
        save(path, np.arange(2048.0))
        data = path.read_bytes()
        start = len(data) - 4 * 4096
        path.write_bytes(
            data[:start] + data[start + 4096 : start + 8192] + data[start : start + 4096]
            + data[start + 8192 :]
        )  # fmt: skip
        with pytest.raises(FileFormatError, match="damaged tensor '': its checksum is wrong"):
            load(path)

    def test_a_changed_number_in_the_header_is_noticed(self, path):
        save(path, {"rate": 1.5}, metadata=12345)
        path.write_bytes(path.read_bytes().replace(b"12345", b"12346"))
        with pytest.raises(FileFormatError, match="damaged header: its checksum is wrong"):
            load_metadata(path)

    def test_a_removed_name_is_noticed(self, path):
        save(path, {"rate": 1.5})
        path.write_bytes(path.read_bytes().replace(b'"ecliptic"', b'"ecliptik"'))
        with pytest.raises(FileFormatError, match="damaged header"):
            load(path)


class TestForeign:
    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"", "has 0 bytes, fewer than any"),
            (b"1234567", "has 7 bytes"),
            (b"something else altogether", "says that its header has"),
            (b"\x02" + bytes(100), "has no readable header"),
            ((2**62).to_bytes(8, "little") + b"{}", "says that its header has 4611686018427387904"),
        ],
        ids=["empty", "short", "text", "binary", "huge"],
    )
    def test_it_is_named(self, path, data, message):
        path.write_bytes(data)
        with pytest.raises(
            FileFormatError, match=f"x.safetensors' {message}.*cut off, damaged, or"
        ):
            load(path)

    @pytest.mark.parametrize(
        "header",
        [
            b"[1]",
            b"1",
            b"\xff",
            b"[" * 100_000,
            {"a": 1},
            {"a": {}},
            {"a": _tensor("F33")},
            {"a": _tensor(shape=(-2,))},
            {"a": _tensor(shape=(True, 2))},
            {"a": _tensor(shape=(2.0,))},
            {"a": _tensor(shape="ab")},
            {"a": _tensor(shape=(3,))},
            {"a": _tensor(shape=(2**40, 2**40))},
            {"a": _tensor(offsets=(8, 0))},
            {"a": _tensor(offsets=(0,))},
            {"a": _tensor(offsets=(8, 16))},
            {"a": _tensor(), "b": _tensor()},
            {"a": _tensor(shape=(2**38,), offsets=(0, 2**40))},
            {"a": _tensor(), "__metadata__": []},
            {"a": _tensor(), "__metadata__": {"ecliptic": 1}},
            {"a": _tensor(), "__metadata__": {"ecliptic": "{"}},
            {"a": _tensor(), "__metadata__": {"ecliptic": "[1]"}},
            {"a": _tensor(), "__metadata__": {"ecliptic": '{"format":1}'}},
        ],
        ids=range(23),
    )
    def test_a_header_that_makes_no_sense_is_refused(self, path, header):
        _write(path, header, bytes(8))
        tracemalloc.start()
        try:
            with pytest.raises(FileFormatError):
                load(path)
            assert tracemalloc.get_traced_memory()[1] < 1 << 24
        finally:
            tracemalloc.stop()

    def test_a_packed_dtype_is_named(self, path):
        _write(path, {"a": _tensor("F4", (16,))}, bytes(8))
        with pytest.raises(FileFormatError, match="'a'.* packed dtype F4, .*filter_spec"):
            load(path)

    def test_booleans_that_are_none_are_refused(self, path):
        _write(path, {"a": _tensor("BOOL", (8,))}, bytes([2] * 8))
        with pytest.raises(FileFormatError, match="booleans that are neither 0 nor 1"):
            load(path)

    def test_a_newer_format_is_named(self, path, monkeypatch):
        monkeypatch.setattr("ecliptic.serialise._container.FORMAT", 2)
        save(path, [1])
        monkeypatch.undo()
        with pytest.raises(FileFormatError, match=r"has version 2 .* reads 1. Install a newer"):
            load(path)

    @pytest.mark.parametrize(
        "dtype", ["O", "|O", [["a", "O"]], "(9999999,)f8", "no such", 3, "float0"]
    )
    def test_a_record_of_a_wrong_dtype_is_refused(self, path, monkeypatch, dtype):
        stored = ({"kind": "numpy", "dtype": dtype}, np.zeros((2, 8), np.uint8))
        monkeypatch.setattr("ecliptic.serialise._save.encode", lambda leaf: stored)
        save(path, [1])
        monkeypatch.undo()
        with pytest.raises(FileFormatError, match=r"'\[0\]' has a record that cannot be read"):
            load(path)

    def test_a_record_of_an_unknown_generator_is_refused(self, path, monkeypatch):
        stored = ({"kind": "key", "implementation": "dice"}, np.zeros(2, np.uint32))
        monkeypatch.setattr("ecliptic.serialise._save.encode", lambda leaf: stored)
        save(path, [1])
        monkeypatch.undo()
        with pytest.raises(FileFormatError, match=r"'\[0\]' has a record that cannot be read"):
            load(path)


def test_files_of_other_programs_need_no_checksum(path):
    safetensors.numpy.save_file({"a": np.ones(2, "f4")}, path, {"format": "np"})
    assert_same(load(path)["a"], jnp.ones(2))


def test_more_names_than_the_format_has_room_for_are_refused(path, monkeypatch):
    monkeypatch.setattr("ecliptic.serialise._container._LONGEST_HEADER", 1000)
    with pytest.raises(SerialisationError, match="records of 100 arrays take .* has room for 1000"):
        save(path, [np.ones(1) for _ in range(100)])
    assert not path.exists()


def test_safetensors_takes_every_file(path):
    save(path, LEAVES)
    with safetensors.safe_open(path, "np") as f, Container(path) as ours:
        assert set(f.keys()) == set(ours.entries)
        for name, entry in ours.entries.items():
            if entry.dtype not in ("BF16", "F8_E4M3", "F8_E5M2"):
                np.testing.assert_array_equal(f.get_tensor(name), ours.read(name))
