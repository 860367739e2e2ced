"""The layers: what their programs cost when they run, to trace them, and to build a model of them.

Each layer has the same arrays as Equinox's. A program that runs is compiled for the arrays of the
layer, so that its time is that of the computation, and sizes are such that it computes for longer
than a call takes. What is traced is the layer for one example, anew in each sample; but what is
remembered of earlier traces of the same shapes helps either library, as it does in a network of
many equal layers. The first trace of a shape costs more.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from bench._measure import Clock, Timed
from bench._models import ECLIPTIC, library
from bench._row import Row, against_equinox

# There are many rows, which have to be quick.
REPEATS = 12

# The time to begin and end a trace is that of JAX, and a network has many layers.
LAYERS_A_TRACE = 16

BATCH = "batch"


def _call(model: Any, *inputs: jax.Array) -> Any:
    return model(*inputs)


@dataclasses.dataclass(frozen=True)
class Layer:
    """A layer to measure.

    Attributes:
        name: The line in the table.
        make: Builds the layer from a library; or a tuple of the layer and of what it is called
            with beside the inputs, a state for instance.
        shapes: The shapes of the inputs for one example.
        call: Calls the layer for one example, or for a batch if it is `whole`.
        batch: How many examples a run computes.
        whole: Whether `call` takes a batch as it is, and maps over it by itself.
    """

    name: str
    make: Callable[[Any], Any]
    shapes: tuple[tuple[int, ...], ...]
    call: Callable[..., Any] = _call
    batch: int = 64
    whole: bool = False

    def inputs(self, *batch: int) -> list[jax.Array]:
        """Random inputs for one example, or for a batch."""
        draw = np.random.default_rng(1).standard_normal
        return [jnp.asarray(draw((*batch, *shape), np.float32)) for shape in self.shapes]


@dataclasses.dataclass(frozen=True)
class Program:
    """A layer as a function of its arrays and its inputs.

    Attributes:
        function: Takes a list of the arrays that can be learnt, one of all others, and the inputs.
        arrays: The two lists.
    """

    function: Callable[..., Any]
    arrays: tuple[list[jax.Array], list[jax.Array]]


class Direction(Protocol):
    """Makes of the function of a program what is compiled."""

    def __call__(self, layer: Layer, function: Callable[..., Any], /) -> Callable[..., Any]: ...


def program(layer: Layer, name: str) -> Program:
    """The layer of a library, with the arrays of Ecliptic's."""
    made = layer.make(library(name))
    leaves, structure = jax.tree.flatten(made)
    own = len(jax.tree.leaves(made[0] if isinstance(made, tuple) else made))
    given = leaves if name == ECLIPTIC else jax.tree.leaves(layer.make(library(ECLIPTIC)))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
    arrays = [leaf for leaf in given if isinstance(leaf, jax.Array)]
    if [leaves[i].shape for i in places] != [array.shape for array in arrays]:
        raise ValueError(f"{layer.name}: the arrays of {name} are others than Ecliptic's.")
    learnt = [
        place < own and jnp.issubdtype(array.dtype, jnp.inexact)
        for place, array in zip(places, arrays, strict=True)
    ]

    def function(some: Sequence[Any], others: Sequence[Any], *inputs: Any) -> Any:
        first, second = iter(some), iter(others)
        full = list(leaves)
        for place, is_learnt in zip(places, learnt, strict=True):
            full[place] = next(first if is_learnt else second)
        return layer.call(structure.unflatten(full), *inputs)

    some = [array for array, is_learnt in zip(arrays, learnt, strict=True) if is_learnt]
    others = [array for array, is_learnt in zip(arrays, learnt, strict=True) if not is_learnt]
    return Program(function, (some, others))


def forward(layer: Layer, function: Callable[..., Any], /) -> Callable[..., Any]:
    """The outputs for a batch."""
    if layer.whole:
        return function
    return jax.vmap(function, in_axes=(None, None, *([0] * len(layer.shapes))))


def backward(layer: Layer, function: Callable[..., Any], /) -> Callable[..., Any]:
    """A loss for a batch, with its gradient by arrays and inputs."""
    mapped = forward(layer, function)

    def loss(some: Any, inputs: Any, others: Any) -> jax.Array:
        outputs = jax.tree.leaves(mapped(some, others, *inputs))
        floating = [y for y in outputs if jnp.issubdtype(y.dtype, jnp.inexact)]
        return sum([jnp.mean(y**2) for y in floating], jnp.zeros(()))

    def both(some: Any, others: Any, *inputs: Any) -> Any:
        return jax.value_and_grad(loss, argnums=(0, 1))(some, inputs, others)

    return both


def compiled(layer: Layer, direction: Direction, it: Program) -> tuple[Any, tuple[Any, ...]]:
    """The compiled program of a layer, and its arguments."""
    arguments = (*it.arrays, *layer.inputs(layer.batch))
    return jax.jit(direction(layer, it.function)).lower(*arguments).compile(), arguments


def _running(layer: Layer, direction: Direction, name: str) -> Clock:
    run, arguments = compiled(layer, direction, program(layer, name))
    return Timed(lambda: jax.block_until_ready(run(*arguments)))


def _tracing(layer: Layer, name: str) -> Clock:
    it = program(layer, name)
    inputs = layer.inputs(*([2] if layer.whole else []))

    def trace() -> None:
        def network(*arguments: Any) -> list[Any]:
            return [it.function(*arguments) for _ in range(LAYERS_A_TRACE)]

        jax.make_jaxpr(network)(*it.arrays, *inputs)

    return Timed(trace, calls=LAYERS_A_TRACE)


def _key() -> jax.Array:
    return jax.random.key(0)


def _simple(name: str, *args: Any, **options: Any) -> Callable[[Any], Any]:
    """Builds the layer of this name that needs no key."""
    return lambda lib: getattr(lib.nn, name)(*args, **options)


def _keyed(name: str, *args: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda lib: getattr(lib.nn, name)(*args, key=_key(), **options)


def _stateful(name: str, *args: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda lib: lib.nn.make_with_state(getattr(lib.nn, name))(*args, **options)


def _dropout(lib: Any) -> Any:
    return lib.nn.Dropout(0.5), _key()


def _with_key(both: Any, x: jax.Array) -> Any:
    model, key = both
    return model(x, key=key)


def _self_attention(model: Any, x: jax.Array) -> Any:
    return model(x, x, x)


def _lookup(model: Any, x: jax.Array) -> Any:
    return model(jnp.argmax(x))


def _lstm(model: Any, x: jax.Array, h: jax.Array, c: jax.Array) -> Any:
    return model(x, (h, c))


def _with_state(both: Any, x: jax.Array) -> Any:
    model, state = both
    y, state = model(x, state)
    return y, jax.tree.leaves(state)


def _batch_norm(both: Any, x: jax.Array) -> Any:
    model, state = both
    mapped = jax.vmap(model, axis_name=BATCH, in_axes=(0, None), out_axes=(0, None))
    y, state = mapped(x, state)
    return y, jax.tree.leaves(state)


def _first_weight(layers: Any) -> Any:
    return layers[0].weight


def _second_weight(layers: Any) -> Any:
    return layers[1].weight


def _tied(lib: Any) -> Any:
    layers = [lib.nn.Linear(256, 256, key=key) for key in jax.random.split(_key())]
    return lib.nn.Shared(layers, _second_weight, _first_weight)


def _call_tied(model: Any, x: jax.Array) -> Any:
    first, second = model()
    return second(first(x))


def _sequential(lib: Any) -> Any:
    first, second = jax.random.split(_key())
    return lib.nn.Sequential(
        [
            lib.nn.Linear(256, 256, key=first),
            lib.nn.Lambda(jax.nn.relu),
            lib.nn.Identity(),
            lib.nn.Linear(256, 256, key=second),
        ]
    )


def _weight_norm(lib: Any) -> Any:
    return lib.nn.WeightNorm(lib.nn.Linear(512, 512, key=_key()))


def _spectral_norm(lib: Any) -> Any:
    def make() -> Any:
        return lib.nn.SpectralNorm(lib.nn.Linear(512, 512, key=_key()), "weight", key=_key())

    return lib.nn.make_with_state(make)()


VECTOR, SIGNAL, IMAGE, VOLUME = (512,), (16, 512), (16, 32, 32), (8, 12, 12, 12)

LAYERS = (
    Layer("Linear", _keyed("Linear", 512, 512), (VECTOR,)),
    Layer("MLP", _keyed("MLP", 256, 256, 256, 3), ((256,),)),
    Layer("MLP, scan", _keyed("MLP", 256, 256, 256, 3, scan=True), ((256,),)),
    Layer("Sequential", _sequential, ((256,),)),
    Layer("Shared", _tied, ((256,),), _call_tied),
    Layer("Conv1d", _keyed("Conv1d", 16, 16, 5, padding=2), (SIGNAL,), batch=16),
    Layer("Conv2d", _keyed("Conv2d", 16, 16, 3, padding="same"), (IMAGE,), batch=8),
    Layer("Conv3d", _keyed("Conv3d", 8, 8, 3, stride=2), (VOLUME,), batch=2),
    Layer("ConvTranspose1d", _keyed("ConvTranspose1d", 16, 16, 4, stride=2), (SIGNAL,), batch=4),
    Layer("ConvTranspose2d", _keyed("ConvTranspose2d", 16, 16, 3, padding=1), (IMAGE,), batch=8),
    Layer("ConvTranspose3d", _keyed("ConvTranspose3d", 8, 8, 3), (VOLUME,), batch=2),
    Layer("Pool", _simple("Pool", 0, jax.lax.add, 2, 3, 2), (IMAGE,), batch=16),
    Layer("AvgPool1d", _simple("AvgPool1d", 3, 2), (SIGNAL,)),
    Layer("AvgPool2d", _simple("AvgPool2d", 3, 2), (IMAGE,), batch=16),
    Layer("AvgPool3d", _simple("AvgPool3d", 2, 2), (VOLUME,), batch=16),
    Layer("MaxPool1d", _simple("MaxPool1d", 3, 2), (SIGNAL,)),
    Layer("MaxPool2d", _simple("MaxPool2d", 3, 2), (IMAGE,), batch=16),
    Layer("MaxPool3d", _simple("MaxPool3d", 2, 2), (VOLUME,), batch=16),
    Layer("AdaptiveAvgPool1d", _simple("AdaptiveAvgPool1d", 100), (SIGNAL,)),
    Layer("AdaptiveAvgPool2d", _simple("AdaptiveAvgPool2d", 8), (IMAGE,), batch=16),
    Layer("AdaptiveAvgPool3d", _simple("AdaptiveAvgPool3d", 5), (VOLUME,), batch=16),
    Layer("AdaptiveMaxPool1d", _simple("AdaptiveMaxPool1d", 100), (SIGNAL,)),
    Layer("AdaptiveMaxPool2d", _simple("AdaptiveMaxPool2d", 8), (IMAGE,), batch=16),
    Layer("AdaptiveMaxPool3d", _simple("AdaptiveMaxPool3d", 5), (VOLUME,), batch=16),
    Layer(
        "MultiheadAttention",
        _keyed("MultiheadAttention", 4, 128),
        ((64, 128),),
        _self_attention,
        batch=4,
    ),
    Layer("Embedding", _keyed("Embedding", 1024, 256), ((1024,),), _lookup),
    Layer(
        "RotaryPositionalEmbedding",
        _simple("RotaryPositionalEmbedding", 64),
        ((256, 64),),
        batch=32,
    ),
    Layer("GRUCell", _keyed("GRUCell", 256, 256), ((256,), (256,))),
    Layer("LSTMCell", _keyed("LSTMCell", 256, 256), ((256,),) * 3, _lstm),
    Layer("LayerNorm", _simple("LayerNorm", 512), (VECTOR,), batch=256),
    Layer("RMSNorm", _simple("RMSNorm", 512), (VECTOR,), batch=256),
    Layer("GroupNorm", _simple("GroupNorm", 4, 16), (IMAGE,), batch=8),
    *(
        Layer(
            f"BatchNorm, {mode}",
            _stateful("BatchNorm", 16, BATCH, mode=mode),
            (IMAGE,),
            _batch_norm,
            batch=8,
            whole=True,
        )
        for mode in ("batch", "ema")
    ),
    Layer("WeightNorm", _weight_norm, (VECTOR,)),
    Layer("SpectralNorm", _spectral_norm, (VECTOR,), _with_state),
    Layer("Dropout", _dropout, ((512, 256),), _with_key, batch=1),
    Layer("PReLU", _simple("PReLU"), (VECTOR,), batch=256),
)


def _model(nn: Any, keys: Sequence[jax.Array]) -> list[Any]:
    """24 layers, as they are mixed in a network that looks at pictures of a sequence."""
    one, two, three, four, five, six, seven, eight, nine, ten, eleven = keys
    return [
        nn.Conv2d(3, 16, 3, padding=1, key=one),
        nn.GroupNorm(4, 16),
        nn.PReLU(),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(16, 32, 3, padding="same", use_bias=False, key=two),
        nn.BatchNorm(32, BATCH, mode="batch"),
        nn.Lambda(jax.nn.relu),
        nn.AvgPool2d(2, 2),
        nn.ConvTranspose2d(32, 32, 2, stride=2, key=three),
        nn.AdaptiveAvgPool2d(4),
        nn.Linear(512, 64, key=four),
        nn.LayerNorm(64),
        nn.MultiheadAttention(4, 64, key=five),
        nn.RotaryPositionalEmbedding(16),
        nn.Dropout(0.1),
        nn.RMSNorm(64),
        nn.MLP(64, 64, 128, 1, key=six),
        nn.Embedding(10, 64, key=seven),
        nn.GRUCell(64, 64, key=eight),
        nn.LSTMCell(64, 64, key=nine),
        nn.WeightNorm(nn.Linear(64, 64, key=ten)),
        nn.Conv1d(64, 64, 3, key=eleven),
        nn.Identity(),
        nn.MaxPool1d(2),
    ]


def _building(name: str) -> Clock:
    nn, keys = library(name).nn, tuple(jax.random.split(_key(), 11))
    return Timed(lambda: jax.block_until_ready(jax.tree.leaves(nn.Sequential(_model(nn, keys)))))


def _rows(layer: Layer) -> tuple[Row, ...]:
    def running(direction: Direction) -> Callable[[str], Clock]:
        return partial(_running, layer, direction)

    return (
        against_equinox(f"run {layer.name}", "layers.run", running(forward), REPEATS),
        against_equinox(f"run {layer.name}, gradient", "layers.run", running(backward), REPEATS),
        against_equinox(f"trace {layer.name}", "layers.trace", partial(_tracing, layer), 6),
    )


ROWS = (
    against_equinox("build a model of 24 layers", "layers.construction", _building, REPEATS),
    *(row for layer in LAYERS for row in _rows(layer)),
)
