"""Trees as flat dictionaries, renamed, transposed and cast; and rules for PyTorch's weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic import nn
from ecliptic.errors import MismatchError, SerialisationError
from ecliptic.serialise import (
    TorchRule,
    from_state_dict,
    from_torch,
    register_torch_rule,
    to_state_dict,
)
from tests.support.leaves import LEAVES, assert_same, blank


class TestToStateDict:
    def test_leaves_by_path_as_they_are(self, getkey):
        model = nn.MLP(2, 2, 4, 1, key=getkey())
        found = to_state_dict(model)
        assert set(found) == {f"layers[{i}].{n}" for i in (0, 1) for n in ("weight", "bias")}
        assert found["layers[1].weight"] is model.layers[1].weight

    def test_a_part(self, getkey):
        model = nn.MLP(2, 2, 4, 1, key=getkey())
        assert set(to_state_dict(model, filter_spec="**.bias")) == {
            "layers[0].bias",
            "layers[1].bias",
        }


class TestFromStateDict:
    def test_each_leaf_comes_back(self):
        like = {name: blank(leaf) for name, leaf in LEAVES.items()}
        loaded = from_state_dict(like, to_state_dict(LEAVES))
        for name, leaf in LEAVES.items():
            if name != "JAX weak":
                assert_same(loaded[name], leaf)

    def test_the_kind_of_the_skeleton_is_kept(self):
        like = [jnp.zeros(2), np.zeros(2, "f4"), np.float32(0)]
        given = {"[0]": np.ones(2, "f4"), "[1]": jnp.ones(2), "[2]": jnp.ones(())}
        loaded = from_state_dict(like, given)
        assert [type(x) for x in loaded[1:]] == [np.ndarray, np.float32]
        assert isinstance(loaded[0], jax.Array)

    def test_arrays_that_can_be_changed_are_copied(self):
        x, y = np.ones(1000, "f4"), np.ones(1000, "f4")
        loaded = from_state_dict([jnp.zeros(1000), np.zeros(1000, "f4")], {"[0]": x, "[1]": y})
        x[:] = y[:] = 5
        assert loaded[0].sum() == loaded[1].sum() == 1000

    def test_differences_are_reported(self):
        like = {"a": jnp.zeros(2), "b": jnp.zeros(3), "c": 1}
        given = {"['a']": np.zeros(2), "['b']": jnp.zeros(4), "x": 1}
        with pytest.raises(MismatchError, match="leaves in `state_dict` are not those") as error:
            from_state_dict(like, given)
        report = error.value.report
        assert [d.path for d in report.retyped] == ["['a']"]
        assert [d.path for d in report.reshaped] == ["['b']"]
        assert report.renamed == (("x", "['c']"),)
        loaded, _ = from_state_dict(like, given, strict=False)
        assert loaded["c"] == 1

    def test_names_and_axes_are_changed(self, getkey):
        like = nn.Linear(2, 3, key=getkey())
        kernel = np.arange(6, dtype="f4").reshape(2, 3)
        given = {"dense.kernel": kernel, "dense.bias": np.ones(3, "f4")}
        rename = {"dense.kernel": "weight", "dense": ""}
        for transpose in ({"weight": (1, 0)}, lambda path, x: x.T if path == "weight" else x):
            loaded = from_state_dict(like, given, rename=rename, transpose=transpose)
            np.testing.assert_array_equal(loaded.weight, kernel.T)

    def test_axes_that_are_not_there_are_refused(self):
        with pytest.raises(SerialisationError, match=r"cannot order the axes of 'a', of shape"):
            from_state_dict([], {"a": np.ones(2)}, transpose={"a": (1, 0)})
        with pytest.raises(SerialisationError, match="has 'b', which no path matches"):
            from_state_dict([], {"a": np.ones(2)}, transpose={"b": (1, 0)})

    def test_dtypes_are_changed_if_asked(self):
        like = [jnp.zeros(2, jnp.bfloat16), jnp.zeros(2, jnp.complex64), jnp.zeros(2, int)]
        given = {"[0]": np.ones(2), "[1]": np.ones(2), "[2]": jnp.ones(2, int)}
        loaded = from_state_dict(like, given, cast=True)
        assert [x.dtype for x in loaded] == [jnp.bfloat16, jnp.complex64, jnp.int32]
        for wrong in (np.ones(2), np.ones(2, "c8")):
            with pytest.raises(MismatchError, match="of another type"):
                from_state_dict(like, {**given, "[2]": wrong}, cast=True)
        with pytest.raises(MismatchError, match="of another type"):
            from_state_dict(like, {**given, "[0]": np.ones(2, "c8")}, cast=True)


class Scale(ec.Module):
    factor: jax.Array
    name: str = "scale"


class TestFromTorch:
    # The layers are tested with PyTorch itself, in `tests/torch`.
    def test_a_model_of_ones_own_goes_by_the_names_of_its_attributes(self):
        like = {"encoder": [Scale(jnp.zeros(2))]}
        loaded = from_torch(like, {"encoder.0.factor": np.ones(2)})
        assert_same(loaded["encoder"][0].factor, jnp.ones(2))

    def test_a_rule_holds_for_subclasses(self):
        class Base(Scale):
            pass

        class Below(Base):
            pass

        register_torch_rule(Base, TorchRule(lambda layer, w: {"factor": w["w"] * 2}))
        loaded = from_torch([Below(jnp.zeros(2)), Scale(jnp.zeros(2))], {
            "0.w": np.ones(2, "f4"), "1.factor": np.ones(2, "f4"),
        })  # fmt: skip
        assert loaded[0].factor.sum() == 4
        assert loaded[1].factor.sum() == 2
        with pytest.raises(MismatchError, match=r"missing in the file \(1\):\n    \[0\].factor"):
            from_torch([Below(jnp.zeros(2))], {"0.x": np.ones(2)})

    def test_batch_norm_needs_its_state(self):
        model, state = nn.make_with_state(nn.BatchNorm)(2, "batch", mode="batch")
        one = np.ones(2, "f4")
        weights = {"weight": one, "bias": one, "running_mean": one, "running_var": 4 * one}
        with pytest.raises(SerialisationError, match="keeps running averages in a state"):
            from_torch(model, weights)
        model, state = from_torch((model, state), weights)
        mean, variance = state.get(model.batch_state_index)
        assert (mean.sum(), variance.sum()) == (2, 8)
