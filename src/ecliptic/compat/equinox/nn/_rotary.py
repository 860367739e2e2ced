"""`RotaryPositionalEmbedding`, which minds the dtypes of its tables and its input."""

from typing import Any

import jax.numpy as jnp

from ecliptic import nn


class RotaryPositionalEmbedding(nn.RotaryPositionalEmbedding):
    """`ecliptic.nn.RotaryPositionalEmbedding`, where strict dtypes go for the tables, too.

    They are no parameters, so Ecliptic's layer gives them the dtype that the input asks for.
    Programs that set `jax_numpy_dtype_promotion` to `"strict"` expect to be told of a difference.

    Args:
        embedding_size: as there.
        theta: as there.
        dtype: as there.
    """

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Turns the vectors of a sequence.

        Args:
            x: as there.
            key: as there.
        """
        # Raises in strict mode.
        jnp.promote_types(jnp.result_type(x), self.dtype)
        return super().__call__(x, key=key)
