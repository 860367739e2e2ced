"""`EnumerationItem`: what the attributes of an enumeration are."""

from typing import Any, TypeVar, final

import jax
import jax.numpy as jnp
import numpy as np
import wadler_lindig as wl
from jaxtyping import ArrayLike, Bool

from ecliptic import _jax
from ecliptic.errors import EnumerationError, UnhashableError
from ecliptic.module import Module, field
from ecliptic.runtime._error_if import branched_error_if
from ecliptic.tree import register_formatter

_T = TypeVar("_T")

# Of more elements than this a batch shows how often each member is there.
_LISTED = 8


def listed(cls: Any) -> str:
    """The items of an enumeration, for a message."""
    names = cls._members.names
    return ", ".join(f"`{cls.__qualname__}.{name}`" for name in names) or "no members at all"


def check_items(cls: Any, what: str, *items: Any) -> None:
    """Refuses what is no item of the enumeration.

    Raises:
        EnumerationError: if one is of another enumeration, or no item at all.
    """
    for item in items:
        if not isinstance(item, EnumerationItem):
            raise EnumerationError(
                f"`{what}` takes items of `{cls.__qualname__}`, and got {item!r} of type "
                f"`{type(item).__qualname__}`. Items are {listed(cls)}."
            )
        other = item._enumeration
        if other is not cls:
            way_out = (
                f"Use `{cls.__qualname__}.promote(item)` first."
                if issubclass(cls, other)
                else f"Items are {listed(cls)}."
            )
            raise EnumerationError(
                f"`{what}` takes items of `{cls.__qualname__}`, and got one of "
                f"`{other.__qualname__}`. {way_out}"
            )


@final
class EnumerationItem(Module):
    """An item of an `Enumeration`, or a batch of them. Enumerations make these.

    Args:
        _value: the number of the member, or an array of numbers.
        _enumeration: the enumeration.
    """

    _value: Any
    _enumeration: Any = field(static=True)

    @property
    def message(self) -> str:
        """The message of the member; `"traced"` while it is not known which one it is."""
        if self.is_traced():
            return "traced"
        value, messages = np.asarray(self._value), self._enumeration._members.messages
        if not all(number in range(len(messages)) for number in value.ravel().tolist()):
            name = self._enumeration.__qualname__
            raise EnumerationError(
                f"An item of `{name}` holds the number {value}, and there are {len(messages)} "
                f"members. Items must not be computed with; choose among them with `{name}.where`."
            )
        return messages[value] if value.ndim == 0 else str(np.array(messages)[value])

    def is_traced(self) -> bool:
        """Whether it is not known yet which member this is, in a program that is being traced."""
        return isinstance(self._value, _jax.Tracer)

    def error_if(self, token: _T, pred: Bool[ArrayLike, "..."]) -> _T:
        """Fails with the message of the member if `pred` is true: see `error_if`.

        Args:
            token: what must not be used then: any PyTree with an array in it.
            pred: a boolean, or an array of them that fits the shape of a batch of items.

        Returns:
            `token`. Use it, for the check to be done.

        Raises:
            RuntimeCheckError: if `pred` is true.
        """
        members = self._enumeration._members
        pairs = zip(members.messages, members.names, strict=True)
        messages = [
            message or f"{self._enumeration.__qualname__}.{name}" for message, name in pairs
        ]
        return branched_error_if(token, pred, self._value, messages)

    def __eq__(self, other: object) -> Any:
        check_items(self._enumeration, "==", other)
        values = self._value, other._value  # pyright: ignore[reportAttributeAccessIssue]
        if any(isinstance(value, _jax.Tracer) for value in values):
            return jnp.equal(*values)
        # What is known while a program is traced stays known, and may be the key of a dictionary.
        with jax.ensure_compile_time_eval():
            return jnp.equal(*values)

    def __ne__(self, other: object) -> Any:
        return jnp.logical_not(self == other)

    def __hash__(self) -> int:
        name = self._enumeration.__qualname__
        if self.is_traced() or np.ndim(self._value) != 0:
            why = "is traced" if self.is_traced() else "is a batch of them"
            raise UnhashableError(
                f"An item of `{name}` that {why} has no hash, and cannot be the key of a "
                f"dictionary. Look values up by number instead: `values[item._value]`, with an "
                f"array `values` of one for each member."
            )
        return hash((self._enumeration, int(self._value)))


def _several(value: Any, names: list[str], messages: list[str]) -> str:
    """The messages of a few items, as an array; or how often each of many members is there."""
    labels = [*names, "unknown"]
    known = (value >= 0) & (value < len(names))
    if value.size <= _LISTED:
        texts = [*map(_in_short, messages, names), labels[-1]]
        shown = np.array(texts)[np.where(known, value, -1)]
        return np.array2string(shown, max_line_width=10_000).replace("\n", "")
    found, counts = np.unique(np.array(labels)[np.where(known, value, -1)], return_counts=True)
    shape = ",".join(map(str, value.shape))
    counted = (f"{count} × {name}" for name, count in zip(found, counts, strict=True))
    return f"[{shape}]: {', '.join(counted)}"


def _document(item: EnumerationItem, format_part: Any) -> wl.AbstractDoc:
    cls = item._enumeration
    value, names, messages = item._value, cls._members.names, cls._members.messages
    if item.is_traced():
        text = "traced"
    elif not isinstance(value, (jax.Array, np.ndarray, np.generic)):
        # Something has put another leaf there: a `None`, a specification.
        text = repr(value)
    elif np.ndim(value) != 0:
        text = _several(np.asarray(value), names, messages)
    else:
        number = int(value)
        known = number in range(len(names))
        text = _in_short(messages[number], names[number]) if known else "unknown"
    return wl.TextDoc(f"{cls.__module__}.{cls.__qualname__}<{text}>")


def _in_short(message: str, name: str) -> str:
    # The message, as Equinox shows it; but some fill a page.
    return message if message and "\n" not in message else name


register_formatter(EnumerationItem, _document)
