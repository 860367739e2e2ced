"""Arrays like those that a function would return."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic.transform import eval_empty, eval_zero


def _returns(x, name):
    return {"out": x.sum(0), "name": name, "flag": x > 1}


@pytest.mark.parametrize("x", [np.ones((2, 3), np.float16), jax.ShapeDtypeStruct((2, 3), "f2")])
@pytest.mark.parametrize("make", [eval_empty, eval_zero])
def test_arrays_have_the_shapes_and_dtypes_of_the_output(make, x):
    out = make(_returns, x, "a")
    assert (out["out"].shape, out["out"].dtype, out["name"]) == ((3,), np.float16, "a")
    assert (out["flag"].shape, out["flag"].dtype) == ((2, 3), bool)


def test_zeros_are_zero():
    assert not jnp.any(eval_zero(lambda x: x + 1, jnp.ones(3)))
