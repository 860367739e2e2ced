"""`Identity`: the layer that does nothing."""

from typing import Any, TypeVar

from jaxtyping import PRNGKeyArray

from ecliptic.module import Module

T = TypeVar("T")


class Identity(Module):
    """Returns its input, whatever it was made with.

    Args:
        *args: ignored, so that it stands in for any layer.
        **kwargs: ignored.

    !!! Example

        >>> from ecliptic import nn
        >>> nn.Identity(3, use_bias=False)("anything")
        'anything'
    """

    def __init__(self, *args: Any, **kwargs: Any):
        del args, kwargs

    def __call__(self, x: T, *, key: PRNGKeyArray | None = None) -> T:
        """Return `x`.

        Args:
            x: anything.
            key: ignored; layers of all kinds are called alike.

        Returns:
            The same object.
        """
        return x
