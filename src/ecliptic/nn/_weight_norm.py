"""`WeightNorm`: learns the length of a weight apart from its direction."""

from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PRNGKeyArray

from ecliptic.errors import LayerArgumentError
from ecliptic.module import Module, field
from ecliptic.nn._named_weight import check_weight, with_weight
from ecliptic.nn._precision import at_least_single, convert, squares
from ecliptic.nn._traced import traced_once

_Layer = TypeVar("_Layer")


class _Norm(Module):
    """The length of an array along all axes but one, as an array with as many axes."""

    axis: int | None = field(static=True)

    def __call__(self, weight: Array) -> Array:
        return _length(self.axis, jnp.asarray(weight))


@traced_once(1)
def _length(axis: int | None, weight: Array) -> Array:
    kept = _kept(axis, weight)
    shape = tuple([n if i in kept else 1 for i, n in enumerate(weight.shape)])
    return lax.broadcast_in_dim(_lengths(weight, kept), shape, kept)


@traced_once(1)
def _scaled(axis: int | None, weight: Array, g: Any) -> Array:
    """`weight * g / norm(weight)`, in the dtype of the weight."""
    kept = _kept(axis, weight)
    lengths = _lengths(weight, kept)
    if isinstance(g, jax.Array) and g.size == lengths.size and g.dtype == lengths.dtype:
        scale = lax.div(lax.reshape(g, lengths.shape), lengths)
        return lax.mul(
            weight, lax.broadcast_in_dim(convert(scale, weight.dtype), weight.shape, kept)
        )
    return weight * (g / _length(axis, weight)).astype(weight.dtype)


def _kept(axis: int | None, weight: Array) -> tuple[int, ...]:
    return () if axis is None else (axis % weight.ndim,)


def _lengths(weight: Array, kept: tuple[int, ...]) -> Array:
    """The lengths along all axes but those that are kept."""
    wide = convert(weight, at_least_single(weight.dtype))
    axes = tuple([i for i in range(weight.ndim) if i not in kept])
    total = lax.reduce_sum(squares(wide), axes)
    # Zeros are not divided by zero, nor is the root's derivative infinite there: they count as of
    # length 1, so that they stay zeros and can be trained.
    is_zero = lax.eq(total, total.dtype.type(0))
    norm = lax.sqrt(lax.add(total, convert(is_zero, total.dtype)))
    return convert(norm, jnp.finfo(weight.dtype).dtype)


class WeightNorm(Module, Generic[_Layer]):
    """Gives a weight of a layer a length that is learnt apart from its direction.

    The layer is called with the weight `g * weight / norm(weight)`, where the norm is taken along
    all axes but `axis`. `g` is the norm of the weight at first, so that nothing changes before
    training. Norms are computed in float32 at least.

    This is what `torch.nn.utils.parametrizations.weight_norm(layer, name, dim)` does, where `dim`
    is `axis`, `original0` is `g` and `original1` is the weight of the layer.

    Args:
        layer: any Module with a weight, `Linear` and the convolutions for instance.
        weight_name: the name of the field that holds the weight.
        axis: the axis whose slices have a length each, by default the outputs of a layer. With
            `None` the whole weight has one length.

    Raises:
        LayerArgumentError: the layer has no such weight, or the weight no such axis.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> layer = nn.WeightNorm(nn.Linear(3, 2, key=jax.random.key(0)))
        >>> layer.g.shape
        (2, 1)
        >>> bool(jnp.allclose(layer(jnp.ones(3)), layer.layer(jnp.ones(3))))
        True

    Source: Salimans and Kingma, "Weight Normalization", NeurIPS (2016).
    """

    layer: _Layer
    g: Array
    weight_name: str = field(static=True)
    axis: int | None = field(static=True)
    _norm: _Norm

    def __init__(self, layer: _Layer, weight_name: str = "weight", axis: int | None = 0):
        weight = check_weight(layer, weight_name, "WeightNorm")
        rank = jnp.ndim(weight)
        if axis is not None and not -rank <= axis < rank:
            raise LayerArgumentError(
                f"`WeightNorm` got axis={axis}, but `{weight_name}` has {rank} axes."
            )
        self.layer = layer
        self.weight_name = weight_name
        self.axis = axis
        self._norm = _Norm(axis)
        self.g = self._norm(weight)

    def __call__(self, x: Array, *args: Any, key: PRNGKeyArray | None = None) -> Any:
        """Call the layer with its weight normalised.

        Args:
            x: the input of the layer.
            *args: what else the layer takes, for instance the hidden state of a `GRUCell`.
            key: a PRNG key; is passed to the layer where one is given.

        Returns:
            The output of the layer.
        """
        weight = getattr(self.layer, self.weight_name)
        scaled = _scaled(self.axis, jnp.asarray(weight), self.g)
        layer = with_weight(self.layer, self.weight_name, scaled)
        return layer(x, *args) if key is None else layer(x, *args, key=key)
