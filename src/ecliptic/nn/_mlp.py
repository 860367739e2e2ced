"""`MLP`: linear layers with a function between them."""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from ecliptic.module import Module, field
from ecliptic.nn._activation import apply_to_units, identity, replicate
from ecliptic.nn._check import check_size, check_vector
from ecliptic.nn._linear import Linear
from ecliptic.nn._random import split
from ecliptic.tree import combine, is_array, partition


class MLP(Module):
    """A multilayer perceptron: `depth + 1` `Linear` layers with activations between them.

    Activations are applied to each unit on its own. One that holds arrays (a Module with
    parameters) is learnt: every unit of every layer gets a copy of them, so the arrays of
    `activation` start with the axes `depth` and `width_size`, and those of `final_activation`
    with `out_size`.

    Args:
        in_size: the length of the input, or `"scalar"` for an input of shape `()`.
        out_size: the length of the output, or `"scalar"` for an output of shape `()`.
        width_size: the length of each hidden vector.
        depth: the number of hidden layers. With 0 the network is one linear layer.
        activation: a function from a scalar to a scalar, applied after each hidden layer.
        final_activation: the same for the output layer, at depth 0 too; by default nothing is
            applied.
        use_bias: whether the hidden layers have a bias.
        use_final_bias: whether the output layer has a bias.
        dtype: the dtype of all weights. By default JAX's: float64 if 64 bits are enabled,
            float32 otherwise.
        scan: whether to keep the layers between the first and the last one as one `Linear` of
            stacked arrays, run by `jax.lax.scan`: a deep network then compiles as fast as a
            shallow one. The values are the same.
        key: the PRNG key that the weights are drawn with.

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
        in_size = check_size(in_size, "in_size", "MLP", scalar=True)
        out_size = check_size(out_size, "out_size", "MLP", scalar=True)
        width_size = check_size(width_size, "width_size", "MLP")
        depth = check_size(depth, "depth", "MLP")
        sizes = [in_size, *[width_size] * depth, out_size]
        biases = [*[use_bias] * depth, use_final_bias]
        keys = jax.random.split(key, depth + 1) if scan else split(key, depth + 1)
        if scan and depth > 0:
            first = Linear(in_size, width_size, use_bias, dtype, key=keys[0])
            between = _stacked(width_size, use_bias, dtype, keys[1:depth])
            last = Linear(width_size, out_size, use_final_bias, dtype, key=keys[depth])
            self.layers = (first, between, last)
        else:
            self.layers = tuple(
                Linear(sizes[i], sizes[i + 1], biases[i], dtype, key=keys[i])
                for i in range(depth + 1)
            )
        self.activation = replicate(activation, (depth, width_size))
        self.final_activation = replicate(
            final_activation, () if out_size == "scalar" else (out_size,)
        )
        self.use_bias = use_bias
        self.use_final_bias = use_final_bias
        self.in_size = in_size
        self.out_size = out_size
        self.width_size = width_size
        self.depth = depth
        self.scan = scan

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
        learnt, plain = partition(self.activation, is_array)
        has_arrays = bool(jax.tree.leaves(learnt))

        def hidden(layer: Linear, learnt: Any, x: Array) -> Array:
            activation = combine(learnt, plain) if has_arrays else plain
            return apply_to_units(activation, layer(x), "activation")

        def of_layer(i: int | slice) -> Any:
            return jax.tree.map(lambda leaf: leaf[i], learnt) if has_arrays else learnt

        if self.scan and self.depth > 0:
            x = hidden(self.layers[0], of_layer(0), x)
            x = _scan(hidden, self.layers[1], of_layer(slice(1, None)), x)
        else:
            for i, layer in enumerate(self.layers[:-1]):
                x = hidden(layer, of_layer(i), x)
        return apply_to_units(self.final_activation, self.layers[-1](x), "final_activation")


def _stacked(width: int, use_bias: bool, dtype: Any, keys: PRNGKeyArray) -> Linear:
    """One hidden layer for each key, as one layer of stacked arrays."""

    def make(key: PRNGKeyArray) -> Linear:
        return Linear(width, width, use_bias, dtype, key=key)

    if keys.shape[0] > 0:
        return jax.vmap(make)(keys)
    # Not every implementation of keys can be mapped over when there is none of them.
    one = jax.eval_shape(make, jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.zeros((0, *leaf.shape), leaf.dtype), one)


def _scan(
    hidden: Callable[[Linear, Any, Array], Array], layers: Linear, learnt: Any, x: Array
) -> Array:
    """Applies stacked layers one after the other."""
    arrays, rest = partition(layers, is_array)

    def step(x: Array, slices: Any) -> tuple[Array, None]:
        layer_arrays, layer_learnt = slices
        return hidden(combine(layer_arrays, rest), layer_learnt, x), None

    return jax.lax.scan(step, x, (arrays, learnt))[0]
