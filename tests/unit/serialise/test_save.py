"""Saving: what is in the file, what is not, and that a file is old or new and never half."""

import json
import os
import signal
import stat
import subprocess
import sys
import time

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import ecliptic as ec
from ecliptic import nn
from ecliptic.errors import SerialisationError
from ecliptic.serialise import load, load_metadata, save
from tests.support.leaves import LEAVES, assert_same
from tests.support.project import SRC

KILLS = int(os.environ.get("KILLS", "8"))

# A process that forks children, which save until they are killed. (To start each from nothing takes
# seconds. No device is in use: the arrays are NumPy's.)
KILLED = """
import os, sys, numpy as np
from ecliptic.serialise import save
for line in sys.stdin:
    child = os.fork()
    if not child:
        n = int(line)
        while True:
            save(sys.argv[1], {"n": n, "x": np.full(300_000, n), "y": np.full(7, n)})
    print(child, flush=True)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


def _header(path):
    data = path.read_bytes()
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])


class TestFile:
    def test_a_path_without_a_suffix_gets_one(self, tmp_path):
        save(tmp_path / "model", [1.0])
        save(str(tmp_path / "other.tensors"), [1.0])
        assert sorted(p.name for p in tmp_path.iterdir()) == ["model.safetensors", "other.tensors"]

    def test_safetensors_reads_the_arrays_by_their_paths(self, tmp_path, getkey):
        model = nn.MLP(2, 2, 4, 1, key=getkey())
        save(tmp_path / "model", model)
        found = safetensors.numpy.load_file(tmp_path / "model.safetensors")
        assert set(found) == {f"layers[{i}].{n}" for i in (0, 1) for n in ("weight", "bias")}
        np.testing.assert_array_equal(found["layers[1].weight"], model.layers[1].weight)

    def test_a_complex_array_is_real_numbers_to_other_programs(self, tmp_path):
        save(tmp_path / "x", {"z": jnp.array([1 + 2j])})
        found = safetensors.numpy.load_file(tmp_path / "x.safetensors")
        assert found["['z']"].tolist() == [[1.0, 2.0]]

    def test_the_same_tree_gives_the_same_bytes(self, tmp_path):
        save(tmp_path / "one", LEAVES)
        save(tmp_path / "two", LEAVES)
        assert (tmp_path / "one.safetensors").read_bytes() == (
            tmp_path / "two.safetensors"
        ).read_bytes()

    def test_shared_arrays_are_written_once(self, tmp_path):
        x, y = jnp.ones(1000), np.ones(1000)
        save(tmp_path / "model", {"a": x, "b": [x, y], "c": y})
        assert set(_header(tmp_path / "model.safetensors")) == {
            "__metadata__",
            "['a']",
            "['b'][1]",
        }

    def test_equal_arrays_that_are_not_shared_are_written_both(self, tmp_path):
        save(tmp_path / "model", [np.ones(3), np.ones(3)])
        assert len(_header(tmp_path / "model.safetensors")) == 3

    def test_a_part_is_saved_by_pattern_or_by_specification(self, tmp_path):
        tree = {"a": [jnp.ones(1), 2.0], "b": jnp.ones(2)}
        for number, (spec, expected) in enumerate(
            [
                ("['a'].**", ["['a'][0]", "['a'][1]"]),
                (ec.is_array, ["['a'][0]", "['b']"]),
                ({"a": False, "b": True}, ["['b']"]),
            ]
        ):
            save(tmp_path / str(number), tree, filter_spec=spec)
            assert sorted(load_metadata(tmp_path / str(number)).leaves) == expected

    def test_a_node_can_be_a_leaf(self, tmp_path):
        left = save(tmp_path / "x", [{"a": 1}, 2], is_leaf=lambda x: isinstance(x, dict))
        assert left == {"[0]": "an object of type builtins.dict"}


class TestMetadata:
    def test_what_was_given_is_read_back(self, tmp_path):
        metadata = {"sizes": [1, 2], "rate": 0.1, "name": "é", "none": None}
        save(tmp_path / "model", [1.0], metadata=metadata)
        assert load_metadata(tmp_path / "model").metadata == metadata

    def test_leaves_are_described(self, tmp_path):
        save(tmp_path / "x", {"a": jnp.ones((2, 3)), "b": 1, "k": jax.random.key(0)})
        assert load_metadata(tmp_path / "x").leaves == {
            "['a']": "float32[2, 3]",
            "['b']": "int",
            "['k']": "key<threefry2x32>",
        }

    def test_static_fields_and_classes_are_described(self, tmp_path, getkey):
        save(tmp_path / "x", [nn.Linear(2, 3, key=getkey())])
        static = load_metadata(tmp_path / "x").static["[0]"]
        assert static["class"].endswith("Linear")
        assert static["static"] == {"in_features": 2, "out_features": 3, "use_bias": True}

    def test_versions_are_written(self, tmp_path):
        save(tmp_path / "x", [])
        assert load_metadata(tmp_path / "x").versions["jax"] == jax.__version__

    def test_what_json_cannot_hold_is_refused(self, tmp_path):
        with pytest.raises(SerialisationError, match="`metadata` can hold what JSON can"):
            save(tmp_path / "x", [], metadata={"a": jnp.ones(2)})
        assert list(tmp_path.iterdir()) == []

    def test_only_the_header_is_read(self, tmp_path):
        save(tmp_path / "x", jnp.ones(10_000), metadata=1)
        path = tmp_path / "x.safetensors"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        assert load_metadata(path).metadata == 1


class TestWhatIsNotSaved:
    def test_it_is_named(self, tmp_path):
        assert save(tmp_path / "x", {"f": jnp.tanh, "o": object(), "n": None, "x": 1}) == {
            "['f']": "jax.numpy.tanh",
            "['o']": "an object of type builtins.object",
        }
        assert set(load_metadata(tmp_path / "x").not_saved) == {"['f']", "['o']"}

    @pytest.mark.parametrize(
        ("leaf", "message"),
        [
            (jax.ShapeDtypeStruct((), jnp.float32), "it is a `jax.ShapeDtypeStruct`"),
            (np.array([1, "a"], object), "only be written by pickling"),
        ],
    )
    def test_an_array_that_cannot_be_saved_is_an_error(self, tmp_path, leaf, message):
        with pytest.raises(SerialisationError, match=rf"leaf at path \"?'?\['a'\]\[0\].*{message}"):
            save(tmp_path / "x", {"a": [leaf]})
        assert list(tmp_path.iterdir()) == []

    def test_a_traced_array_is_an_error(self, tmp_path):
        with pytest.raises(SerialisationError, match="it is being traced"):
            jax.jit(lambda x: save(tmp_path / "x", [x]))(1.0)

    def test_a_deleted_array_is_named(self, tmp_path):
        x = jnp.ones(2)
        x.delete()
        with pytest.raises(SerialisationError, match=r"'\[0\]'.*deleted"):
            save(tmp_path / "x", [x])

    def test_two_leaves_of_one_name_are_refused(self, tmp_path):
        @jax.tree_util.register_pytree_with_keys_class
        class Twice:
            def tree_flatten_with_keys(self):
                key = jax.tree_util.GetAttrKey("a")
                return [(key, 1), (key, 2)], None

            @classmethod
            def tree_unflatten(cls, _, children):
                return cls()

        with pytest.raises(SerialisationError, match="Two leaves have the path 'a'"):
            save(tmp_path / "x", Twice())


class TestAtomic:
    def test_a_failed_save_leaves_the_old_file_and_nothing_else(self, tmp_path, monkeypatch):
        save(tmp_path / "x", [1.0])

        def fail(*_):
            raise OSError("no space left")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="no space left"):
            save(tmp_path / "x", [2.0])
        assert [p.name for p in tmp_path.iterdir()] == ["x.safetensors"]
        assert load(tmp_path / "x", [0.0]) == [1.0]

    def test_permissions_and_links_stay(self, tmp_path):
        save(tmp_path / "real", [1.0])
        (tmp_path / "real.safetensors").chmod(0o640)
        (tmp_path / "link.safetensors").symlink_to(tmp_path / "real.safetensors")
        save(tmp_path / "link", [2.0])
        assert (tmp_path / "link.safetensors").is_symlink()
        assert stat.S_IMODE((tmp_path / "real.safetensors").stat().st_mode) == 0o640
        assert load(tmp_path / "real", [0.0]) == [2.0]

    def test_a_new_file_has_the_permissions_of_any_new_file(self, tmp_path):
        (tmp_path / "other").touch()
        save(tmp_path / "x", [1.0])
        assert len({path.stat().st_mode for path in tmp_path.iterdir()}) == 1

    def test_a_process_that_is_killed_leaves_the_old_or_the_new_file(self, tmp_path):
        # `KILLS=100` does it a hundred times.
        path = tmp_path / "x.safetensors"
        save(path, {"n": 0, "x": np.full(300_000, 0), "y": np.full(7, 0)})
        random = np.random.default_rng(0)
        parent = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", KILLED, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SRC.parent)},
        )
        with parent:
            for number in range(1, KILLS + 1):
                parent.stdin.write(f"{number}\n")
                parent.stdin.flush()
                child = int(parent.stdout.readline())
                time.sleep(random.uniform(0, 0.05))
                os.kill(child, signal.SIGKILL)
                assert parent.stdout.readline() == "gone\n"
                found = load(path)
                assert set(found) == {"n", "x", "y"}
                assert (found["x"] == found["n"]).all()
                assert (found["y"] == found["n"]).all()
            parent.stdin.close()
        assert KILLS < 5 or found["n"] > 0


def test_a_model_of_equinox_is_saved_and_loaded(tmp_path, getkey):
    model = equinox.nn.MLP(2, 2, 4, 2, key=getkey())
    save(tmp_path / "x", model)
    ours = load(tmp_path / "x", nn.MLP(2, 2, 4, 2, key=getkey()))
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(model), strict=True):
        if not callable(one):
            assert_same(one, other)
