"""`SpectralNorm`: keeps the largest singular value of a weight at one."""

import functools
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PRNGKeyArray

from ecliptic import _jax
from ecliptic.errors import LayerArgumentError
from ecliptic.module import field
from ecliptic.nn._check import check_size
from ecliptic.nn._named_weight import check_weight, with_weight
from ecliptic.nn._normalise import check_eps
from ecliptic.nn._precision import at_least_single, squares
from ecliptic.nn._random import split
from ecliptic.nn._stateful import StatefulLayer
from ecliptic.nn._traced import traced_once
from ecliptic.state import State, StateIndex

_Layer = TypeVar("_Layer")

# As in PyTorch: so that the first call already finds vectors that are nearly singular.
_ITERATIONS_AT_FIRST = 15

_UNROLLED = 4


class SpectralNorm(StatefulLayer, Generic[_Layer]):
    """Divides a weight of a layer by its largest singular value.

    A layer of such weights changes the distance of two inputs by no more than the factor 1. The
    singular value is estimated by power iteration, a few steps at each call, from the vectors of
    the call before: these are the state. Axes of the weight after the first count as one. Vectors
    and norms are computed in float32 at least; no gradient flows through the iteration.

    This is what `torch.nn.utils.parametrizations.spectral_norm` does.

    Args:
        layer: any Module with a weight, `Linear` and the convolutions for instance.
        weight_name: the name of the field that holds the weight.
        num_power_iterations: how many steps are done at a call.
        eps: the least length that a vector is divided by.
        inference: whether to leave the vectors, and with them the state, as they are.
            `inference_mode` sets this for all layers of a model.
        key: the PRNG key that the first vectors are drawn with.

    Raises:
        LayerArgumentError: the layer has no such weight, the weight has fewer than two axes, the
            number of steps is no size, or `eps` is negative.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> linear = nn.Linear(3, 3, use_bias=False, key=jax.random.key(0))
        >>> make = nn.make_with_state(nn.SpectralNorm)
        >>> layer, state = make(linear, "weight", 10, key=jax.random.key(1))
        >>> columns = []
        >>> for x in jnp.eye(3):
        ...     y, state = layer(x, state)
        ...     columns.append(y)
        >>> jnp.linalg.norm(jnp.stack(columns), 2).round(2)
        Array(1., dtype=float32)

    Source: Miyato et al., "Spectral Normalization for Generative Adversarial Networks", ICLR
    (2018).
    """

    layer: _Layer
    weight_name: str = field(static=True)
    uv_index: StateIndex[tuple[Array, Array]]
    num_power_iterations: int = field(static=True)
    eps: float = field(static=True)
    inference: bool

    def __init__(
        self,
        layer: _Layer,
        weight_name: str,
        num_power_iterations: int = 1,
        eps: float = 1e-12,
        inference: bool = False,
        *,
        key: PRNGKeyArray,
    ):
        self.layer = layer
        self.weight_name = weight_name
        self.num_power_iterations = check_size(
            num_power_iterations, "num_power_iterations", "SpectralNorm"
        )
        self.eps = check_eps(eps, "SpectralNorm")
        self.inference = inference
        matrix = _matrix(_check_weight(layer, weight_name))
        u_key, v_key = split(key, 2)
        rows, columns = matrix.shape
        u, v = _normal(u_key, rows, matrix.dtype), _normal(v_key, columns, matrix.dtype)
        self.uv_index = StateIndex(_iterated(_ITERATIONS_AT_FIRST, self.eps, matrix, u, v))

    def __call__(
        self,
        x: Array,
        state: State,
        *,
        key: PRNGKeyArray | None = None,
        inference: bool | None = None,
    ) -> tuple[Array, State]:
        """Call the layer with its weight normalised.

        Args:
            x: the input of the layer.
            state: the state.
            key: a PRNG key; is passed to the layer where one is given.
            inference: replaces the field of this name for one call.

        Returns:
            The output of the layer, and the new state; in inference, the same state.
        """
        if inference is None:
            inference = self.inference
        weight = getattr(self.layer, self.weight_name)
        u, v = known = state.get(self.uv_index)
        if isinstance(inference, _jax.Tracer) or not inference:
            fixed = lax.stop_gradient(weight)
            u, v = _iterated(self.num_power_iterations, self.eps, fixed, u, v)
            if isinstance(inference, _jax.Tracer):
                u, v = jax.tree.map(lambda a, b: jnp.where(inference, a, b), known, (u, v))
            state = state.set(self.uv_index, (u, v))
        u, v = lax.stop_gradient((u, v))
        normalised = _divided(weight, u, v)
        layer = with_weight(self.layer, self.weight_name, normalised)
        return (layer(x) if key is None else layer(x, key=key)), state


def _matrix(weight: Array) -> Array:
    wide = weight.astype(at_least_single(weight.dtype))
    return wide.reshape(weight.shape[0], -1)


@traced_once(2)
def _iterated(steps: int, eps: float, weight: Array, u: Array, v: Array) -> tuple[Array, Array]:
    """Some steps of power iteration."""
    matrix = _matrix(weight)

    def step(_: Any, uv: tuple[Array, Array]) -> tuple[Array, Array]:
        u = _unit(matrix @ uv[1], eps)
        return u, _unit(matrix.conj().T @ u, eps)

    uv = u.astype(matrix.dtype), v.astype(matrix.dtype)
    # Many steps in a row would take long to compile.
    if steps > _UNROLLED:
        new = lax.fori_loop(0, steps, step, uv)
    else:
        new = functools.reduce(lambda uv, i: step(i, uv), range(steps), uv)
    return new[0].astype(u.dtype), new[1].astype(v.dtype)


def _unit(vector: Array, eps: float) -> Array:
    length = jnp.sqrt(jnp.sum(squares(vector)))
    return vector / jnp.maximum(length, eps).astype(vector.dtype)


@traced_once()
def _divided(weight: Array, u: Array, v: Array) -> Array:
    """A weight divided by its largest singular value, whose vectors are given."""
    matrix = _matrix(weight)
    largest = jnp.vdot(u.astype(matrix.dtype), matrix @ v.astype(matrix.dtype))
    return (weight.astype(matrix.dtype) / largest).astype(weight.dtype)


def _check_weight(layer: Any, name: str) -> Array:
    weight = check_weight(layer, name, "SpectralNorm")
    if jnp.ndim(weight) < 2:
        raise LayerArgumentError(
            f"`SpectralNorm` needs a matrix, but `{type(layer).__name__}.{name}` has shape "
            f"{jnp.shape(weight)}: the weight must be at least two-dimensional."
        )
    return weight


def _normal(key: PRNGKeyArray, size: int, dtype: Any) -> Array:
    return jax.random.normal(key, (size,), dtype)
