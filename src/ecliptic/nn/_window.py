"""What convolutions and pools share: arguments by axis, paddings, and the check of an input.

A window covers `span = dilation * (kernel_size - 1) + 1` positions of each spatial axis and moves
by `stride`. All arguments by axis are brought into one form, tuples of plain integers, so that
equal layers have equal structures, and one that jit can compare.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ecliptic.errors import LayerArgumentError, ShapeError
from ecliptic.nn._check import integer_of, shape_of
from ecliptic.nn._shapes import vmap_hint

Pairs = tuple[tuple[int, int], ...]

WORDS = ("SAME", "SAME_LOWER", "VALID")

# `padding_mode` -> `mode` of `jax.numpy.pad`
PADDING_MODES = {
    "ZEROS": "constant",
    "REFLECT": "reflect",
    "REPLICATE": "edge",
    "CIRCULAR": "wrap",
}


def check_at_least(value: Any, minimum: int, name: str, layer: str) -> int:
    """Make an argument a plain `int` of at least `minimum`.

    Args:
        value: what the caller gave.
        minimum: the smallest allowed value.
        name: the parameter's name.
        layer: the layer's name.

    Returns:
        An `int`.

    Raises:
        LayerArgumentError: the value is none.
    """
    number = integer_of(value)
    if number is None or number < minimum:
        raise LayerArgumentError(
            f"`{layer}` got {name}={value!r}, but it is an integer of at least {minimum}."
        )
    return number


def check_by_axis(value: Any, axes: int, minimum: int, name: str, layer: str) -> tuple[int, ...]:
    """Make an argument one plain `int` for each spatial axis.

    Args:
        value: an integer for all axes, or a sequence of one for each.
        axes: the number of spatial axes.
        minimum: the smallest allowed value.
        name: the parameter's name.
        layer: the layer's name.

    Returns:
        A tuple of `axes` integers.

    Raises:
        LayerArgumentError: the value is neither, or it is too small.
    """
    one = integer_of(value)
    numbers = (one,) * axes if one is not None else _integers(value)
    if len(numbers) != axes or min(numbers) < minimum:
        raise LayerArgumentError(
            f"`{layer}` got {name}={value!r}, but it is an integer of at least {minimum}, or a "
            f"tuple of {axes} of them, one for each spatial axis."
        )
    return numbers


def _integers(value: Any) -> tuple[int, ...]:
    """The integers in a sequence of nothing else; none for anything else."""
    numbers = tuple(integer_of(one) for one in _entries(value))
    return () if None in numbers else numbers  # pyright: ignore[reportReturnType]


def _entries(value: Any) -> tuple[Any, ...]:
    try:
        return () if isinstance(value, str) else tuple(value)
    except TypeError:
        return ()


def check_padding(value: Any, axes: int, layer: str, *, words: bool) -> str | Pairs:
    """Make a padding one pair (before, after) for each spatial axis, or a word in capitals.

    Args:
        value: an integer, a sequence of an integer or a pair for each axis, or a word.
        axes: the number of spatial axes.
        layer: the layer's name.
        words: whether the layer takes words.

    Returns:
        A tuple of pairs, or one of `WORDS`.

    Raises:
        LayerArgumentError: the value is none of these, or a number is negative.
    """
    if isinstance(value, str):
        if words and value.upper() in WORDS:
            return value.upper()
    else:
        one = integer_of(value)
        entries = (one,) * axes if one is not None else _entries(value)
        pairs = tuple(_pair(entry) for entry in entries)
        if len(pairs) == axes and all(pair and min(pair) >= 0 for pair in pairs):
            return pairs  # pyright: ignore[reportReturnType]
    also = " It can also be 'SAME', 'SAME_LOWER' or 'VALID'." if words else ""
    example = ", ".join(["(1, 2)"] * axes) + ("," if axes == 1 else "")
    raise LayerArgumentError(
        f"`{layer}` got padding={value!r}, but a padding is a non-negative integer, or a tuple of "
        f"length {axes} that holds, for each spatial axis, a non-negative integer or a pair "
        f"(before, after), for instance padding=({example}).{also}"
    )


def _pair(entry: Any) -> tuple[int, int] | None:
    one = integer_of(entry)
    if one is not None:
        return one, one
    both = _integers(entry)
    return (both[0], both[1]) if len(both) == 2 else None


def check_padding_mode(value: Any, layer: str) -> str:
    """Make a padding mode a word in capitals.

    Args:
        value: what the caller gave.
        layer: the layer's name.

    Returns:
        A key of `PADDING_MODES`.

    Raises:
        LayerArgumentError: there is no such mode.
    """
    if not isinstance(value, str) or value.upper() not in PADDING_MODES:
        raise LayerArgumentError(
            f"`{layer}` got padding_mode={value!r}, but it is one of 'ZEROS', 'REFLECT', "
            "'REPLICATE' and 'CIRCULAR'."
        )
    return value.upper()


def check_groups(value: Any, in_channels: int, out_channels: int, layer: str) -> int:
    """Make a number of groups a plain `int` that divides both numbers of channels.

    Args:
        value: what the caller gave.
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the output.
        layer: the layer's name.

    Returns:
        An `int`.

    Raises:
        LayerArgumentError: it is no positive integer, or does not divide the numbers.
    """
    groups = check_at_least(value, 1, "groups", layer)
    for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
        if channels % groups:
            raise LayerArgumentError(
                f"`{layer}` got {name}={channels} and groups={groups}, but {name} must be "
                "divisible by groups: each group has as many channels as the others."
            )
    return groups


def spans(kernel_size: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[int, ...]:
    """How many positions the kernel covers along each axis, first to last."""
    return tuple(d * (k - 1) + 1 for k, d in zip(kernel_size, dilation, strict=True))


def halves(total: int, word: str) -> tuple[int, int]:
    """Split a padding over both ends; an odd one is larger after for 'SAME', else before."""
    small = total // 2
    return (total - small, small) if word == "SAME_LOWER" else (small, total - small)


def check_example(x: Any, axes: int, channels: int | None, layer: str) -> Array:
    """Refuse an input that is not one example, channels first; make it an array of JAX.

    Args:
        x: the input.
        axes: the number of spatial axes.
        channels: the number of channels, where the layer was made for one.
        layer: the layer's name.

    Returns:
        `x` as an array of JAX.

    Raises:
        ShapeError: the rank or the number of channels is another one.
    """
    shape = shape_of(x)
    if len(shape) == axes + 1 and channels in (None, shape[0]):
        return x if isinstance(x, jax.Array) else jnp.asarray(x)
    sizes = ", ".join(f"n{axis}" for axis in range(1, axes + 1))
    first = "channels" if channels is None else channels
    made = "" if channels is None else f"was made with in_channels={channels} and "
    raise ShapeError(
        f"`{layer}` {made}acts on one example of shape ({first}, {sizes}): channels first, then "
        f"{_count(axes)}; got x of shape {tuple(shape)}.{_hint(shape, axes, channels)}"
    )


def _count(axes: int) -> str:
    return "one spatial axis" if axes == 1 else f"{axes} spatial axes"


def _hint(shape: tuple[int, ...], axes: int, channels: int | None) -> str:
    if len(shape) == axes + 2:
        return vmap_hint(shape, shape[1:])
    if len(shape) == axes:
        return " If the only channel is left out, did you mean `layer(x[None])`?"
    if len(shape) == axes + 1 and shape[-1] == channels:
        return " If the channels come last, did you mean `layer(jnp.moveaxis(x, -1, 0))`?"
    return ""


def check_room(shape: tuple[int, ...], spans: tuple[int, ...], pads: Pairs, layer: str) -> None:
    """Refuse an input in which the window fits nowhere: the output would have no elements.

    Args:
        shape: the shape of the input, channels first.
        spans: how many positions the window covers.
        pads: the padding.
        layer: the layer's name.

    Raises:
        ShapeError: an axis that has elements has too few.
    """
    for axis, (size, span, (low, high)) in enumerate(zip(shape[1:], spans, pads, strict=True), 1):
        # Sizes may be symbols, which are not compared.
        if isinstance(size, int) and size > 0 and size + low + high < span:
            raise ShapeError(
                f"`{layer}` has a window of {span} positions along axis {axis}, but x of shape "
                f"{shape} has only {size} there, and {size + low + high} with the padding. "
                "Pad more, or use a smaller kernel or dilation."
            )
