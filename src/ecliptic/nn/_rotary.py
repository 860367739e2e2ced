"""`RotaryPositionalEmbedding`: turns vectors by angles that grow with their position."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PRNGKeyArray

from ecliptic.errors import LayerArgumentError, ShapeError
from ecliptic.module import Module, field
from ecliptic.nn._check import check_size, shape_of
from ecliptic.nn._precision import at_least_single, convert, precision_of
from ecliptic.nn._random import default_dtype
from ecliptic.nn._shapes import vmap_hint
from ecliptic.nn._traced import traced_once


def _default_dtype() -> Any:
    return default_dtype(None, "RotaryPositionalEmbedding")


def _as_dtype(dtype: Any) -> Any:
    return default_dtype(dtype, "RotaryPositionalEmbedding")


class RotaryPositionalEmbedding(Module):
    """Turns pairs of numbers of each vector by an angle that grows with the vector's position.

    The scalar product of two turned vectors then depends on the distance of their positions alone.
    The numbers at `i` and `i + embedding_size / 2` form a pair, and the pair turns by
    `theta**(-2 * i / embedding_size)` for each step of position; the first position stays as
    it is. The layer has no parameters. The tables of cosines and sines are made once for each
    length, in double precision, and are constants of the compiled program.

    The layer acts on one head. For heads on an axis of their own, map over it, for instance in
    `process_heads` of `MultiheadAttention`: `jax.vmap(rope, in_axes=1, out_axes=1)(query_heads)`.

    Args:
        embedding_size: the length of each vector, an even number.
        theta: the base of the angles. Larger ones suit longer sequences.
        dtype: the dtype of the tables. By default JAX's: float64 if 64 bits are enabled, float32
            otherwise. The output has the dtype of the input all the same.

    Raises:
        LayerArgumentError: the size is no even size, or the dtype is not inexact.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> rope = nn.RotaryPositionalEmbedding(2)
        >>> rope(jnp.array([[1.0, 0.0], [1.0, 0.0]])).round(3)
        Array([[1.   , 0.   ],
               [0.54 , 0.841]], dtype=float32)

    Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding",
    arXiv:2104.09864 (2021); pairs as in GPT-NeoX.
    """

    embedding_size: int = field(static=True)
    theta: float = field(static=True, default=10_000.0, converter=float)
    dtype: Any = field(static=True, default_factory=_default_dtype, converter=_as_dtype)

    def __check_init__(self) -> None:
        size = check_size(self.embedding_size, "embedding_size", "RotaryPositionalEmbedding")
        if size % 2 == 1:
            raise LayerArgumentError(
                f"`RotaryPositionalEmbedding` got embedding_size={size}, but turns pairs of "
                "numbers: the size must be even."
            )

    @staticmethod
    def rotate_half(x: Float[Array, "*positions embedding_size"]) -> Array:
        """Turn each pair of numbers by a quarter.

        Args:
            x: an array whose last axis holds the pairs, at `i` and `i + embedding_size / 2`.

        Returns:
            An array of the same shape: the second halves, negated, and then the first.
        """
        half = x.shape[-1] // 2
        return jnp.concatenate([-x[..., half:], x[..., :half]], axis=-1)

    @staticmethod
    def precompute_freqs_cis(
        embedding_size: int, end: int, theta: float, dtype: Any
    ) -> tuple[Float[Array, "end half_emb_size"], Float[Array, "end half_emb_size"]]:
        """Make the tables of cosines and sines.

        Args:
            embedding_size: the length of each vector.
            end: the number of positions.
            theta: the base of the angles.
            dtype: the dtype of the tables.

        Returns:
            The cosines and the sines of the angles, each of shape `(end, embedding_size / 2)`.
        """
        dtype = np.dtype(dtype)
        cosines, sines = _tables(embedding_size, end, float(theta), dtype, dtype)
        return jnp.asarray(cosines), jnp.asarray(sines)

    def __call__(
        self,
        x: Float[Array, "seq_length embedding_size"],
        *,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "seq_length embedding_size"]:
        """Turn the vectors of a sequence.

        Args:
            x: an array of shape `(seq_length, embedding_size)`.
            key: ignored; layers of all kinds are called alike.

        Returns:
            An array of the shape of `x`, and of its dtype unless `x` holds integers.

        Raises:
            ShapeError: `x` has another shape.
        """
        shape, size = shape_of(x), self.embedding_size
        if len(shape) != 2 or shape[1] != size:
            raise ShapeError(
                f"`RotaryPositionalEmbedding` was made with embedding_size={size} and acts on a "
                f"sequence of shape (seq_length, {size}); got x of shape {tuple(shape)}."
                f"{vmap_hint(shape, (None, size))}"
            )
        x = jnp.asarray(x)
        computed = at_least_single(x.dtype, self.dtype)
        tables = _tables(size, shape[0], self.theta, self.dtype, computed)
        return _turned(x, *[jnp.asarray(table) for table in tables])


@traced_once()
def _turned(x: Array, cosines: Array, sines: Array) -> Array:
    first, second = lax.split(convert(x, cosines.dtype), (x.shape[1] // 2,) * 2, axis=1)
    turned = [
        lax.sub(lax.mul(first, cosines), lax.mul(second, sines)),
        lax.add(lax.mul(second, cosines), lax.mul(first, sines)),
    ]
    return convert(lax.concatenate(turned, 1), precision_of(x.dtype).output)


# The tables are a function of these arguments and of nothing else, so they may be kept. They are
# arrays of NumPy: they belong to no device and to no trace.
@functools.lru_cache(maxsize=64)
def _tables(
    embedding_size: int,
    end: int,
    theta: float,
    dtype: np.dtype[Any],
    computed: np.dtype[Any],
) -> tuple[np.ndarray, np.ndarray]:
    exponents = np.arange(0, embedding_size, 2) / max(embedding_size, 1)
    angles = np.outer(np.arange(end), theta**-exponents)
    # Rounded to the dtype of the tables first, and brought to that of the computation here, where
    # it is done once, and not in every trace.
    cosines, sines = [f(angles).astype(dtype).astype(computed) for f in (np.cos, np.sin)]
    cosines.flags.writeable = sines.flags.writeable = False
    return cosines, sines
