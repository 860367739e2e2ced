"""`from_torch`: the weights of a PyTorch model in a model of the same layers."""

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, overload

import jax.tree_util as jtu
import numpy as np
from jaxtyping import PyTree

from ecliptic.errors import FileFormatError, SerialisationError
from ecliptic.module import ModuleMeta, torch_rule
from ecliptic.serialise._container import Container
from ecliptic.serialise._encoding import form_of_leaf
from ecliptic.serialise._report import LoadReport, compare, mismatch
from ecliptic.serialise._select import Rename, flatten, renamed
from ecliptic.serialise._state_dict import as_leaf, cast_like, fill
from ecliptic.state import State, StateIndex
from ecliptic.tree import format_path, is_array


@overload
def from_torch(
    like: PyTree,
    weights: Mapping[str, Any] | str | os.PathLike[str],
    *,
    rename: Rename = None,
    strict: Literal[True] = True,
) -> Any: ...


@overload
def from_torch(
    like: PyTree,
    weights: Mapping[str, Any] | str | os.PathLike[str],
    *,
    rename: Rename = None,
    strict: bool,
) -> tuple[Any, LoadReport]: ...


def from_torch(
    like: PyTree,
    weights: Mapping[str, Any] | str | os.PathLike[str],
    *,
    rename: Rename = None,
    strict: bool = True,
) -> Any:
    """Build a model with the weights of a PyTorch model of the same layers.

    An array is looked for under its path written with dots: `encoder.layers[0].weight` is
    `encoder.layers.0.weight`, and the layers of a `Sequential` are `0`, `1`, … as in PyTorch. Axes
    are ordered, biases reshaped and gates split as each layer needs it, for `Linear`, `Conv*`,
    `ConvTranspose*`, `Embedding`, `LayerNorm`, `RMSNorm`, `GroupNorm`, `BatchNorm`, `GRUCell`,
    `LSTMCell`, `MultiheadAttention` and `PReLU`. For a layer of your own see
    `register_torch_rule`.

    Args:
        like: the model, or the pair of a model and its `State` for a model with `BatchNorm`.
        weights: `model.state_dict()`, any dictionary of arrays or tensors with such names, or the
            path of a `.safetensors` file. A file of `torch.save` holds a pickle, which is not
            read: write it again with `safetensors.torch.save_file`.
        rename: from PyTorch's names to those that are expected here, where the two models differ:
            a mapping, whose keys may be beginnings of names, or a function of a name. `None`
            leaves a weight out.
        strict: whether weights that are missing, extra or of another shape are an error. If false,
            what fits is loaded, and a report is returned too.

    Returns:
        What `like` is, with the weights in the dtypes that `like` has; with `strict=False` that
        and a `LoadReport`.

    Raises:
        MismatchError: the weights are not those of `like`; the message has the report.
        SerialisationError: the file is a pickle, `rename` does not fit, or `like` has no state.
        FileFormatError: the file is damaged, or no safetensors file.

    !!! Example

        >>> import jax, numpy as np
        >>> import ecliptic as ec
        >>> from ecliptic.serialise import from_torch
        >>> like = ec.nn.Sequential(
        ...     [ec.nn.Linear(2, 3, key=jax.random.key(0)), ec.nn.Lambda(jax.nn.relu)]
        ... )
        >>> weights = {"0.weight": np.ones((3, 2), "f4"), "0.bias": np.zeros(3, "f4")}
        >>> from_torch(like, weights)(np.ones(2, "f4"))
        Array([2., 2., 2.], dtype=float32)
    """
    if not isinstance(weights, Mapping):
        weights = _read(Path(weights))
    model, state = like if _is_pair(like) else (like, None)
    named = {new: as_leaf(weights[old]) for new, old in renamed(weights, rename).items()}
    matching = _Matching(model, named)
    paths, leaves, treedef = flatten(model, None)
    places = dict(zip(paths, leaves, strict=True))
    wanted = {path: form_of_leaf(x) for path, x in places.items() if is_array(x)}
    values = cast_like(matching.found, places)
    saved = {path: form_of_leaf(value) for path, value in values.items()}
    report = compare(saved, wanted, name=lambda path: path, ignore_extra=False)  # pyright: ignore[reportArgumentType]
    extra = tuple(name for name in named if name not in matching.used)
    report = dataclasses.replace(report, extra=extra, renamed=())
    if strict and not report.complete:
        raise mismatch("of PyTorch's model", report)
    filled = fill(places, {path: values[path] for path in report.loaded})
    result = treedef.unflatten([filled[path] for path in paths])
    if state is not None:
        result = (result, matching.update(state))
    elif matching.states and strict:
        raise SerialisationError(
            f"The layer {matching.states[0].path!r} keeps running averages in a state, and PyTorch "
            "has some for it. Pass the model with its state: `model, state = "
            "from_torch((model, state), weights)`."
        )
    return result if strict else (result, report)


def _is_pair(like: Any) -> bool:
    return isinstance(like, tuple) and len(like) == 2 and isinstance(like[1], State)


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with Container(path) as container:
            return {name: container.read(name) for name in container.entries}
    except FileFormatError as error:
        with open(path, "rb") as f:
            start = f.read(2)
        if start in (b"PK", b"\x80\x02"):
            raise SerialisationError(
                f"{str(path)!r} is a file of `torch.save`, which is a pickle: to read it would run "
                "whatever code it holds. Load it with PyTorch, where you trust it, and pass "
                "`model.state_dict()` itself, or write that with `safetensors.torch.save_file`."
            ) from error
        raise


@dataclasses.dataclass(frozen=True)
class _StateValue:
    path: str
    index: Any
    value: Any


class _Tracked(dict[str, np.ndarray]):
    """PyTorch's weights of one layer, which notes what was taken."""

    def __init__(self, weights: Mapping[str, np.ndarray], prefix: str, used: set[str]) -> None:
        start = f"{prefix}." if prefix else ""
        super().__init__(
            {n.removeprefix(start): w for n, w in weights.items() if n.startswith(start)}
        )
        self._start, self._used = start, used

    def __getitem__(self, name: str) -> np.ndarray:
        value = super().__getitem__(name)
        self._used.add(self._start + name)
        return value

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401  (Not `dict.get`.)


class _Matching:
    """Which of PyTorch's weights belongs where in a model."""

    def __init__(self, model: PyTree, weights: Mapping[str, np.ndarray]) -> None:
        self.found: dict[str, np.ndarray] = {}
        self.states: list[_StateValue] = []
        self.used: set[str] = set()
        self._weights = weights
        self._visit(model, (), "")

    def _visit(self, node: PyTree, path: tuple[Any, ...], prefix: str) -> None:
        rule = torch_rule(type(node))
        if rule.convert is not None:
            self._convert(node, rule.convert, path, prefix)
            return
        for below, child in _children(node):
            name = _joined(prefix, below, rule.transparent)
            if is_array(child):
                if name in self._weights:
                    self.used.add(name)
                    self.found[format_path((*path, *below))] = self._weights[name]
            elif isinstance(type(child), ModuleMeta):
                self._visit(child, (*path, *below), name)

    def _convert(self, layer: Any, convert: Callable[..., Any], path: Any, prefix: str) -> None:
        try:
            found = convert(layer, _Tracked(self._weights, prefix, self.used))
        except KeyError:
            return  # The arrays of the layer are reported as missing.
        start = format_path(path)
        for name, value in found.items():
            full = f"{start}.{name}" if start else name
            index = getattr(layer, name, None)
            if isinstance(index, StateIndex):
                self.states.append(_StateValue(full, index, value))
            else:
                self.found[full] = value

    def update(self, state: State) -> State:
        """The state with PyTorch's running averages."""
        for found in self.states:
            old = state.get(found.index)
            places = dict(enumerate(jtu.tree_leaves(old)))
            values = dict(enumerate(jtu.tree_leaves(found.value)))
            named: Any = cast_like(
                {str(i): v for i, v in values.items()}, {str(i): p for i, p in places.items()}
            )
            new = fill({str(i): p for i, p in places.items()}, named)
            state = state.set(found.index, jtu.tree_structure(old).unflatten(new.values()))
        return state


def _children(node: PyTree) -> Iterator[tuple[tuple[Any, ...], Any]]:
    def inside(x: Any) -> bool:
        return x is not node and isinstance(type(x), ModuleMeta)

    pairs: Any = jtu.tree_flatten_with_path(node, is_leaf=inside)[0]
    return iter(pairs)


def _joined(prefix: str, path: tuple[Any, ...], transparent: str | None) -> str:
    keys = [
        str(getattr(key, "name", getattr(key, "idx", getattr(key, "key", key)))) for key in path
    ]
    if transparent is not None and keys and keys[0] == transparent:
        keys = keys[1:]
    return ".".join([prefix, *keys] if prefix else keys)
