"""`State`: what changes from call to call, apart from the model."""

from collections.abc import Iterable
from typing import Any, TypeVar
from weakref import ref

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import wadler_lindig as wl
from jaxtyping import PyTree

from ecliptic.errors import OldStateError, StateKeyError, StateValueError
from ecliptic.state._index import StateIndex, Taken, is_index, named_indices, place_of
from ecliptic.state._value import as_entry, fit
from ecliptic.tree import register_formatter, tree_pformat
from ecliptic.tree._passage import Expendable, Passage, current_passage

Value = TypeVar("Value")


class Keys(tuple[Any, ...]):
    """The keys of a state, as JAX holds them: equal where the keys are.

    `origin` leads to the state that was taken apart. A treedef lives longer than a state, so it
    must not hold its arrays.
    """

    origin: "ref[Expendable] | None" = None


class State(Expendable):
    """What a model's layers carry from one call to the next, such as running statistics.

    A mapping from each `StateIndex` in a model to its value, a PyTree of arrays. It is not changed
    in place: `set` and `update` return a new state, and the old one can't be used from then on. So
    a mistake such as calling two layers with the same state raises an error, in place of losing
    what the first layer did. This holds through `filter_jit`, `filter_vmap`, `filter_grad`,
    `filter_scan` and the other loops and branches: a state that was set inside is old outside,
    and the state that comes out is the new one. Reading uses nothing up.

    A state is a PyTree: its leaves are the arrays, in the order of the model's fields.

    Args:
        model: a model with `StateIndex`es that have their initial values. Use `make_with_state`,
            which also takes them out of the model.

    Raises:
        StateValueError: an index in the model has no initial value any more, or its value is no
            PyTree of arrays.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> index, state = ec.nn.make_with_state(ec.nn.StateIndex)(jnp.zeros(2))
        >>> new = state.set(index, jnp.ones(2))
        >>> new.get(index)
        Array([1., 1.], dtype=float32)
        >>> state
        State(~old~)
    """

    __slots__ = ("_entries", "_outside")

    # None in place of the entries of an old state: their memory is free then.
    _entries: dict[Any, Any] | None
    # The passage and the state outside of a transformation that this one stands for inside.
    _outside: "tuple[Passage, ref[Expendable]] | None"

    def __init__(self, model: PyTree):
        entries, owners = {}, {}
        for path, index in named_indices(model):
            if isinstance(index.init, Taken):
                raise _without_value(path, index)
            if owners.setdefault(index.marker, index) is not index:
                raise _same_name(path, index)
            entries[index.marker] = as_entry(index.init, index.marker)
        self._entries = entries
        self._outside = None

    def get(self, item: StateIndex[Value]) -> Value:
        """Read the value of an index.

        Args:
            item: the index.

        Returns:
            Its value.

        Raises:
            OldStateError: this state is old.
            StateKeyError: this state has no value for the index.
        """
        return self._current()[self._key(item)]

    def set(self, item: StateIndex[Value], value: Value) -> "State":
        """Make a state with a new value for one index. This state is old from then on.

        Args:
            item: the index.
            value: the value, of the structure, shapes and dtypes of the one before.

        Returns:
            The new state.

        Raises:
            OldStateError: this state is old already.
            StateKeyError: this state has no value for the index.
            StateValueError: the value has another structure, shape or dtype than the one before.
        """
        entries = self._current()
        key = self._key(item)
        return self._replaced({key: fit(entries[key], value, key)})

    def substate(self, pytree: PyTree) -> "State":
        """Make a state of the values that one part of a model needs. This state stays valid.

        Args:
            pytree: a part of the model, or any PyTree with `StateIndex`es in it.

        Returns:
            The smaller state; `update` puts it back.

        Raises:
            OldStateError: this state is old.
            StateKeyError: this state has no value for an index in `pytree`.
        """
        entries = self._current()
        nodes = jax.tree.leaves(pytree, is_leaf=is_index)
        keys = [self._key(node) for node in nodes if isinstance(node, StateIndex)]
        return _make({key: entries[key] for key in keys})

    def update(self, substate: "State") -> "State":
        """Make a state with the values of a smaller one. This state is old from then on.

        Args:
            substate: a state that `substate` made, or one that was made of it.

        Returns:
            The new state.

        Raises:
            OldStateError: one of the two states is old.
            StateValueError: `substate` is no state, or has values that this one has not.
        """
        if not isinstance(substate, State):
            raise StateValueError(
                f"`State.update` takes a `State`, which `State.substate` makes; got {substate!r} "
                f"of type `{type(substate).__name__}`."
            )
        entries, new = self._current(), substate._current()
        more = [key for key in new if key not in entries]
        if more:
            raise StateValueError(
                f"`State.update` takes a substate of this state, but it has values for "
                f"{_listed(more)}, which this state, with {_listed(entries)}, has not. Make it "
                "with `state.substate(part_of_the_model)`."
            )
        return self._replaced({key: fit(entries[key], value, key) for key, value in new.items()})

    @property
    def is_used(self) -> bool:
        """Whether this state is old."""
        return self._entries is None

    def use_up(self) -> None:
        """Make this state old. `set` and `update` do so."""
        if self._entries is None:
            return
        self._entries = None
        if self._outside is not None:
            passage, outside = self._outside
            passage.report_used(outside)

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The values, and the keys.

        Raises:
            OldStateError: this state is old.
        """
        entries = self._current()
        keys = Keys(entries)
        keys.origin = ref(self)
        return tuple(entries.values()), keys

    @classmethod
    def tree_unflatten(cls, keys: tuple[Any, ...], values: Iterable[Any]) -> "State":
        """A state of these keys and values."""
        state = _make(dict(zip(keys, values, strict=True)))
        passage = current_passage()
        origin = getattr(keys, "origin", None)
        if passage is not None and origin is not None:
            state._outside = passage, origin
        return state

    def _current(self) -> dict[Any, Any]:
        if self._entries is None:
            raise OldStateError(_OLD)
        return self._entries

    def _replaced(self, new: dict[Any, Any]) -> "State":
        state = _make({**self._current(), **new})
        self.use_up()
        return state

    def _key(self, item: Any) -> Any:
        if not isinstance(item, StateIndex):
            raise StateValueError(
                f"Only a `StateIndex` is a key of a `State`; got {item!r} of type "
                f"`{type(item).__name__}`."
            )
        key = item.marker
        entries = self._current()
        if key not in entries:
            raise StateKeyError(
                f"This state has no value for {place_of(key)}; it has values for "
                f"{_listed(entries)}. A state belongs to the model that `make_with_state` returned "
                "with it: make both with one call, and pass the whole state, or the substate of "
                "the right part."
            )
        return key

    def __repr__(self) -> str:
        return tree_pformat(self)

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        # Asked by treescope, which is imported then.
        from treescope import rendering_parts, repr_lib  # noqa: PLC0415

        if self._entries is None:
            return rendering_parts.text("State(~old~)")
        entries = {str(key): value for key, value in self._entries.items()}
        return repr_lib.render_dictionary_wrapper(
            type(self), entries, path=path, subtree_renderer=subtree_renderer
        )

    def __copy__(self) -> "State":
        return _make(dict(self._current()))

    def __deepcopy__(self, memo: dict[int, Any]) -> "State":
        return jax.tree.map(jnp.copy, self)

    def __reduce__(self) -> Any:
        return _from_pairs, (list(self._current().items()),)


def _make(entries: dict[Any, Any]) -> State:
    state = object.__new__(State)
    state._entries = entries
    state._outside = None
    return state


def _from_pairs(pairs: list[tuple[Any, Any]]) -> State:
    return _make(dict(pairs))


class Entry(jtu.DictKey):
    """The key of an entry in paths: written as the place of its index in the model."""

    # Read by transformations that find something wrong with a leaf.
    hint = (
        " This is a state: for one model and a batch of examples it is the same for all of them, "
        "so give the mapped axis a name, `axis_name=`, and build the layers that have a state with "
        "this name, as `BatchNorm(..., axis_name=...)`; for a batch of models, each with a state "
        "of its own, map the state as well, with the axis 0 in `in_axes` and `out_axes`."
    )


def _flatten_with_keys(state: State) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
    values, keys = state.tree_flatten()
    return [
        (Entry(key if isinstance(key, str) else repr(key)), value)
        for key, value in zip(keys, values, strict=True)
    ], keys


jtu.register_pytree_with_keys(
    State, _flatten_with_keys, State.tree_unflatten, flatten_func=State.tree_flatten
)


def _document(state: State, document: Any) -> Any:
    if state._entries is None:
        return wl.TextDoc("State(~old~)")
    pairs = [wl.TextDoc(f"{key}=") + document(value) for key, value in state._entries.items()]
    return wl.bracketed(
        begin=wl.TextDoc("State("), docs=pairs, sep=wl.comma, end=wl.TextDoc(")"), indent=2
    )


register_formatter(State, _document)

_OLD = """Attempted to use old state: a newer one was made of it, by `state.set`, `state.update`, \
or a function that it was passed to. Probably the program reads
```
x, new_state = layer1(x, state)
x, newest_state = layer2(x, state)  # `state` is old here: pass `new_state`
```
Each layer takes the state that the one before returned. If an old state is wanted, because a step \
shall be repeated, copy it beforehand, with `copy.copy(state)`."""


def _listed(keys: Iterable[Any]) -> str:
    names = [f"`{key}`" for key in keys]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more if names else "nothing"


def _same_name(path: str, index: StateIndex[Any]) -> StateValueError:
    return StateValueError(
        f"The `StateIndex` at path `{path}` has the name {place_of(index.marker)}, which another "
        "one in the model has too: both were named as parts of other trees, by `State` or "
        "`delete_init_state`. Make model and state with `make_with_state(Model)(...)`, which names "
        "each by its place."
    )


def _without_value(path: str, index: StateIndex[Any]) -> StateValueError:
    return StateValueError(
        f"The `StateIndex` {place_of(index.marker)} at path `{path}` has no "
        "initial value any more: `make_with_state` or `delete_init_state` took it out. Do not call "
        "`State(model)` on what they return, nor `make_with_state` on a function that returns a "
        "model made by another `make_with_state`; build the layers inside of one "
        "`make_with_state(Model)(...)`."
    )
