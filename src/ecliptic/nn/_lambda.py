"""`Lambda`: any function as a layer."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Array, PRNGKeyArray

from ecliptic.module import Module
from ecliptic.nn._activation import apply_elementwise, is_elementwise


class Lambda(Module):
    """Makes a layer of a function.

    `Sequential` takes plain functions too; a `Lambda` says in the model's picture that one is
    meant, and can be found by its type.

    Args:
        fn: the function. If it is a PyTree with arrays, they are parameters of the layer.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> nn.Lambda(jnp.sum)(jnp.arange(4))
        Array(6, dtype=int32)
    """

    fn: Callable[[Any], Any]

    def __call__(self, x: Array, *, key: PRNGKeyArray | None = None) -> Array:
        """Call the function.

        Args:
            x: the input of the function.
            key: ignored; layers of all kinds are called alike.

        Returns:
            What the function returns.
        """
        return apply_elementwise(self.fn, x) if is_elementwise(self.fn) else self.fn(x)
