"""The converter itself is an optional package; a stand-in records what it is given."""

import sys
import types

import jax
import jax.numpy as jnp
import pytest

from ecliptic.errors import LeafError, MissingPackageError
from ecliptic.serialise import to_onnx
from ecliptic.tree import tree_equal


@pytest.fixture
def converter(monkeypatch):
    """A converter whose "model" is the function with all that came with it."""
    package = types.ModuleType("jax2onnx")
    package.to_onnx = lambda fn, **options: types.SimpleNamespace(fn=fn, **options)  # pyright: ignore
    monkeypatch.setitem(sys.modules, "jax2onnx", package)


@pytest.mark.usefixtures("converter")
def test_the_inputs_are_the_arrays_by_path_and_the_rest_is_fixed():
    def fn(tree, name, *, scale):
        return {"out": tree["x"] * scale, "name": name}

    model = to_onnx(fn)({"x": jnp.ones(2), "n": 3}, "name", scale=jax.ShapeDtypeStruct((), "f4"))
    assert model.input_names == ["arg0['x']", "scale"]
    assert [(x.shape, x.dtype) for x in model.inputs] == [((2,), jnp.float32), ((), jnp.float32)]
    assert tree_equal(model.fn(jnp.ones(2), jnp.array(3.0)), (jnp.full(2, 3.0),))


@pytest.mark.usefixtures("converter")
def test_options_go_to_the_converter():
    model = to_onnx(jnp.sin, opset=21, input_names=["x"])(jnp.ones(2))
    assert (model.opset, model.input_names) == (21, ["x"])


@pytest.mark.usefixtures("converter")
def test_arguments_without_an_array_are_refused():
    with pytest.raises(LeafError, match="`to_onnx`: there is no array in the example arguments"):
        to_onnx(lambda x: x)(3)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax2onnx", None)
    with pytest.raises(MissingPackageError, match="pip install jax2onnx"):
        to_onnx(jnp.sin)(jnp.ones(2))
