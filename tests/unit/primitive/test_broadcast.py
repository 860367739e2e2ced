"""Broadcasting that aligns first axes."""

import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic.errors import ArgumentError
from ecliptic.primitive import left_broadcast_to


@pytest.mark.parametrize(
    ("own", "shape"), [((2,), (2, 3)), ((1, 2), (4, 2, 3)), ((), (2,)), ((2, 3), (2, 3))]
)
def test_axes_are_added_behind(own, shape):
    x = jnp.arange(float(np.prod(own))).reshape(own)
    expected = np.broadcast_to(np.reshape(x, own + (1,) * (len(shape) - len(own))), shape)
    assert np.array_equal(left_broadcast_to(x, shape), expected)


@pytest.mark.parametrize(("own", "shape"), [((3,), (2, 3)), ((2, 3), (2,))])
def test_shapes_that_do_not_fit_are_refused(own, shape):
    with pytest.raises(ArgumentError, match=r"aligns first axes.*does not fit.*broadcast_to"):
        left_broadcast_to(jnp.ones(own), shape)
