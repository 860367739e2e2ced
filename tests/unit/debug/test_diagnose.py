"""`diagnose`: each mistake is found at its path, and what is right is left alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.debug import diagnose
from ecliptic.errors import ArgumentError, EclipticWarning

W = jnp.ones(3)


class Holder(ec.Module):
    value: object


class StaticHolder(ec.Module):
    table: object = ec.field(static=True)


def _square(x):
    return x * x


def _capturing(array):
    return lambda x: x + array


def _quietly(make):
    with pytest.warns(EclipticWarning):
        return make()


def _bound_in_vmap():
    return _quietly(lambda: Holder(jax.vmap(ec.nn.Linear(2, 2, key=jax.random.key(0)))))


def _local_jit():
    def local(x):
        return x

    return Holder(jax.jit(local))


# What is looked at, and what is found: paths and kinds.
CASES = {
    "a float": (lambda: Holder([W, 0.5]), [("model.value[1]", "Python float")]),
    "a complex number": (lambda: Holder(1j), [("model.value", "Python float")]),
    "a static array": (
        lambda: _quietly(lambda: StaticHolder(W)),
        [("model.table", "static array")],
    ),
    "a static tuple of arrays": (
        lambda: _quietly(lambda: StaticHolder((1, np.ones(2)))),
        [("model.table", "static array")],
    ),
    "an array twice": (lambda: Holder({"a": W, "b": [W]}), [("model.value['a']", "shared array")]),
    "a NumPy array": (
        lambda: Holder(np.ones(2, np.float32)),
        [("model.value", "NumPy array")],
    ),
    "a NumPy array of integers": (lambda: Holder(np.arange(2)), [("model.value", "NumPy array")]),
    "a vmapped model": (_bound_in_vmap, [("model.value", "transformed function")]),
    "a function jitted locally": (_local_jit, [("model.value", "transformed function")]),
    "a closure": (lambda: Holder(_capturing(W)), [("model.value", "captured array")]),
    "a closure in a static field": (
        lambda: StaticHolder(_capturing(W)),
        [("model.table", "captured array")],
    ),
    "a partial": (
        lambda: Holder(functools.partial(jnp.add, W)),
        [("model.value", "captured array")],
    ),
    "a large closure": (
        lambda: _capturing(np.ones(2**18, np.float32)),
        [("model", "large constant")],
    ),
    "nan": (lambda: Holder(W.at[0].set(jnp.nan)), [("model.value", "not finite")]),
    "inf": (lambda: [W.at[0].set(jnp.inf)], [("model[0]", "not finite")]),
    "a weak type": (lambda: Holder(jnp.asarray(1.0)), [("model.value", "weak type")]),
    "mixed dtypes": (
        lambda: [W, W + 1, W.astype(jnp.bfloat16)],
        [("model[2]", "mixed dtypes")],
    ),
    "mixed dtypes of descriptions": (
        lambda: [jax.ShapeDtypeStruct((2,), jnp.float32), jax.ShapeDtypeStruct((), jnp.float16)],
        [("model[0]", "mixed dtypes")],
    ),
    "mixed devices": (
        lambda: [W, jax.device_put(W + 1, jax.devices()[1])],
        [("model[0]", "mixed devices")],
    ),
    "an MLP": (lambda: ec.nn.MLP(2, 2, 4, 1, key=jax.random.key(0)), []),
    "a dropout": (lambda: ec.nn.Dropout(0.5), []),
    "functions that capture nothing": (lambda: [_square, jnp.tanh, jax.nn.relu, jnp.float32], []),
    "a filtered transformation": (lambda: Holder(ec.filter_vmap(ec.Partial(jnp.add, W))), []),
    "an integer beside a float": (lambda: [W, jnp.arange(2), jax.random.key(0), "text", None], []),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_found(case):
    make, expected = CASES[case]
    found = diagnose(make())
    assert [(finding.path, finding.kind) for finding in found] == expected
    assert len(found) == len(expected)
    assert all(finding.what and finding.advice for finding in found)


def test_a_traced_model_is_looked_at_without_its_values():
    kinds = []

    @jax.jit
    def f(x):
        kinds.extend(finding.kind for finding in diagnose([x, x, 1.0, x.astype(jnp.bfloat16)]))
        return x

    f(W * jnp.nan)
    assert kinds == ["Python float", "shared array", "mixed dtypes"]


def test_what_numpy_arrays_are_depends_on_their_dtype():
    floats, integers = diagnose([np.ones(2, np.float32), np.arange(2)])
    assert "it is trained as" in floats.what
    assert "not trained" in integers.what


def test_a_finding_on_dtypes_lists_the_leaves():
    (finding,) = diagnose([W, W + 1, W.astype(jnp.bfloat16)])
    assert "bfloat16 (1: model[2]); float32 (2: model[0], model[1])" in finding.what


def test_a_large_constant_is_named_with_its_size():
    (finding,) = diagnose(_capturing(np.ones(2**19, np.float32)))
    assert "captures `array`, a `ndarray`, with 2.0 MB" in finding.what
    assert "ecliptic.Partial" in finding.advice


def test_from_which_size_a_constant_is_large_can_be_set():
    assert diagnose(_capturing(W), large=12)[0].kind == "large constant"
    with pytest.raises(ArgumentError, match="`large` to be a number of bytes; got -1"):
        diagnose(W, large=-1)


def test_it_prints_as_a_list():
    text = str(diagnose(Holder(0.5)))
    assert text.startswith("- model.value (Python float): 0.5 is a leaf that is no array")
    assert str(diagnose(W)) == "Nothing was found."
    assert not diagnose(W)
