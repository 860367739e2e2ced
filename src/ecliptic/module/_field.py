"""`field`: what a class says of one of its fields beyond its annotation."""

import dataclasses
from collections.abc import Callable
from typing import Any

from ecliptic.errors import DefinitionError

# The keys in `dataclasses.Field.metadata`. They are the ones that the field uses, so that a field
# made elsewhere with `metadata={"static": True}` (as `jax.tree_util.register_dataclass` reads it)
# means the same here.
STATIC = "static"
CONVERTER = "converter"


def field(
    *, converter: Callable[[Any], Any] | None = None, static: bool = False, **kwargs: Any
) -> Any:
    """Declares a field of a [`Module`][] with options.

    Args:
        converter: called with the field's value when initialisation ends; its result is stored.
            It runs once for each instance, whichever way the value came in: argument, default,
            `__post_init__` or a custom `__init__`. By default the value is stored as it is.
        static: if true, the value is part of the tree's structure and no leaf of it: no
            transformation sees it, and `filter_jit` compiles anew for each new value. It must be
            hashable and comparable; arrays do not belong here. Default: false.
        **kwargs: every option of `dataclasses.field`: `default`, `default_factory`, `init`,
            `repr`, `hash`, `compare`, `metadata`, `kw_only`.

    Returns:
        A `dataclasses.Field`.

    Raises:
        DefinitionError: if `metadata` already has one of the keys `"static"` and `"converter"`.

    !!! Example

        >>> import ecliptic as ec
        >>> class Scale(ec.Module):
        ...     factor: float = ec.field(converter=float)
        ...     name: str = ec.field(static=True, default="scale")
        >>> Scale(2, "double")
        Scale(factor=2.0, name='double')
        >>> Scale("0.5").factor
        0.5
    """
    metadata = dict(kwargs.pop("metadata", None) or {})
    for key, option in ((STATIC, "static"), (CONVERTER, "converter")):
        if key in metadata:
            raise DefinitionError(
                f"`field(metadata=...)` has the key {key!r} (value {metadata[key]!r}), which is "
                f"reserved for the option of that name: write `field({option}=...)`."
            )
    if converter is not None:
        if not callable(converter):
            raise DefinitionError(
                f"`field(converter=...)` must be callable; got {converter!r} of type "
                f"`{type(converter).__name__}`."
            )
        metadata[CONVERTER] = converter
    if static:
        metadata[STATIC] = True
    return dataclasses.field(metadata=metadata, **kwargs)


def is_static(declared: "dataclasses.Field[Any]") -> bool:
    """Whether a declared field is static."""
    return bool(declared.metadata.get(STATIC, False))


def converter_of(declared: "dataclasses.Field[Any]") -> Callable[[Any], Any] | None:
    """The converter of a declared field, if it has one."""
    return declared.metadata.get(CONVERTER)
