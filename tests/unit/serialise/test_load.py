"""Loading: each kind of leaf, by name, in part, onto devices, and alone."""

import enum

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import ecliptic as ec
from ecliptic import nn
from ecliptic.errors import MismatchError, SerialisationError
from ecliptic.serialise import load, save
from tests.support.leaves import LEAVES, WIDE, assert_same, blank


class Rank(enum.IntEnum):
    FIRST = 1
    SECOND = 2


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A file with all leaves of the table."""
    path = tmp_path_factory.mktemp("load") / "everything"
    save(path, LEAVES)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x"


class TestKinds:
    def test_each_leaf_comes_back_in_a_skeleton(self, everything):
        like = {name: blank(leaf) for name, leaf in LEAVES.items()}
        loaded = load(everything, like)
        for name, leaf in LEAVES.items():
            assert_same(loaded[name], leaf)

    def test_each_leaf_comes_back_alone(self, everything):
        loaded = load(everything)
        for name, leaf in LEAVES.items():
            assert_same(loaded[name], leaf)

    def test_a_skeleton_needs_no_values(self, path):
        tree = {k: v for k, v in LEAVES.items() if isinstance(v, jax.Array)}
        save(path, tree)
        loaded = load(path, jax.eval_shape(lambda: tree))
        for name, leaf in tree.items():
            assert_same(loaded[name], leaf)

    def test_wide_dtypes_come_back_where_they_are_enabled(self, path):
        with jax.enable_x64(True):
            tree = {dtype: jnp.ones(2, dtype) for dtype in WIDE}
            save(path, tree)
            for loaded in (load(path, tree), load(path)):
                for name, leaf in tree.items():
                    assert_same(loaded[name], leaf)

    def test_without_a_skeleton_what_jax_cannot_hold_is_numpys(self, path):
        with jax.enable_x64(True):
            save(path, [jnp.ones(2, "float64")])
        assert_same(load(path)[0], np.ones(2))

    def test_in_a_skeleton_wide_dtypes_need_to_be_enabled(self, path):
        save(path, [np.ones(2)])
        with pytest.raises(SerialisationError, match=r"'\[0\]'.*64 bits are enabled"):
            load(path, [jax.ShapeDtypeStruct((2,), np.float64)])

    def test_the_skeleton_says_whose_an_array_is(self, path):
        save(path, [jnp.ones(2), np.ones(2, "f4"), np.float32(1)])
        loaded = load(path, [np.zeros(2, "f4"), jnp.zeros(2), jnp.zeros(())])
        assert [type(x) is np.ndarray for x in loaded] == [True, False, False]

    def test_an_enumeration_is_of_the_class_in_the_skeleton(self, path):
        save(path, [Rank.SECOND])
        assert load(path, [Rank.FIRST])[0] is Rank.SECOND
        assert load(path) == {0: 2}

    def test_numpy_arrays_can_be_written_to(self, path):
        save(path, [np.zeros(3), np.zeros(3)])
        loaded = load(path, [np.ones(3), np.ones(3)])
        loaded[0][:] = 2
        assert loaded[1].sum() == 0

    def test_a_function_is_taken_from_the_skeleton(self, path, getkey):
        model = nn.MLP(2, 2, 4, 1, key=getkey())
        save(path, model)
        like = nn.MLP(2, 2, 4, 1, key=getkey())
        assert ec.tree_equal(load(path, like), model)

    def test_the_whole_tree_can_be_one_leaf(self, path):
        save(path, jnp.ones(3))
        assert load(path).sum() == 3
        assert load(path, jnp.zeros(3)).sum() == 3


class TestShared:
    def test_a_shared_array_is_shared_again(self, path):
        x = jnp.ones(3)
        save(path, {"a": x, "b": [x]})
        for loaded in (load(path), load(path, {"a": jnp.zeros(3), "b": [jnp.zeros(3)]})):
            assert loaded["a"] is loaded["b"][0]

    def test_not_with_an_array_of_another_kind(self, path):
        x = np.ones(30, "f4")
        save(path, [x, x])
        ours, theirs = load(path, [jnp.zeros(30), np.zeros(30, "f4")])
        theirs[:] = 5
        assert ours.sum() == 30

    def test_any_of_them_can_be_loaded(self, path):
        x = jnp.ones(3)
        save(path, {"a": x, "b": x})
        tree, _ = load(path, {"b": jnp.zeros(3)}, strict=False)
        assert tree["b"].sum() == 3


class TestDevices:
    def test_an_array_goes_where_the_skeleton_has_it(self, path):
        mesh = Mesh(np.array(jax.devices()), ("x",))
        split = NamedSharding(mesh, PartitionSpec("x"))
        tree = {"a": jnp.arange(8.0), "k": jax.random.split(jax.random.key(0), 4)}
        save(path, tree)
        shapes = {
            name: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=split) for name, x in tree.items()
        }
        for like in (shapes, jax.device_put(tree, split)):
            loaded = load(path, like)
            for name, leaf in tree.items():
                assert loaded[name].sharding == split
                assert_same(loaded[name], leaf)

    def test_a_sharded_array_is_saved_whole(self, path):
        mesh = Mesh(np.array(jax.devices()), ("x",))
        x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, PartitionSpec("x")))
        save(path, x)
        assert_same(load(path), jnp.arange(8.0))

    def test_a_loaded_array_can_be_donated(self, path):
        save(path, jnp.arange(1000.0))
        x = load(path)
        y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
        np.testing.assert_array_equal(y, np.arange(1000.0) + 1)

    def test_a_tree_in_pieces(self, path, monkeypatch):
        monkeypatch.setattr("ecliptic.serialise._load._CHUNK", 100)
        tree = [jnp.full(20, i) for i in range(10)]
        save(path, tree)
        for one, other in zip(load(path, tree), tree, strict=True):
            assert_same(one, other)


class TestNames:
    def test_the_order_does_not_matter(self, path):
        class Old(ec.Module):
            a: jax.Array
            b: jax.Array

        class New(ec.Module):
            b: jax.Array
            a: jax.Array

        save(path, Old(jnp.ones(2), jnp.zeros(2)))
        assert load(path, New(jnp.ones(2), jnp.zeros(2))).a.sum() == 2

    def test_all_differences_are_reported_by_path(self, path):
        save(
            path,
            {"same": 1.0, "gone": np.ones(2), "was": jnp.ones(3), "shape": jnp.ones(2), "t": 1},
        )
        like = {"same": 0.0, "new": 1j, "now": jnp.ones(3), "shape": jnp.ones(3), "t": 1.0}
        with pytest.raises(MismatchError) as error:
            load(path, like)
        report = error.value.report
        assert report.loaded == ("['same']",)
        assert set(report.missing) == {"['new']", "['now']"}
        assert set(report.extra) == {"['gone']", "['was']"}
        assert report.renamed == (("['was']", "['now']"),)
        assert [str(d) for d in report.reshaped] == [
            "['shape']: float32[2] in the file, float32[3] in `like`"
        ]
        assert [str(d) for d in report.retyped] == ["['t']: int in the file, float in `like`"]
        for text in (
            "look renamed, for they have the same shape and dtype (1):\n    ['was'] in the file, ",
            "missing in the file (1):\n    ['new']",
            "extra in the file (1):\n    ['gone']",
            "of another shape (1):\n    ['shape']",
            "of another type (1):\n    ['t']",
            """pass `rename={"['was']": "['now']"}`""",
        ):
            assert text in str(error.value)

    def test_what_fits_is_loaded_if_asked(self, path):
        save(path, {"a": 1.0, "b": jnp.ones(2)})
        like = {"a": 0.0, "b": jnp.zeros(3), "c": "kept"}
        tree, report = load(path, like, strict=False)
        assert tree["a"] == 1.0
        assert tree["b"] is like["b"]
        assert tree["c"] == "kept"
        assert not report.complete

    def test_a_complete_report(self, path):
        save(path, {"a": 1.0})
        tree, report = load(path, {"a": 0.0}, strict=False)
        assert tree == {"a": 1.0}
        assert report.complete
        assert str(report) == ""

    def test_a_long_list_is_cut(self, path):
        save(path, [])
        with pytest.raises(MismatchError, match=r"missing in the file \(50\)(.|\n)*… and 30 more"):
            load(path, [0.0] * 50)

    def test_a_function_where_the_file_has_a_number_is_a_difference(self, path):
        save(path, [1.0])
        with pytest.raises(MismatchError, match=r"\[0\]: float in the file, jax\.numpy\.tanh in"):
            load(path, [jnp.tanh])

    def test_other_functions_and_static_fields_are_noted(self, path, getkey):
        save(path, [nn.Lambda(jnp.tanh), nn.LayerNorm(3, eps=1e-3)])
        _, report = load(path, [nn.Lambda(jnp.sin), nn.LayerNorm(3)], strict=False)
        assert report.complete
        assert report.notes == (
            "[0].fn: jax.numpy.tanh when it was saved, jax.numpy.sin in `like`",
            "[1].eps: 0.001 when it was saved, 1e-05 in `like`",
        )

    @pytest.mark.parametrize(
        "rename",
        [
            {"['old']": "['new']"},
            {"['old'][0]": "['new'][0]", "['old'][1].weight": "['new'][1].weight"},
            lambda name: name.replace("old", "new"),
        ],
    )
    def test_leaves_are_renamed(self, path, rename, getkey):
        layer = nn.Linear(2, 2, use_bias=False, key=getkey())
        save(path, {"old": [1.0, layer]})
        like = {"new": [0.0, nn.Linear(2, 2, use_bias=False, key=getkey())]}
        assert ec.tree_equal(load(path, like, rename=rename), {"new": [1.0, layer]})

    def test_a_tree_is_moved_down_and_up(self, path):
        save(path, {"a": 1.0})
        assert load(path, [{"a": 0.0}], rename={"": "[0]"}) == [{"a": 1.0}]
        save(path, [{"a": 1.0}])
        assert load(path, {"a": 0.0}, rename={"[0]": ""}) == {"a": 1.0}

    def test_none_leaves_a_leaf_out(self, path):
        save(path, {"a": 1.0, "b": 2.0})
        assert load(path, {"a": 0.0}, rename={"['b']": None}) == {"a": 1.0}

    def test_a_name_that_is_not_there_is_refused(self, path):
        save(path, {"a": 1.0})
        with pytest.raises(SerialisationError, match=r"no leaf in the file has .*\['x'\].* The"):
            load(path, {"a": 0.0}, rename={"['x']": "['a']"})

    def test_two_leaves_of_one_new_name_are_refused(self, path):
        save(path, {"a": 1.0, "b": 2.0})
        with pytest.raises(SerialisationError, match=r"makes \"\['a'\]\" both of"):
            load(path, {"a": 0.0}, rename={"['b']": "['a']"})


class TestParts:
    def test_a_part_is_loaded_and_the_rest_kept(self, path):
        save(path, {"a": [1.0, jnp.ones(2)], "b": 3.0})
        like = {"a": [0.0, jnp.zeros(2)], "b": 0.0}
        for spec in ("['a'].**", {"a": True, "b": False}):
            loaded = load(path, like, filter_spec=spec)
            assert (loaded["a"][0], loaded["b"]) == (1.0, 0.0)
        assert load(path, like, filter_spec=ec.is_array)["a"][0] == 0.0

    def test_only_what_is_loaded_is_read(self, path):
        save(path, {"a": np.ones(2000), "b": np.ones(2000)})
        file = path.with_suffix(".safetensors")
        data = bytearray(file.read_bytes())
        data[-1] ^= 1  # The end of `b`.
        file.write_bytes(data)
        assert load(file, filter_spec="['a']")["a"].sum() == 2000
        with pytest.raises(SerialisationError, match="damaged tensor"):
            load(file)

    def test_alone_only_patterns_are_taken(self, path):
        save(path, [1])
        with pytest.raises(SerialisationError, match="Without `like`, `filter_spec` is a pattern"):
            load(path, filter_spec=ec.is_array)

    def test_a_mapped_array_looks_into_the_file(self, path):
        x, z = np.arange(5000.0), np.ones(3, complex)
        save(path, {"x": x, "z": z, "k": jax.random.key(0), "n": 1, "e": np.zeros(0)})
        loaded = load(path, mmap=True)
        assert not loaded["x"].flags.writeable
        assert not loaded["x"].flags.owndata
        for name, leaf in {"x": x, "z": z, "n": 1, "e": np.zeros(0)}.items():
            assert_same(loaded[name], leaf)
        save(path, {"x": x + 1})
        np.testing.assert_array_equal(loaded["x"], x)

    def test_in_a_skeleton_numpy_arrays_are_mapped(self, path):
        save(path, [np.ones(3), jnp.ones(3)])
        one, other = load(path, [np.zeros(3), jnp.zeros(3)], mmap=True)
        assert not one.flags.writeable
        assert other.sum() == 3


class TestOtherFiles:
    def test_a_file_of_another_program_is_loaded(self, path):
        weights = {"layers.0.weight": np.ones((2, 3), "f4"), "step": np.array(3, "i8")}
        safetensors.numpy.save_file(weights, path)
        path.rename(path.with_suffix(".safetensors"))
        found = load(path)
        assert set(found) == {"layers", "step"}
        assert isinstance(found["layers"]["0"]["weight"], jax.Array)
        assert isinstance(found["step"], np.ndarray)
        like = [jnp.zeros((2, 3))]
        loaded = load(path, like, rename={"layers.0.weight": "[0]", "step": None})
        assert loaded[0].sum() == 6

    def test_names_that_are_no_paths_stay_whole(self, path):
        file = path.with_suffix(".safetensors")
        safetensors.numpy.save_file({"a b[": np.ones(1), "a": np.ones(1)}, file)
        assert set(load(path)) == {"a b[", "a"}
        safetensors.numpy.save_file({"a": np.ones(1), "a.b": np.ones(1)}, file)
        assert set(load(path)) == {"a", "a.b"}

    def test_a_missing_file_is_a_missing_file(self, path):
        with pytest.raises(FileNotFoundError, match=r"x\.safetensors"):
            load(path)
