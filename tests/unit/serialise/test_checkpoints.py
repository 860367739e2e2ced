"""Checkpoints of a training run: what is kept, what comes back, and where to."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import ecliptic as ec
from ecliptic import nn
from ecliptic.errors import MismatchError, MissingPackageError, SerialisationError
from ecliptic.serialise import Checkpoints
from tests.support.leaves import LEAVES, assert_same, blank

pytest.importorskip("orbax.checkpoint")


@pytest.fixture
def checkpoints(tmp_path):
    with Checkpoints(tmp_path / "run", asynchronous=False) as checkpoints:
        yield checkpoints


def test_each_leaf_comes_back(checkpoints):
    checkpoints.save(0, {**LEAVES, "function": jnp.tanh})
    like = {name: blank(leaf) for name, leaf in LEAVES.items()} | {"function": jnp.sin}
    loaded = checkpoints.restore(like)
    assert loaded.pop("function") is jnp.sin
    for name, leaf in LEAVES.items():
        assert_same(loaded[name], leaf)


def test_a_run_goes_on_to_the_last_bit(tmp_path):
    optimiser = optax.sgd(1e-2, momentum=0.9)

    @ec.filter_jit
    def step(run):
        key, used = jax.random.split(run["key"])
        x = jax.random.normal(used, (4, 2))

        def loss(model):
            return jnp.mean(jnp.square(jax.vmap(model)(x)))

        gradients = ec.filter_grad(loss)(run["model"])
        updates, state = optimiser.update(gradients, run["optimiser"])
        return {
            "model": ec.apply_updates(run["model"], updates),
            "optimiser": state,
            "key": key,
            "step": run["step"] + 1,
        }

    def start(seed):
        model = nn.MLP(2, 1, 4, 1, key=jax.random.key(seed))
        state = optimiser.init(ec.filter(model, ec.is_inexact_array))
        key, number = jax.random.key(seed), jnp.zeros((), jnp.int32)
        return {"model": model, "optimiser": state, "key": key, "step": number}

    run = start(0)
    with Checkpoints(tmp_path / "run", keep=1, every=2) as checkpoints:
        for number in range(1, 4):
            run = step(run)
            # Steps that are not divisible are left out.
            assert checkpoints.save(number, run) == (number == 2)
    with Checkpoints(tmp_path / "run") as checkpoints:
        assert checkpoints.latest == 2
        again = checkpoints.restore(start(1))
    again = step(again)
    for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(run), strict=True):
        if not callable(one):
            assert_same(one, other)


class TestDevices:
    def test_an_array_goes_where_the_skeleton_has_it(self, checkpoints):
        mesh = Mesh(np.array(jax.devices()), ("x",))
        split = NamedSharding(mesh, PartitionSpec("x"))
        whole = NamedSharding(mesh, PartitionSpec())
        keys = jax.random.split(jax.random.key(0), 4)
        tree = {"a": jnp.arange(8.0), "small": jnp.arange(8, dtype=jnp.int4), "keys": keys}
        checkpoints.save(0, jax.device_put(tree, split))
        for sharding in (split, whole):
            like = {
                name: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)
                for name, x in tree.items()
            }
            loaded = checkpoints.restore(like)
            for name, leaf in tree.items():
                assert loaded[name].sharding.is_equivalent_to(sharding, 1)
                assert_same(loaded[name], leaf)
        assert not checkpoints.restore(jax.tree.map(jnp.zeros_like, tree))["a"].committed


class TestKept:
    def test_the_last_and_the_best_are_kept(self, tmp_path):
        for mode, kept in (("min", (1, 3, 4)), ("max", (0, 3, 4))):
            folder = tmp_path / mode
            with Checkpoints(folder, keep=2, best="x", mode=mode) as checkpoints:
                for step, value in enumerate([5.0, 1.0, 2.0, 3.0, 4.0]):
                    checkpoints.save(step, [step], metrics={"x": value})
                checkpoints.wait()
                assert checkpoints.steps == kept
                assert checkpoints.best == kept[0]
                assert checkpoints.restore([0], checkpoints.best) == [kept[0]]

    def test_an_array_that_is_changed_later_is_saved_as_it_was(self, tmp_path):
        x = np.zeros(100_000)
        with Checkpoints(tmp_path / "run") as checkpoints:
            checkpoints.save(0, [x])
            x[:] = 1
            assert checkpoints.restore([x])[0].sum() == 0

    def test_metadata(self, checkpoints):
        checkpoints.save(0, [1], metadata={"width": 8})
        assert checkpoints.metadata() == {"width": 8}


class TestRefused:
    def test_other_leaves(self, checkpoints):
        checkpoints.save(0, {"a": jnp.ones(2), "b": jnp.ones(3), "c": 1})
        like = {"a": jnp.ones(3), "b": jnp.zeros(3), "d": 1}
        with pytest.raises(MismatchError, match="in the checkpoint of step 0 are not those"):
            checkpoints.restore(like)
        tree, report = checkpoints.restore(like, strict=False, rename={"['c']": "['d']"})
        assert (tree["b"].sum(), tree["d"]) == (3, 1)
        assert [d.path for d in report.reshaped] == ["['a']"]

    def test_a_step_that_is_there_or_not_there(self, checkpoints):
        with pytest.raises(SerialisationError, match="There is no checkpoint in .* steps \\[\\]"):
            checkpoints.restore([0])
        checkpoints.save(3, [1])
        with pytest.raises(SerialisationError, match="is a checkpoint of step 3 in .* already"):
            checkpoints.save(3, [1])
        with pytest.raises(SerialisationError, match="no checkpoint of step 4 in .* steps \\[3\\]"):
            checkpoints.restore([0], 4)

    def test_a_leaf_without_a_value(self, checkpoints):
        with pytest.raises(SerialisationError, match=r"leaf at path '\[0\]': it is a `jax.Shape"):
            checkpoints.save(0, [jax.ShapeDtypeStruct((), jnp.float32)])
        with pytest.raises(SerialisationError, match=r"leaf at path '\[0\]': it is being traced"):
            jax.jit(lambda x: checkpoints.save(0, [x]))(jnp.ones(2))

    def test_a_missing_metric(self, tmp_path):
        with Checkpoints(tmp_path / "run", best="loss") as checkpoints:
            with pytest.raises(SerialisationError, match="goes by 'loss', but `metrics` has"):
                checkpoints.save(0, [1], metrics={"accuracy": 1.0})

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"keep": 0}, "keep=0, and keeps one at least"),
            ({"mode": "least"}, "mode='least', which is neither"),
            ({"every": 0}, "every=0"),
        ],
    )
    def test_options_that_make_no_sense(self, tmp_path, options, message):
        with pytest.raises(SerialisationError, match=message):
            Checkpoints(tmp_path, **options)

    def test_a_missing_package(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "orbax.checkpoint", None)
        with pytest.raises(MissingPackageError, match="needs the package `orbax-checkpoint`"):
            Checkpoints(tmp_path)
