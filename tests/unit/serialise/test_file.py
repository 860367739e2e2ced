"""Paths: their suffix, and that a file holds all or nothing."""

import os
import stat
from pathlib import Path

import jax.numpy as jnp
import pytest

from ecliptic.errors import SerialisationError
from ecliptic.serialise import tree_deserialise_leaves, tree_serialise_leaves


def _names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("given", "made"),
    [("model", "model.eqx"), ("model.eqx", "model.eqx"), ("model.v1.2", "model.v1.2")],
)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_without_a_suffix_gets_one(tmp_path, given, made, kind):
    tree_serialise_leaves(kind(tmp_path / given), [1.0])
    assert _names(tmp_path) == [made]
    assert tree_deserialise_leaves(kind(tmp_path / given), [0.0]) == [1.0]


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model\.eqx"):
        tree_deserialise_leaves(tmp_path / "model", [0.0])


def test_a_file_with_more_leaves_is_refused(tmp_path):
    tree_serialise_leaves(tmp_path / "model", [1.0, 2.0])
    with pytest.raises(
        SerialisationError, match=r"model'? goes on after the last leaf of `like`, at path '\[0\]'"
    ):
        tree_deserialise_leaves(tmp_path / "model", [0.0])
    with pytest.raises(SerialisationError, match="more leaves were written to it than the 0 of"):
        tree_deserialise_leaves(tmp_path / "model", [])


def test_a_failed_writing_leaves_the_old_file(tmp_path):
    tree_serialise_leaves(tmp_path / "model", [1.0, 2.0])

    def fail_at_second(f, x):
        if x == 4.0:
            raise ValueError("on purpose")
        f.write(b"half of it")

    with pytest.raises(SerialisationError, match=r"path '\[1\]': on purpose"):
        tree_serialise_leaves(tmp_path / "model", [3.0, 4.0], filter_spec=fail_at_second)
    assert _names(tmp_path) == ["model.eqx"]
    assert tree_deserialise_leaves(tmp_path / "model", [0.0, 0.0]) == [1.0, 2.0]


def test_the_old_file_is_whole_until_the_new_one_is(tmp_path):
    tree_serialise_leaves(tmp_path / "model", [1.0])
    seen = []

    def look(f, x):
        seen.append(tree_deserialise_leaves(tmp_path / "model", [0.0]))

    tree_serialise_leaves(tmp_path / "model", [2.0], filter_spec=look)
    assert seen == [[1.0]]


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "other").touch()
    tree_serialise_leaves(tmp_path / "model", [1.0])
    modes = [path.stat().st_mode for path in tmp_path.iterdir()]
    assert modes[0] == modes[1]


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "model.eqx"
    path.touch()
    path.chmod(0o640)
    tree_serialise_leaves(path, [1.0])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    tree_serialise_leaves(tmp_path / "real" / "model", [1.0])
    (tmp_path / "link.eqx").symlink_to(tmp_path / "real" / "model.eqx")
    tree_serialise_leaves(tmp_path / "link", [2.0])
    assert (tmp_path / "link.eqx").is_symlink()
    assert tree_deserialise_leaves(tmp_path / "real" / "model", [0.0]) == [2.0]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe.eqx")
    reader = os.open(tmp_path / "pipe.eqx", os.O_RDONLY | os.O_NONBLOCK)
    try:
        tree_serialise_leaves(tmp_path / "pipe", [1.0])
        assert os.read(reader, 6) == b"\x93NUMPY"
    finally:
        os.close(reader)


def test_an_open_file_stays_open(tmp_path):
    with open(tmp_path / "model", "w+b") as f:
        tree_serialise_leaves(f, jnp.ones(2))
        f.seek(0)
        assert tree_deserialise_leaves(f, jnp.zeros(2)).sum() == 2
        assert not f.closed
