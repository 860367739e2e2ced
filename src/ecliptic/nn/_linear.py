"""`Linear`: the affine map."""

import math
from typing import Any, Literal

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from ecliptic.module import Module, field
from ecliptic.nn._affine import affine
from ecliptic.nn._check import check_size
from ecliptic.nn._random import default_dtype, uniform_pair
from ecliptic.nn._shapes import check_vector


class Linear(Module):
    """The affine map `weight @ x + bias` of a vector.

    Weight and bias are drawn uniformly between `±1/sqrt(in_features)`, for complex dtypes in both
    parts, which keeps the size of the outputs roughly that of the inputs.

    Args:
        in_features: the length of the input, or `"scalar"` for an input of shape `()`.
        out_features: the length of the output, or `"scalar"` for an output of shape `()`.
        use_bias: whether to add a bias; without one the field `bias` is `None`.
        dtype: the dtype of weight and bias, floating or complex. By default JAX's: float64 if
            64 bits are enabled, float32 otherwise.
        key: the PRNG key that weight and bias are drawn with.

    Raises:
        LayerArgumentError: a size is no size, or the dtype is not inexact.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> layer = nn.Linear(3, 2, key=jax.random.key(0))
        >>> layer(jnp.ones(3)).shape
        (2,)
        >>> jax.vmap(layer)(jnp.ones((5, 3))).shape
        (5, 2)
    """

    weight: Array
    bias: Array | None
    in_features: int | Literal["scalar"] = field(static=True)
    out_features: int | Literal["scalar"] = field(static=True)
    use_bias: bool = field(static=True)

    def __init__(
        self,
        in_features: int | Literal["scalar"],
        out_features: int | Literal["scalar"],
        use_bias: bool = True,
        dtype: Any = None,
        *,
        key: PRNGKeyArray,
    ):
        in_features = check_size(in_features, "in_features", "Linear", scalar=True)
        out_features = check_size(out_features, "out_features", "Linear", scalar=True)
        columns = 1 if in_features == "scalar" else in_features
        rows = 1 if out_features == "scalar" else out_features
        self.weight, self.bias = uniform_pair(
            key,
            (rows, columns),
            (rows,) if use_bias else None,
            default_dtype(dtype, "Linear"),
            1 / math.sqrt(columns or 1),
        )
        self.in_features = in_features
        self.out_features = out_features
        self.use_bias = use_bias

    def __call__(self, x: Array, *, key: PRNGKeyArray | None = None) -> Array:
        """Apply the map.

        Args:
            x: an array of shape `(in_features,)`, or `()` for `"scalar"`.
            key: ignored; layers of all kinds are called alike.

        Returns:
            An array of shape `(out_features,)`, or `()` for `"scalar"`.

        Raises:
            ShapeError: `x` has another shape.
        """
        check_vector(x, self.in_features, "in_features", "Linear")
        if self.in_features == "scalar":
            x = jnp.broadcast_to(x, (1,))
        y = affine(self.weight, x, self.bias)
        if self.out_features == "scalar":
            y = jnp.squeeze(y)
        return y
