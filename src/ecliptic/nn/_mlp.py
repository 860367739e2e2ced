"""`MLP`: a chain of linear layers."""

import functools
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from ecliptic.module import Module, field
from ecliptic.nn._activation import apply_to_units, identity, replicate
from ecliptic.nn._check import check_size
from ecliptic.nn._linear import Linear
from ecliptic.nn._random import default_dtype, split
from ecliptic.nn._shapes import check_vector
from ecliptic.tree import combine, is_array, partition


class MLP(Module):
    """A multilayer perceptron: `depth` hidden vectors, each a function of a linear map of the last.

    An activation acts on single numbers. If it has parameters, that is if it holds arrays, then
    each unit learns its own: the arrays in `activation` get two axes in front, `depth` and
    `width_size`, and those in `final_activation` get `out_size`.

    Args:
        in_size: how many numbers come in; `"scalar"` for one number without an axis.
        out_size: how many numbers go out; `"scalar"` for one number without an axis.
        width_size: how many units each hidden layer has.
        depth: how many hidden layers there are. Without any, the network is a linear map.
        activation: what the hidden units do, a function from a scalar to a scalar.
        final_activation: what is done to each number that goes out, whatever the depth; by
            default nothing.
        use_bias: whether hidden units have a bias.
        use_final_bias: whether the numbers that go out have a bias.
        dtype: the dtype of weights and biases. By default JAX's: float64 if 64 bits are enabled,
            float32 otherwise.
        scan: whether the layers from one hidden vector to the next, which are all of one size, are
            kept as a single `Linear` of stacked arrays, `layers[1]`, and run as a loop. Compilation
            then takes no longer for a deep network than for a shallow one. Weights and outputs
            are the same.
        key: the PRNG key for weights and biases.

    Raises:
        LayerArgumentError: a size is no size, or the dtype is not inexact.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> mlp = nn.MLP(2, 1, width_size=8, depth=2, key=jax.random.key(0))
        >>> mlp(jnp.ones(2)).shape
        (1,)
        >>> [layer.weight.shape for layer in mlp.layers]
        [(8, 2), (8, 8), (1, 8)]
    """

    layers: tuple[Linear, ...]
    activation: Callable
    final_activation: Callable
    use_bias: bool = field(static=True)
    use_final_bias: bool = field(static=True)
    in_size: int | Literal["scalar"] = field(static=True)
    out_size: int | Literal["scalar"] = field(static=True)
    width_size: int = field(static=True)
    depth: int = field(static=True)
    scan: bool = field(static=True)

    def __init__(
        self,
        in_size: int | Literal["scalar"],
        out_size: int | Literal["scalar"],
        width_size: int,
        depth: int,
        activation: Callable = jax.nn.relu,
        final_activation: Callable = identity,
        use_bias: bool = True,
        use_final_bias: bool = True,
        dtype: Any = None,
        *,
        scan: bool = False,
        key: PRNGKeyArray,
    ):
        self.in_size = check_size(in_size, "in_size", "MLP", scalar=True)
        self.out_size = check_size(out_size, "out_size", "MLP", scalar=True)
        self.width_size = check_size(width_size, "width_size", "MLP")
        self.depth = check_size(depth, "depth", "MLP")
        self.use_bias = use_bias
        self.use_final_bias = use_final_bias
        self.scan = scan
        self.layers = _chain(self, default_dtype(dtype, "MLP"), key)
        self.activation = replicate(activation, (self.depth, self.width_size))
        outputs = () if self.out_size == "scalar" else (self.out_size,)
        self.final_activation = replicate(final_activation, outputs)

    def __call__(self, x: Array, *, key: PRNGKeyArray | None = None) -> Array:
        """Apply the network.

        Args:
            x: an array of shape `(in_size,)`, or `()` for `"scalar"`.
            key: ignored; layers of all kinds are called alike.

        Returns:
            An array of shape `(out_size,)`, or `()` for `"scalar"`.

        Raises:
            ShapeError: `x` has another shape.
            LayerArgumentError: an activation is not a function from a scalar to a scalar.
        """
        check_vector(x, self.in_size, "in_size", "MLP")
        *hidden, last = self.layers
        activations = _PerLayer(self.activation)
        for i, layer in enumerate(hidden):
            if self.scan and i == 1:
                x = _run_stack(layer, activations[1:], x)
            else:
                x = apply_to_units(activations[i], layer(x), "activation")
        return apply_to_units(self.final_activation, last(x), "final_activation")


class _PerLayer:
    """The activations of all hidden layers, whose arrays have the layers as their first axis."""

    def __init__(self, activation: Any):
        self._whole = activation
        arrays, self._rest = partition(activation, is_array)
        self._arrays, self._structure = jax.tree.flatten(arrays)

    def __getitem__(self, where: int | slice) -> Any:
        if not self._arrays:
            return self._whole
        picked = [array[where] for array in self._arrays]
        return combine(jax.tree.unflatten(self._structure, picked), self._rest)


def _chain(mlp: MLP, dtype: Any, key: PRNGKeyArray) -> tuple[Linear, ...]:
    """The layers from the input to the output, drawn with the keys in this order."""
    width, depth = mlp.width_size, mlp.depth
    keys = split(key, depth + 1)
    if depth == 0:
        return (Linear(mlp.in_size, mlp.out_size, mlp.use_final_bias, dtype, key=keys[0]),)
    first = Linear(mlp.in_size, width, mlp.use_bias, dtype, key=keys[0])
    last = Linear(width, mlp.out_size, mlp.use_final_bias, dtype, key=keys[-1])
    if mlp.scan:
        return first, _stack(width, mlp.use_bias, dtype, keys[1:-1]), last
    between = [Linear(width, width, mlp.use_bias, dtype, key=one) for one in keys[1:-1]]
    return first, *between, last


# Compiled, as stacks of one size are made alike. Equal weights come from equal keys: a stack is
# drawn by the layers' own rule.
@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _stack(width: int, use_bias: bool, dtype: Any, keys: tuple[PRNGKeyArray, ...]) -> Linear:
    """Layers from `width` to `width` units, one for each key, as one layer of stacked arrays."""

    def draw(key: PRNGKeyArray) -> Linear:
        return Linear(width, width, use_bias, dtype, key=key)

    if keys:
        return jax.vmap(draw)(jnp.stack(keys))
    one = jax.eval_shape(draw, jax.random.key(0))
    return jax.tree.map(lambda array: jnp.zeros((0, *array.shape), array.dtype), one)


def _run_stack(layers: Linear, activations: Any, x: Array) -> Array:
    """Apply stacked layers and their activations one after the other."""
    stacked, rest = partition((layers, activations), is_array)

    def step(x: Array, slices: Any) -> tuple[Array, None]:
        layer, activation = combine(slices, rest)
        return apply_to_units(activation, layer(x), "activation"), None

    return jax.lax.scan(step, x, stacked)[0]
