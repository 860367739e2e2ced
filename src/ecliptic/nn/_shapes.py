"""What a layer says of an input that it was not made for."""

from typing import Any, Literal

from ecliptic.errors import ShapeError
from ecliptic.nn._check import shape_of


def check_shape(
    x: Any, wanted: tuple[int, ...], made_with: str, layer: str, argument: str = "x"
) -> None:
    """Refuse an input whose shape is not the one that the layer was made for.

    Args:
        x: the input.
        wanted: the shape that it must have.
        made_with: the options of the layer that decide the shape, for the message.
        layer: the layer's name.
        argument: what the layer calls the input.

    Raises:
        ShapeError: the shape is another one.
    """
    shape = shape_of(x)
    if shape != wanted:
        raise ShapeError(
            f"`{layer}` was made with {made_with} and acts on {argument} of shape {wanted}; got "
            f"{argument} of shape {tuple(shape)}.{vmap_hint(shape, wanted)}"
        )


def check_vector(x: Any, size: int | Literal["scalar"], name: str, layer: str) -> None:
    """Refuse an input that is not one vector of `size` numbers (one number for `"scalar"`).

    Args:
        x: the input.
        size: what the layer was made for.
        name: the parameter of the layer that holds the size, for the message.
        layer: the layer's name.

    Raises:
        ShapeError: the shape of `x` is another one.
    """
    wanted = () if size == "scalar" else (size,)
    shape = shape_of(x)
    if shape == wanted:
        return
    what = (
        "a scalar: x must have scalar shape ()" if wanted == () else f"one vector of shape {wanted}"
    )
    raise ShapeError(
        f"`{layer}` was made with {name}={size!r} and acts on {what}; got x of shape "
        f"{tuple(shape)}.{vmap_hint(shape, wanted)}"
    )


def vmap_hint(shape: tuple[int, ...], wanted: tuple[Any, ...]) -> str:
    """Advice for an input that has more axes than it should; nothing for any other."""
    if len(shape) <= len(wanted):
        return ""
    return " A layer acts on one example at a time. For a batch, did you mean `jax.vmap(layer)(x)`?"
