"""Which arguments of a call are meant, and which leaves of them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.tree_util import all_leaves, tree_leaves
from jaxtyping import PyTree

from ecliptic.errors import ArgumentError, ArgumentTypeError
from ecliptic.transform._wrapper import name_of
from ecliptic.tree import filter, format_path, tree_at

# An argument as the user names it: by position, by name, or None for the first one.
Place = int | str | None

# An argument as a call holds it: an index into `args`, or a name in `kwargs`.
Key = int | str


def as_places(argnums: Any, argnames: Any) -> tuple[tuple[Place, ...], bool]:
    """Reads `argnums` and `argnames`.

    Returns:
        The places, and whether they were given as one place and not as a sequence.
    """
    if argnums is not None and argnames is not None:
        raise ArgumentError(
            f"Give either `argnums` or `argnames`; got both: argnums={argnums!r} and "
            f"argnames={argnames!r}."
        )
    option, given, kind = (
        ("argnums", argnums, int) if argnames is None else ("argnames", argnames, str)
    )
    if given is None:
        return (None,), True
    single = isinstance(given, kind | np.integer) and not isinstance(given, bool)
    places = (given,) if single else tuple(given) if isinstance(given, Sequence) else ()
    if not places or not all(isinstance(p, kind | np.integer) for p in places):
        raise ArgumentTypeError(
            f"`{option}` must be of type `{kind.__name__}`, or a non-empty sequence of such; got "
            f"{given!r}."
        )
    if len(set(places)) < len(places):
        raise ArgumentError(f"`{option}` names an argument more than once; got {given!r}.")
    return tuple(p if isinstance(p, str) else int(p) for p in places), single


class Call:
    """The arguments of one call."""

    __slots__ = ("args", "fun", "kwargs")

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.fun = fun
        self.args = args
        self.kwargs = kwargs

    def find_all(self, places: Sequence[Place]) -> list[Key]:
        """Where the arguments are. They may be named one way and given the other way.

        Raises:
            ArgumentTypeError: if one was not given.
            ArgumentError: if two of them are the same.
        """
        keys = [self.find(place) for place in places]
        if len(set(keys)) < len(keys):
            raise ArgumentError(
                f"`argnums` names an argument of `{name_of(self.fun)}` more than once: of the "
                f"{len(self.args)} positional arguments it names {list(places)}."
            )
        return keys

    def find(self, place: Place) -> Key:
        """Where the argument is.

        Raises:
            ArgumentTypeError: if it was not given.
        """
        if place is None:
            return self._find_first()
        if isinstance(place, int):
            return self._find_by_position(place)
        if place in self.kwargs:
            return place
        names = positional_parameters(self.fun)
        if place in names and names.index(place) < len(self.args):
            return names.index(place)
        raise self._missing(f"`argnames` asks for `{place}`")

    def _find_first(self) -> Key:
        for index, value in enumerate(self.args):
            # The first argument of a class method is the class: the next one is meant.
            if not isinstance(value, type):
                return index
        names = positional_parameters(self.fun)[len(self.args) :]
        if names and names[0] in self.kwargs:
            return names[0]
        what = f"`{names[0]}`" if names else "the first one"
        raise self._missing(f"by default the first argument is differentiated, {what}")

    def _find_by_position(self, place: int) -> Key:
        if -len(self.args) <= place < len(self.args):
            return place % len(self.args)
        names = positional_parameters(self.fun)
        if 0 <= place < len(names) and names[place] in self.kwargs:
            return names[place]
        raise self._missing(f"`argnums` asks for argument {place}")

    def _missing(self, which: str) -> ArgumentTypeError:
        given = f"{len(self.args)} positional arguments"
        if self.kwargs:
            given += f" and the keywords {', '.join(f'`{k}`' for k in self.kwargs)}"
        return ArgumentTypeError(
            f"The argument of `{name_of(self.fun)}` to differentiate is missing: {which}, and the "
            f"call has {given}. Pass it, or choose another one with `argnums=` or `argnames=`."
        )

    def get(self, key: Key) -> Any:
        """The argument itself."""
        return self.args[key] if isinstance(key, int) else self.kwargs[key]

    def name(self, key: Key) -> str:
        """What messages call the argument: the name of its parameter where there is one."""
        if isinstance(key, str):
            return key
        names = positional_parameters(self.fun)
        return names[key] if key < len(names) else f"args[{key}]"

    def path(self, path: tuple[Any, ...]) -> str:
        """The text of a path into `(args, kwargs)`."""
        if len(path) < 2:
            return "the arguments"
        key = path[1].idx if path[0].idx == 0 else path[1].key
        return format_path(path[2:], root=self.name(key))

    def run(self, replaced: Mapping[Key, Any]) -> Any:
        """Calls the function with some arguments replaced."""
        args = [replaced.get(i, value) for i, value in enumerate(self.args)]
        kwargs = {name: replaced.get(name, value) for name, value in self.kwargs.items()}
        return self.fun(*args, **kwargs)


def positional_parameters(fun: Callable[..., Any]) -> list[str]:
    """The names of the parameters that can be given by position; none where they are unknown."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in kinds]


class _Picked:
    """Marks a leaf below a node that a selector picked."""


_PICKED = _Picked()
_LEFT = _Picked()


class Specification(NamedTuple):
    """A filter specification for `wrt=` with nodes to stop at.

    Args:
        spec: the specification.
        is_leaf: says of a node whether functions in `spec` are asked about it as a whole.
    """

    spec: Any
    is_leaf: Callable[[Any], bool]


def with_is_leaf(wrt: Any, is_leaf: Callable[[Any], bool] | None, transform: str) -> Any:
    """What `wrt=` and `is_leaf=` say together."""
    if is_leaf is None:
        return wrt
    if wrt is None:
        raise ArgumentError(
            f"`{transform}(is_leaf=...)` says where the specification in `wrt=` stops; there is "
            f"no `wrt=`."
        )
    return Specification(wrt, is_leaf)


def picked(wrt: Any, tree: PyTree) -> list[bool]:
    """Says of each leaf whether `wrt` picks it.

    Args:
        wrt: a selector, that is a function from the tree to a node of it or to a sequence of nodes
            as `tree_at` takes it; or a filter specification, as `filter` takes it.
        tree: the tree.
    """
    if isinstance(wrt, Specification):
        return _by_specification(wrt.spec, tree, wrt.is_leaf)
    # A mask of a callable tree is of its type, and callable as well.
    is_mask = type(wrt) is type(tree) and not all_leaves([wrt])
    if is_mask or not callable(wrt):
        return _by_specification(wrt, tree)
    try:
        answer = wrt(tree)
    except Exception as of_selector:
        # A function of leaves may stumble over the whole tree. If it does over the leaves too,
        # it was a selector with a mistake.
        try:
            return _by_specification(wrt, tree)
        except Exception:
            raise of_selector from None
    if isinstance(answer, bool | np.bool_):
        return _by_specification(wrt, tree)
    marked = tree_at(
        wrt, tree, replace_fn=lambda node: jax.tree_util.tree_map(lambda _: _PICKED, node)
    )
    return [leaf is _PICKED for leaf in tree_leaves(marked)]


def _by_specification(
    spec: Any, tree: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> list[bool]:
    kept = filter(tree, spec, replace=_LEFT, is_leaf=is_leaf)
    nodes = tree_leaves(tree, is_leaf=is_leaf)
    verdicts = tree_leaves(kept, is_leaf=is_leaf)
    return [
        verdict is not _LEFT
        for node, verdict in zip(nodes, verdicts, strict=True)
        for _ in tree_leaves(node)
    ]
