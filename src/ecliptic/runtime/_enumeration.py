"""`Enumeration`: named outcomes that a program can compute, each with a message.

Which of several things happened is often known only once a program runs, and may differ from
element to element of a batch. So an item of an enumeration is a PyTree: its one leaf is an `int32`,
the number of the member, and its structure is the enumeration that it belongs to.

A class statement makes the items, once. A subclass has items of its own, of its own structure, for
the members that it inherits too; `promote` turns an item of a base class into one of these.

To a type checker the items are instances of their enumeration, and the enumeration is an
`enum.Enum`: nothing else makes items of `name = "message"` in the body of a class.
"""

import difflib
import enum
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool

from ecliptic.errors import DefinitionError, EclipticWarning, EnumerationError, FrozenError
from ecliptic.runtime._item import EnumerationItem, check_items, listed
from ecliptic.tree import is_array

_T = TypeVar("_T")


class member:
    """A member of an enumeration, in a form that type checkers understand better.

    In the body of the class, `name = member("message")` means the same as `name = "message"`. With
    the latter, the class is final to pyright, as Python's own enumerations are, and mypy takes the
    items for strings. With the former, both understand all that an enumeration can do.

    Args:
        message: what to tell a user if this is the outcome.

    !!! Example

        >>> from ecliptic.runtime import Enumeration, member
        >>> class Outcome(Enumeration):
        ...     success = member("")
        ...     failure = member("The solver diverged.")
        >>> Outcome[Outcome.failure]
        'The solver diverged.'
    """

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    if TYPE_CHECKING:

        def __get__(self, instance: None, owner: type[_T], /) -> _T: ...


class _Members:
    """What an enumeration knows of its members; a position is a member's number."""

    __slots__ = ("messages", "names")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.messages: list[str] = []

    def add(self, name: str, message: str, owner: str) -> None:
        """Adds a member. One that is there keeps its number, and gets the message."""
        if name not in self.names:
            self.names.append(name)
            self.messages.append(message)
            return
        number = self.names.index(name)
        known = self.messages[number]
        if known != message:
            # From the class statement: `add`, `_collect`, the metaclass's `__new__`.
            warnings.warn(
                f"The enumeration `{owner}` defines the member `{name}` anew: its message was "
                f"{known!r}, and is now {message!r}. Items promoted to `{owner}` have the new one. "
                "If they mean different things, give one of them another name.",
                EclipticWarning,
                stacklevel=4,
            )
            self.messages[number] = message


def _collect(name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _Members:
    """Takes the members out of a class's body, and joins them to those of the bases."""
    members = _Members()
    for base in bases:
        known = getattr(base, "_members", None)
        if known is not None:
            for pair in zip(known.names, known.messages, strict=True):
                members.add(*pair, name)
    for key in [key for key in namespace if not _is_dunder(key)]:
        value = namespace.pop(key)
        message = value.message if isinstance(value, member) else value
        if not isinstance(message, str):
            raise DefinitionError(
                f"The body of an enumeration holds members only, each with a message, and "
                f"`{key}` of `{name}` is {value!r} of type `{type(value).__qualname__}`. Write "
                f'`{key} = "message"`; an empty message will do. Functions have to live outside.'
            )
        if key in _RESERVED:
            raise DefinitionError(
                f"The enumeration `{name}` cannot have a member `{key}`: every enumeration has a "
                f"method of this name. Give the member another one."
            )
        members.add(key, message, name)
    return members


_RESERVED = ("where", "promote", "mro", "_members", "_items")


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


class EnumerationMeta(type):
    """The class of enumerations: what `Outcome[item]`, `len(Outcome)`, `item in Outcome` do."""

    _members: _Members
    _items: tuple["EnumerationItem", ...]

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        if not bases:
            members = _Members()
        else:
            members = _collect(name, bases, namespace)
            namespace.setdefault("__doc__", _documentation(members))
        cls = super().__new__(mcs, name, bases, namespace)
        items = tuple(EnumerationItem(_number(i), cls) for i in range(len(members.names)))
        for key, value in {"_members": members, "_items": items}.items():
            type.__setattr__(cls, key, value)
        for key, item in zip(members.names, items, strict=True):
            type.__setattr__(cls, key, item)
        return cls

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise EnumerationError(
            f"The enumeration `{cls.__qualname__}` cannot be called: its items are its attributes, "
            f"{listed(cls)}."
        )

    def __getitem__(cls, item: Any) -> str:
        if not isinstance(item, EnumerationItem):
            raise EnumerationError(
                f"`{cls.__qualname__}[...]` is the message of an item, and got {item!r} of type "
                f"`{type(item).__qualname__}`. Items are {listed(cls)}."
            )
        check_items(cls, f"{cls.__qualname__}[...]", item)
        return item.message

    def __len__(cls) -> int:
        return len(cls._items)

    def __bool__(cls) -> bool:
        return True

    def __iter__(cls) -> Iterator[Any]:
        return iter(cls._items)

    def __contains__(cls, item: object) -> bool:
        return isinstance(item, EnumerationItem) and item._enumeration is cls

    def __instancecheck__(cls, instance: object) -> bool:
        # An item of a subclass may be a member that this class lacks.
        if isinstance(instance, EnumerationItem):
            return cls is Enumeration or instance._enumeration is cls
        return False

    def __getattr__(cls, name: str) -> Any:
        if _is_dunder(name) or name in _RESERVED:
            raise AttributeError(name)
        close = difflib.get_close_matches(name, cls._members.names, n=1)
        hint = f" Did you mean `{close[0]}`?" if close else ""
        raise AttributeError(
            f"The enumeration `{cls.__qualname__}` has no member `{name}`. It has {listed(cls)}."
            f"{hint}"
        )

    def __setattr__(cls, name: str, value: Any) -> None:
        # What is no member does no harm: a property for a name of an earlier version, say.
        if name in cls.__dict__.get("_members", cls._members).names:
            raise FrozenError(
                f"`{name}` of the enumeration `{cls.__qualname__}` cannot be assigned to: members "
                "are fixed with the class. Inherit from it to add some."
            )
        super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        raise FrozenError(
            f"`{name}` of the enumeration `{cls.__qualname__}` cannot be deleted: members are "
            "fixed with the class."
        )

    def __dir__(cls) -> list[str]:
        return [*cls._members.names, "promote", "where"]


def _number(value: int) -> np.ndarray:
    number = np.array(value, np.int32)
    number.flags.writeable = False
    return number


def _documentation(members: _Members) -> str:
    pairs = zip(members.names, members.messages, strict=True)
    lines = [f"- `{name}`: {message}" if message else f"- `{name}`" for name, message in pairs]
    return "An enumeration of:\n\n" + "\n".join(lines)


if TYPE_CHECKING:
    # Known to be true to mypy, and to no other checker. To mypy, no `enum.Enum` can be inherited
    # from, or be indexed with an item. It sees a plain class, of which `member` makes the items.
    MYPY = False

    class _Items:
        @classmethod
        def where(cls, pred: Bool[ArrayLike, "..."], a: Self, b: Self) -> Self: ...
        @classmethod
        def promote(cls, item: "Enumeration") -> Self: ...
        @property
        def message(self) -> str: ...
        def is_traced(self) -> bool: ...
        def error_if(self, token: _T, pred: Bool[ArrayLike, "..."]) -> _T: ...
        def __eq__(self, other: object) -> Bool[Array, "..."]: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Bool[Array, "..."]: ...  # type: ignore[override]
        def __hash__(self) -> int: ...

    if MYPY:

        class _PlainType(type):
            def __getitem__(cls: type[_T], item: _T, /) -> str: ...
            def __contains__(cls, member: object) -> bool: ...
            def __iter__(cls: type[_T]) -> Iterator[_T]: ...
            def __len__(cls) -> int: ...

        class Enumeration(  # pyright: ignore[reportRedeclaration]
            _Items, metaclass=_PlainType
        ):
            """What mypy is to make of an enumeration and of its items."""

    else:

        class _EnumType(enum.EnumMeta):
            def __getitem__(cls: type[_T], item: _T, /) -> str: ...  # pyright: ignore
            def __contains__(cls: type[_T], member: object) -> bool: ...

        class Enumeration(_Items, enum.Enum, metaclass=_EnumType):
            """What other type checkers are to make of an enumeration and of its items."""

else:

    class Enumeration(metaclass=EnumerationMeta):
        """Base class of enumerations, whose items are PyTrees and have messages.

        Write each member as `name = "message"`. The items are then attributes of the class, and
        are PyTrees with one `int32`: they are returned from `jax.jit`, batched by `jax.vmap`,
        carried by loops. A subclass has the members of its bases, and adds its own.

        - `Outcome[item]`: the message, once it is known which member an item is. `item.message`
          is the same.
        - `item == Outcome.failure`: a boolean array. Items of another enumeration are refused.
        - `len(Outcome)`, iteration and `item in Outcome` go over the members; `isinstance(item,
          Outcome)` tells whether it is an item of just this enumeration.
        - `item.error_if(x, pred)`: `x`, with a check that fails with the item's message.
        - `item.is_traced()`: whether it is not known yet which member it is.

        An item that is known can be the key of a dictionary. Type checkers see an `enum.Enum`;
        see `member` for enumerations that are to be inherited from.

        Raises:
            DefinitionError: in a class statement, if a member is no string.
            EnumerationError: if items of different enumerations are mixed, or others than items
                are used as such.
            FrozenError: if a member is assigned to.

        !!! Example

            >>> from ecliptic.runtime import Enumeration
            >>> import jax, jax.numpy as jnp
            >>> class Outcome(Enumeration):
            ...     success = ""
            ...     failure = "The solver diverged."
            >>> @jax.jit
            ... def solve(x):
            ...     return Outcome.where(jnp.isfinite(x), Outcome.success, Outcome.failure)
            >>> Outcome[solve(jnp.inf)]
            'The solver diverged.'
            >>> outcomes = jax.vmap(solve)(jnp.array([1.0, jnp.nan]))
            >>> outcomes
            ecliptic.runtime._enumeration.Outcome<['success' 'The solver diverged.']>
            >>> (outcomes == Outcome.success).tolist()
            [True, False]
        """

        @classmethod
        def where(cls, pred: Bool[ArrayLike, "..."], a: Any, b: Any) -> Any:
            """Chooses between two items.

            Args:
                pred: a boolean, or an array of them for a batch of items.
                a: the item where `pred` is true.
                b: the item where it is false.

            Returns:
                An item of this enumeration, or a batch of them.

            Raises:
                EnumerationError: if `a` or `b` is no item of this enumeration, or `pred` is not
                    boolean.
            """
            check_items(cls, f"{cls.__qualname__}.where", a, b)
            if isinstance(pred, (bool, np.bool)):
                return a if pred else b
            if not is_array(pred) or pred.dtype != np.dtype(bool):
                raise EnumerationError(
                    f"`pred` of `{cls.__qualname__}.where` is a boolean or an array of booleans, "
                    f"and it is {pred!r} of type `{type(pred).__qualname__}`."
                )
            if a._value is b._value and pred.ndim == 0:
                return a
            return EnumerationItem(jnp.where(pred, a._value, b._value), cls)

        @classmethod
        def promote(cls, item: Any) -> Any:
            """Makes an item of this enumeration of one that belongs to a base class.

            Args:
                item: an item of a base class. May be a batch, or traced.

            Returns:
                The item with the same name here.

            Raises:
                EnumerationError: if `item` is no such item.

            !!! Example

                >>> from ecliptic.runtime import Enumeration
                >>> class Outcome(Enumeration):
                ...     success = ""
                >>> class Fine(Outcome):
                ...     partial = "Only some of the steps were made."
                >>> bool(Fine.promote(Outcome.success) == Fine.success)
                True
            """
            known = isinstance(item, EnumerationItem)
            if known and item._enumeration is cls:
                raise EnumerationError(
                    f"`{cls.__qualname__}.promote` takes items of the enumerations that "
                    f"`{cls.__qualname__}` inherits from, and got one of `{cls.__qualname__}` "
                    "itself: use it as it is."
                )
            if not (known and issubclass(cls, item._enumeration)):
                what = (
                    f"one of `{item._enumeration.__qualname__}`"
                    if isinstance(item, EnumerationItem)
                    else f"{item!r} of type `{type(item).__qualname__}`"
                )
                bases = ", ".join(f"`{base.__qualname__}`" for base in cls.__mro__[1:-2])
                raise EnumerationError(
                    f"`{cls.__qualname__}.promote` takes items of the enumerations that "
                    f"`{cls.__qualname__}` inherits from ({bases or 'none'}), and got {what}."
                )
            names = item._enumeration._members.names
            numbers = [cls._members.names.index(name) for name in names]
            if numbers == list(range(len(numbers))):
                return EnumerationItem(item._value, cls)
            return EnumerationItem(jnp.asarray(numbers, jnp.int32)[item._value], cls)
