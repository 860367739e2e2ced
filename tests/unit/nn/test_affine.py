"""Products and sums that JAX's operators would give, whatever the arrays are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.nn._affine import affine
from ecliptic.tree import tree_at

MATRIX, VECTOR = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([5.0, 6.0])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.complex64, jnp.int8, jnp.bool_])
def test_arrays_of_one_dtype_give_what_the_operators_give(dtype):
    matrix, vector = MATRIX.astype(dtype), VECTOR.astype(dtype)
    y = affine(matrix, vector, vector)
    wanted = matrix @ vector + vector
    assert (y.dtype, y.tolist()) == (wanted.dtype, wanted.tolist())


@pytest.mark.parametrize("weight", [MATRIX, np.asarray(MATRIX)])
@pytest.mark.parametrize("x", [VECTOR, np.asarray(VECTOR)])
def test_arrays_of_numpy_are_taken(weight, x):
    assert affine(weight, x, None).tolist() == [17.0, 39.0]


def test_dtypes_that_do_not_promote_are_refused_as_by_the_operators():
    with pytest.raises(jax.dtypes.TypePromotionError):
        affine(MATRIX, VECTOR.astype(jnp.bfloat16), None)
    with pytest.raises(jax.dtypes.TypePromotionError):
        affine(MATRIX, VECTOR, VECTOR.astype(jnp.bfloat16))


def test_a_sum_of_different_shapes_broadcasts():
    assert affine(MATRIX, VECTOR, jnp.ones(1)).tolist() == [18.0, 40.0]


class Doubled:
    """What stands for a weight, and is no array."""

    def __matmul__(self, x):
        return 2 * x


def test_a_weight_of_a_users_type_multiplies_in_its_own_way():
    linear = nn.Linear(2, 2, use_bias=False, key=jax.random.key(0))
    doubled = tree_at(lambda layer: layer.weight, linear, Doubled())
    assert doubled(VECTOR).tolist() == [10.0, 12.0]
