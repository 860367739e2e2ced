"""`Embedding`: looks a vector up."""

import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ecliptic.errors import LayerArgumentError, ShapeError
from ecliptic.module import Module, field
from ecliptic.nn._check import check_size, shape_of
from ecliptic.nn._random import default_dtype


class Embedding(Module):
    """A table of vectors; a call looks up the one of an index.

    The vectors are drawn from the standard normal distribution, or given. Negative indices count
    from the end, as everywhere in Python. An index that is known in advance (a number of Python
    or NumPy) is checked. An index in a JAX array is not, as that would wait for the device: one
    that is too large gives the last vector, as it does for arrays.

    PyTorch's layer of the same name has the same weight. Its `padding_idx` has no counterpart:
    it takes the gradient of one row away.

    Args:
        num_embeddings: the number of vectors.
        embedding_size: the length of each.
        weight: the vectors, if they are not to be drawn. The sizes may then be left out.
        dtype: the dtype of the vectors. By default that of `weight` if it is given, and otherwise
            JAX's: float64 if 64 bits are enabled, float32 if not.
        key: the PRNG key that the vectors are drawn with; not needed with `weight`.

    Raises:
        LayerArgumentError: there is neither a weight nor all that is needed to draw one, a size
            is no size, or the dtype is not inexact.
        ShapeError: the weight does not have two axes, or not the sizes given.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> layer = nn.Embedding(10, 3, key=jax.random.key(0))
        >>> layer(2).shape
        (3,)
        >>> jax.vmap(layer)(jnp.array([1, 5])).shape
        (2, 3)
    """

    num_embeddings: int = field(static=True)
    embedding_size: int = field(static=True)
    weight: Array

    def __init__(
        self,
        num_embeddings: int | None = None,
        embedding_size: int | None = None,
        weight: Float[Array, "num_embeddings embedding_size"] | None = None,
        dtype: Any = None,
        *,
        key: PRNGKeyArray | None = None,
    ):
        if weight is None:
            if num_embeddings is None or embedding_size is None or key is None:
                raise LayerArgumentError(
                    f"`Embedding` got num_embeddings={num_embeddings}, embedding_size="
                    f"{embedding_size} and {'no' if key is None else 'a'} key, but needs all three "
                    "to draw its vectors. Give them, or give the vectors as `weight`."
                )
            sizes = (
                check_size(num_embeddings, "num_embeddings", "Embedding"),
                check_size(embedding_size, "embedding_size", "Embedding"),
            )
            self.weight = _normal(key, sizes, default_dtype(dtype, "Embedding"))
        else:
            self.weight = _given(weight, num_embeddings, embedding_size, dtype)
        self.num_embeddings, self.embedding_size = self.weight.shape

    def __call__(self, x: Int[Any, ""] | int, *, key: PRNGKeyArray | None = None) -> Array:
        """Look a vector up.

        Args:
            x: an integer: which vector.
            key: ignored; layers of all kinds are called alike.

        Returns:
            An array of shape `(embedding_size,)`.

        Raises:
            ShapeError: `x` is an array of indices.
            LayerArgumentError: `x` is no integer, or one of Python that is out of range.
        """
        if shape_of(x) != ():
            raise ShapeError(
                f"`Embedding` looks one vector up for one scalar index x; got x of shape "
                f"{tuple(shape_of(x))}. A layer acts on one example at a time. For several "
                "indices, did you mean `jax.vmap(layer)(x)`?"
            )
        if not jnp.issubdtype(jnp.result_type(x), jnp.integer):
            raise LayerArgumentError(
                f"`Embedding` got an index of dtype {jnp.result_type(x)}, but an index is an "
                "integer. Convert it, for instance with `x.astype(int)`."
            )
        size = self.num_embeddings
        if isinstance(x, int | np.integer | np.ndarray):
            x = operator.index(x)
            if not -size <= x < size:
                raise LayerArgumentError(
                    f"`Embedding` got the index {x}, but has {size} vectors: an index is at least "
                    f"{-size} and less than {size}."
                )
        return jax.lax.dynamic_index_in_dim(self.weight, x, axis=0, keepdims=False)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _normal(key: PRNGKeyArray, shape: tuple[int, int], dtype: Any) -> Array:
    return jax.random.normal(key, shape, dtype)


def _given(weight: Any, rows: int | None, columns: int | None, dtype: Any) -> Array:
    if isinstance(weight, np.ndarray) or not hasattr(weight, "shape"):
        weight = jnp.asarray(weight)
    shape = weight.shape
    if len(shape) != 2 or rows not in (None, shape[0]) or columns not in (None, shape[1]):
        raise ShapeError(
            f"`Embedding` got a weight of shape {shape}, but it must have shape (num_embeddings, "
            f"embedding_size), here ({'any' if rows is None else rows}, "
            f"{'any' if columns is None else columns})."
        )
    return weight if dtype is None else weight.astype(default_dtype(dtype, "Embedding"))
