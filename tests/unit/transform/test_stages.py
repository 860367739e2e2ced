"""`filter_jit` ahead of time: trace, lower, compile, export."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.errors import ArgumentError


class Scale(ec.Module):
    factor: jax.Array
    name: str = "n"

    def __call__(self, x, *, power):
        return {"y": self.factor * x**power, "name": self.name}


def apply(model, x, how, *, power=1):
    return {"y": model(x, power=power)["y"], "how": how}


@pytest.fixture
def model():
    return Scale(jnp.array(3.0))


def test_a_compiled_function_takes_and_gives_what_the_function_does(model):
    compiled = ec.filter_jit(apply).lower(model, jnp.ones(2), "h", power=2).compile()
    for i in range(8):
        out = compiled(model, jnp.full(2, 1.0 * i), "h", power=2)
        assert out["how"] == "h"
        assert out["y"].tolist() == [3.0 * i * i] * 2


def test_it_is_lowered_from_descriptions_of_arrays(model):
    described = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype) if ec.is_array(x) else x, model
    )
    lowered = ec.filter_jit(apply).lower(described, jax.ShapeDtypeStruct((2,), jnp.float32), "h")
    assert lowered.out_info["y"].shape == (2,)
    compiled = lowered.compile()
    for _ in range(8):
        assert compiled(model, jnp.ones(2), "h")["y"].tolist() == [3.0, 3.0]


def test_each_stage_tells_what_that_of_jax_tells(model):
    traced = ec.filter_jit(apply).trace(model, jnp.ones(2), "h")
    assert len(traced.jaxpr.jaxpr.invars) == 2
    lowered = traced.lower()
    assert "stablehlo" in lowered.as_text()
    compiled = lowered.compile()
    assert compiled.cost_analysis()["flops"] >= 2
    assert compiled.memory_analysis().output_size_in_bytes == 8
    assert repr(compiled) == "Compiled(apply)"
    with pytest.raises(AttributeError):
        compiled.nothing


def test_a_module_and_a_bound_method(model):
    for fun in (model, model.__call__):
        compiled = ec.filter_jit(fun).lower(jnp.ones(2), power=2).compile()
        for _ in range(8):
            assert compiled(jnp.full(2, 2.0), power=2)["y"].tolist() == [12.0, 12.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(how="other"), r"the static leaf args\[2\] was 'h' then and is 'other' now"),
        (dict(how=jnp.ones(1)), r"the leaf args\[2\] was 'h' then and is an array now"),
        (dict(x=1.0), r"the leaf args\[1\] was an array then and is 1.0 now"),
        (dict(power=2.0), r"the static leaf kwargs\['power'\] was 2 then and is 2.0 now"),
        (dict(model=3), r"one has a Scale, the other a leaf of type int"),
    ],
)
@pytest.mark.parametrize("calls", [0, 8])
def test_other_static_parts_are_refused(model, change, message, calls):
    f = ec.filter_jit(apply)
    compiled = f.lower(model, jnp.ones(2), "h", power=2).compile()
    for _ in range(calls):
        compiled(model, jnp.ones(2), "h", power=2)
    values = dict(model=model, x=jnp.ones(2), how="h", power=2) | change
    with pytest.raises(ArgumentError, match=f"`apply` was compiled for other.*{message}"):
        compiled(values["model"], values["x"], values["how"], power=values["power"])


def test_other_shapes_are_refused_by_jax(model):
    compiled = ec.filter_jit(apply).lower(model, jnp.ones(2), "h").compile()
    with pytest.raises(TypeError, match=r"float32\[3\]"):
        compiled(model, jnp.ones(3), "h")


def test_silent_donation_is_silent_ahead_of_time():
    ec.filter_jit(lambda x: x.sum(), donate="all").lower(jnp.ones(2)).compile()
    with pytest.warns(UserWarning, match="donated buffers"):
        ec.filter_jit(lambda x: x.sum(), donate="warn").lower(jnp.ones(2)).compile()


def test_an_exported_program_is_called_as_the_function(model):
    exported = ec.filter_jit(apply).export(model, jnp.ones(2), "h", power=2)
    out = exported.call(model, jnp.full(2, 2.0), "h", power=2)
    assert (out["y"].tolist(), out["how"]) == ([12.0, 12.0], "h")
    with pytest.raises(ArgumentError, match=r"exported for other .*args\[2\] was 'h'"):
        exported.call(model, jnp.ones(2), "g", power=2)
    method = ec.filter_jit(model).export(jnp.ones(2), power=1)
    assert method.call(jnp.ones(2), power=1)["y"].tolist() == [3.0, 3.0]


def test_an_exported_program_works_in_another_process(tmp_path):
    (tmp_path / "program").write_bytes(
        ec.filter_jit(lambda x, how: (x * 2, how)).export(jnp.ones(2), "h").serialize()
    )
    program = f"""
import ecliptic as ec, jax, jax.numpy as jnp
shape = jax.ShapeDtypeStruct((2,), jnp.float32)
data = open({str(tmp_path / "program")!r}, "rb").read()
f = ec.Exported.deserialize(data, args=(shape, "h"), output=(shape, "h"))
out = f.call(jnp.ones(2), "h")
assert (out[0].tolist(), out[1]) == ([2.0, 2.0], "h"), out
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_examples_with_other_numbers_of_arrays_are_refused():
    data = ec.filter_jit(lambda x: x * 2).export(jnp.ones(2)).serialize()
    with pytest.raises(ArgumentError, match="1 arrays as its arguments, and the example .* has 0"):
        ec.Exported.deserialize(data, args=("x",), output=jnp.ones(2))
    with pytest.raises(ArgumentError, match="1 arrays as its output, and the example .* has 2"):
        ec.Exported.deserialize(data, args=(jnp.ones(2),), output=[jnp.ones(2)] * 2)
