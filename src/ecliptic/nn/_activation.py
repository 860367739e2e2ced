"""How a network applies a function to each of its units."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ecliptic.errors import LayerArgumentError
from ecliptic.module import StaticFunction, is_module
from ecliptic.nn._traced import traced_once
from ecliptic.tree import combine, is_array, partition


def identity(x: Any) -> Any:
    """The activation that does nothing."""
    return x


def replicate(activation: Any, shape: tuple[int, ...]) -> Any:
    """Give each of `shape` units a copy of the arrays in an activation; plain functions stay."""
    return jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (*shape, *jnp.shape(leaf))) if is_array(leaf) else leaf,
        activation,
    )


def apply_to_units(activation: Callable[[Any], Any], x: Array, name: str) -> Array:
    """Apply an activation to each number of an array.

    Args:
        activation: a function of a scalar; a PyTree whose arrays start with the axes of `x`.
        x: the numbers.
        name: the parameter that the activation was given as, for the message.

    Returns:
        An array of the shape of `x`.

    Raises:
        LayerArgumentError: the activation is not a function from a scalar to a scalar.
    """
    if activation is identity:
        return x
    if is_elementwise(activation):
        return apply_elementwise(activation, x)
    arrays, rest = partition(activation, is_array)

    def one_unit(arrays: Any, x: Array) -> Any:
        return combine(arrays, rest)(x)

    mapped = one_unit
    for _ in jnp.shape(x):
        mapped = jax.vmap(mapped)
    try:
        y = mapped(arrays, x)
    except (TypeError, ValueError, IndexError) as error:
        if _takes_vectors(activation, x):
            raise _not_elementwise(activation, name, f"fails on a scalar ({error})") from error
        raise
    if jnp.shape(y) != jnp.shape(x):
        made = jnp.shape(y)[len(jnp.shape(x)) :]
        raise _not_elementwise(activation, name, f"makes an array of shape {made} of a scalar")
    return y


# Functions that are known to act on each number of an array by itself. Mapping them over the units
# would give the same program, after tracing each of them twice. And as what they compute depends on
# nothing else, their traces can be kept.
_ELEMENTWISE = frozenset({
    identity, jax.nn.celu, jax.nn.elu, jax.nn.gelu, jax.nn.hard_sigmoid, jax.nn.hard_silu,
    jax.nn.hard_swish, jax.nn.hard_tanh, jax.nn.leaky_relu, jax.nn.log_sigmoid, jax.nn.mish,
    jax.nn.relu, jax.nn.relu6, jax.nn.selu, jax.nn.sigmoid, jax.nn.silu, jax.nn.soft_sign,
    jax.nn.softplus, jax.nn.squareplus, jax.nn.swish, jax.lax.cos, jax.lax.logistic, jax.lax.sin,
    jax.lax.tanh, jnp.abs, jnp.cos, jnp.exp, jnp.sin, jnp.square, jnp.tanh,
})  # fmt: skip


def is_elementwise(function: Any) -> bool:
    """Whether a function is known to act on each number of an array by itself."""
    if is_module(function):
        if not isinstance(function, StaticFunction):
            return False
        function = function.function
    try:
        return function in _ELEMENTWISE
    except TypeError:
        # No hash: another library's PyTree with arrays.
        return False


@traced_once(1)
def apply_elementwise(function: Callable[[Any], Any], x: Any) -> Any:
    """Call a function for which `is_elementwise` holds."""
    return function(x)


def _takes_vectors(activation: Callable[[Any], Any], x: Array) -> bool:
    vector = jax.ShapeDtypeStruct((3,), jnp.result_type(x))
    try:
        jax.eval_shape(activation, vector)
    except Exception:
        return False
    return True


def _not_elementwise(activation: Any, name: str, reason: str) -> LayerArgumentError:
    shown = getattr(activation, "__name__", None) or repr(activation)
    return LayerArgumentError(
        f"`MLP` applies {name} to each unit on its own, as a function from a scalar to a scalar, "
        f"but `{shown}` {reason}: it is not an elementwise function. Leave it out and call it on "
        f"the whole output instead, for instance `jax.nn.softmax(mlp(x))`."
    )
