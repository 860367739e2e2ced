"""`StatefulLayer`: what tells `Sequential` that a layer takes and returns a state."""

import abc
from typing import Any

from ecliptic.module import Module


class _Absent:
    def __repr__(self) -> str:
        return "<no state>"


# Stands for "called without a state": a state may be any object, `None` too.
ABSENT: Any = _Absent()


class StatefulLayer(Module):
    """Base class of the layers that are called `y, state = layer(x, state, key=key)`.

    `Sequential` passes its state through each layer of this class whose `is_stateful()` is true.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic import nn
        >>> class Counter(nn.StatefulLayer):
        ...     def __call__(self, x, state, *, key=None):
        ...         return x, state + 1
        >>> nn.Sequential([Counter(), Counter()])(1.0, 0)
        (1.0, 2)
    """

    @abc.abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the layer: `(x, state, *, key)` to `(y, state)`."""

    def is_stateful(self) -> bool:
        """Say whether this layer takes and returns a state.

        Returns:
            `True`. A layer that has a state in some configurations only overrides this.
        """
        return True
