"""What layers ask of their arguments before they compute."""

import operator
from typing import Any

import jax
import jax.numpy as jnp

from ecliptic.errors import LayerArgumentError


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of anything array-like, without making an array of it."""
    shape = getattr(x, "shape", None)
    return jnp.shape(x) if shape is None else shape


def integer_of(value: Any) -> int | None:
    """The plain `int` that `value` stands for, or `None` if it stands for none."""
    try:
        return operator.index(value)
    except jax.errors.TracerIntegerConversionError:
        # JAX says best what is wrong with a traced number.
        raise
    except TypeError:
        return None


def check_size(value: Any, name: str, layer: str, *, scalar: bool = False) -> Any:
    """Make a size a plain `int`, or say why it is none.

    A NumPy integer would be compared as an array wherever the layer's structure is compared.

    Args:
        value: what the caller gave.
        name: the parameter's name.
        layer: the layer's name.
        scalar: whether the word `"scalar"` is a size too.

    Returns:
        A non-negative `int`, or `"scalar"`.

    Raises:
        LayerArgumentError: the value is neither.
    """
    if scalar and type(value) is str and value == "scalar":
        return value
    size = integer_of(value)
    if size is None or size < 0:
        also = " or 'scalar'" if scalar else ""
        raise LayerArgumentError(
            f"`{layer}` got {name}={value!r}, but a size is a non-negative integer{also}."
        )
    return size
