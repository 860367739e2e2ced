"""`weight @ x + bias`, as the layers compute it."""

from typing import Any

from jaxtyping import Array

from ecliptic.nn._traced import traced_once


@traced_once()
def affine(weight: Any, x: Any, bias: Any) -> Array:
    """`weight @ x + bias`, by the operators, so that types that stand for a weight have their say.

    Args:
        weight: a matrix.
        x: a vector.
        bias: what to add, or `None`.

    Returns:
        A vector.
    """
    y = weight @ x
    return y if bias is None else y + bias
