"""`Sequential`: layers one after the other."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jaxtyping import Array, PRNGKeyArray

from ecliptic.errors import LayerArgumentError
from ecliptic.module import field, is_module
from ecliptic.nn._activation import apply_elementwise, is_elementwise
from ecliptic.nn._random import split
from ecliptic.nn._stateful import ABSENT, StatefulLayer


class Sequential(StatefulLayer):
    """Applies layers one after the other.

    A layer is any function of one array. Layers that take a keyword argument `key` get a key of
    their own; layers with a state (see `StatefulLayer`) take it from the layer before and give it
    to the one after. A `Sequential` is a layer itself, with a state if one of its layers has one.

    Indexing gives a layer, by number or name, and slicing a shorter `Sequential`; iteration and
    `len` work as for tuples.

    Args:
        layers: the layers in order: an iterable of them, a dict from their names to them, or an
            iterable of such pairs.

    Raises:
        LayerArgumentError: a layer cannot be called, or two have the same name.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> linear = nn.Linear(3, 2, key=jax.random.key(0))
        >>> model = nn.Sequential([linear, jax.nn.relu, nn.Dropout(0.1)])
        >>> model(jnp.ones(3), key=jax.random.key(1)).shape
        (2,)
        >>> len(model[:2])
        2
        >>> nn.Sequential({"map": linear, "activation": jax.nn.relu})["map"] is linear
        True
    """

    layers: tuple[Callable, ...]
    names: tuple[str, ...] | None = field(static=True, repr=False)

    def __init__(
        self,
        layers: Sequence[Callable] | Mapping[str, Callable] | Sequence[tuple[str, Callable]],
    ):
        self.names, layers = _without_names(layers)
        for i, layer in enumerate(layers):
            if not callable(layer):
                raise LayerArgumentError(
                    f"`Sequential` got {layer!r} of type `{type(layer).__name__}` as layers[{i}], "
                    "which cannot be called. A layer is a function of one array."
                )
        self.layers = layers

    def __call__(
        self,
        x: Array,
        state: Any = ABSENT,
        *,
        key: PRNGKeyArray | None = None,
        **kwargs: Any,
    ) -> Any:
        """Apply the layers.

        Args:
            x: the input of the first layer.
            state: the state, for the layers that have one.
            key: a PRNG key, which is split into one for each layer. A layer that draws random
                numbers needs it.
            **kwargs: each is passed to all layers that have a parameter of this name.

        Returns:
            The output of the last layer; with a state, the pair of output and new state.

        Raises:
            LayerArgumentError: a layer has a state and none was given, or no layer takes a
                keyword argument.
        """
        for name in kwargs:
            if not _takes(self, name):
                kinds = ", ".join(f"`{type(layer).__name__}`" for layer in self.layers)
                raise LayerArgumentError(
                    f"`Sequential` got a keyword argument {name!r}, which none of its layers "
                    f"({kinds}) has as a parameter. Leave it out, or add it to `__call__` of the "
                    "layer that should get it."
                )
        number = len(self.layers)
        keys = [None] * number if key is None or number == 0 else split(key, number)
        for i, layer in enumerate(self.layers):
            if not kwargs and is_elementwise(layer):
                x = apply_elementwise(layer, x)
                continue
            given = {name: value for name, value in kwargs.items() if _takes(layer, name)}
            if _takes(layer, "key"):
                given["key"] = keys[i]
            if _is_stateful(layer):
                if state is ABSENT:
                    raise _without_state(i, layer)
                x, state = layer(x, state, **given)
            else:
                x = layer(x, **given)
        return x if state is ABSENT else (x, state)

    def __getitem__(self, i: int | slice | str) -> Callable:
        if isinstance(i, slice):
            names = None if self.names is None else self.names[i]
            layers = self.layers[i]
            return Sequential(layers if names is None else tuple(zip(names, layers, strict=True)))
        if isinstance(i, str) and self.names is not None:
            if i not in self.names:
                raise LayerArgumentError(
                    f"`Sequential` has no layer named {i!r}; its layers are {list(self.names)}."
                )
            i = self.names.index(i)
        # (A name where there are none is refused by the tuple.)
        number: Any = i
        return self.layers[number]

    def __iter__(self) -> Iterator[Callable]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def is_stateful(self) -> bool:
        """Say whether one of the layers takes and returns a state.

        Returns:
            Whether `state` has to be given at a call.
        """
        return any([_is_stateful(layer) for layer in self.layers])


def _without_names(layers: Any) -> tuple[tuple[str, ...] | None, tuple[Any, ...]]:
    """Names and layers, of all that `Sequential` takes."""
    pairs = tuple(layers.items()) if isinstance(layers, Mapping) else tuple(layers)
    named = pairs and all(type(p) is tuple and len(p) == 2 and isinstance(p[0], str) for p in pairs)
    if not named:
        return None, pairs
    names = tuple([name for name, _ in pairs])
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise LayerArgumentError(
            f"`Sequential` got several layers of the same name: {sorted(twice)}. Give each a name "
            "of its own, or leave out the names."
        )
    return names, tuple([layer for _, layer in pairs])


def _is_stateful(layer: Any) -> bool:
    return isinstance(layer, StatefulLayer) and layer.is_stateful()


def _without_state(i: int, layer: Any) -> LayerArgumentError:
    return LayerArgumentError(
        f"`Sequential` was called without a state, but layers[{i}], a `{type(layer).__name__}`, "
        "has one. Call it as `y, state = sequential(x, state)`."
    )


def _takes(layer: Any, name: str) -> bool:
    """Whether a layer has a parameter to which `name` can be passed."""
    if isinstance(layer, Sequential):
        return name == "key" or any([_takes(inner, name) for inner in layer.layers])
    if is_module(layer):
        # The class decides, except for wrappers, whose signature is that of what they hold.
        names = _keywords_of_method(type(layer).__call__)
        if names is not None:
            return name in names
    names = _keywords(layer)
    return names is None or name in names


@functools.lru_cache(maxsize=1024)
def _keywords_of_method(method: Any) -> frozenset[str] | None:
    return _keywords(method)


def _keywords(function: Any) -> frozenset[str] | None:
    """The names that a function takes as keywords; `None` if it takes any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return frozenset(p.name for p in parameters if p.kind in kinds)
