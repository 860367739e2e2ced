"""Attention: every place of a sequence looks at the places of another."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ecliptic.errors import LayerArgumentError, ShapeError
from ecliptic.nn._check import shape_of
from ecliptic.nn._dropout import Dropout
from ecliptic.nn._precision import at_least_single, convert
from ecliptic.nn._traced import traced_once


def dot_product_attention_weights(
    query: Float[Array, "q_seq qk_size"],
    key: Float[Array, "kv_seq qk_size"],
    mask: Bool[Array, "q_seq kv_seq"] | None = None,
) -> Float[Array, "q_seq kv_seq"]:
    """How much each place of a sequence looks at each place of another.

    `softmax(query @ key.T / sqrt(qk_size))`, computed in float32 at least.

    Args:
        query: an array of shape `(q_seq, qk_size)`.
        key: an array of shape `(kv_seq, qk_size)`.
        mask: a boolean array of shape `(q_seq, kv_seq)`: which places may be looked at. A row
            that allows none looks at all equally.

    Returns:
        An array of shape `(q_seq, kv_seq)`, in the dtype of `query`; its rows have the sum 1.

    Raises:
        ShapeError: the mask has another shape.
        LayerArgumentError: the mask is not boolean.
    """
    check_mask(mask, (query.shape[0], key.shape[0]))
    mask = None if mask is None else jnp.asarray(mask)[None]
    return _weights(query[:, None], key[:, None], mask)[0]


def dot_product_attention(
    query: Float[Array, "q_seq qk_size"],
    key_: Float[Array, "kv_seq qk_size"],
    value: Float[Array, "kv_seq v_size"],
    mask: Bool[Array, "q_seq kv_seq"] | None = None,
    dropout: Dropout | Callable | None = None,
    *,
    key: PRNGKeyArray | None = None,
    inference: bool | None = None,
) -> Float[Array, "q_seq v_size"]:
    """Mean values of a sequence, weighted for each place of another.

    Args:
        query: an array of shape `(q_seq, qk_size)`.
        key_: an array of shape `(kv_seq, qk_size)`.
        value: an array of shape `(kv_seq, v_size)`.
        mask: a boolean array of shape `(q_seq, kv_seq)`: which places may be looked at.
        dropout: is applied to the weights.
        key: the PRNG key for `dropout`.
        inference: as in `Dropout`.

    Returns:
        An array of shape `(q_seq, v_size)`.

    Raises:
        ShapeError: the mask has another shape.
        LayerArgumentError: the mask is not boolean.
    """
    weights = dot_product_attention_weights(query, key_, mask)
    if dropout is not None:
        weights = dropout(weights, key=key, inference=inference)
    return weights @ value


def check_mask(mask: Any, *shapes: tuple[int, ...]) -> None:
    """Refuse a mask that is not boolean, or has none of the shapes.

    Args:
        mask: the mask, or `None`.
        shapes: the shapes that it may have.

    Raises:
        ShapeError: it has none of the shapes.
        LayerArgumentError: it is not boolean.
    """
    if mask is None:
        return
    shape = tuple(shape_of(mask))
    if shape not in shapes:
        names = ("(q_seq, kv_seq)", "(num_heads, q_seq, kv_seq)")
        wanted = " or ".join([f"{n}={s}" for n, s in zip(names, shapes, strict=False)])
        raise ShapeError(
            f"The mask of an attention must have shape {wanted}: a row for each place that looks, "
            f"a column for each place that is looked at. Got shape {shape}."
        )
    dtype = jnp.result_type(mask)
    if dtype != jnp.bool_:
        raise LayerArgumentError(
            f"The mask of an attention says by `True` which places may be looked at; got dtype "
            f"{dtype}. For one of ones and zeros, pass `mask != 0`; for one that is added to "
            "scores (zeros, and large negative numbers), pass `mask == 0`."
        )


def attend_heads(
    query: Float[Array, "q_seq num_heads qk_size"],
    key: Float[Array, "kv_seq num_heads qk_size"],
    value: Float[Array, "kv_seq num_heads vo_size"],
    mask: Bool[Array, "q_seq kv_seq"] | Bool[Array, "num_heads q_seq kv_seq"] | None,
    drop: Callable[[Array], Array] | None = None,
) -> Float[Array, "q_seq num_heads vo_size"]:
    """Attention of several heads.

    Args:
        query: an array of shape `(q_seq, num_heads, qk_size)`.
        key: an array of shape `(kv_seq, num_heads, qk_size)`.
        value: an array of shape `(kv_seq, num_heads, vo_size)`.
        mask: a checked mask.
        drop: changes the weights, of shape `(num_heads, q_seq, kv_seq)`.

    Returns:
        An array of shape `(q_seq, num_heads, vo_size)`.
    """
    if mask is not None and mask.ndim == 2:
        mask = mask[None]
    if drop is None and _leave_to_jax(query, key, value):
        # It mixes dtypes for half precision in some releases, which a strict JAX refuses.
        with jax.numpy_dtype_promotion("standard"):
            return jax.nn.dot_product_attention(query, key, value, mask=mask)
    weights = _weights(query, key, mask)
    if drop is not None:
        weights = drop(weights)
    return lax.transpose(_product(weights, value, (2, 0), (0, 1)), (1, 0, 2))


def _leave_to_jax(query: Array, key: Array, value: Array) -> bool:
    """Whether JAX's own attention applies, and is worth it.

    It wants one size of heads, places to look at, and one dtype; scores of float64 it computes in
    float32. On a CPU it takes half as long again as what is written here.
    """
    return (
        jax.default_backend() != "cpu"
        and query.dtype == key.dtype == value.dtype
        and query.dtype in (jnp.float32, jnp.bfloat16, jnp.float16)
        and query.shape[2] == value.shape[2]
        and 0 not in (*query.shape, *key.shape)
    )


@traced_once()
def _weights(query: Array, key: Array, mask: Array | None) -> Array:
    """The weights of all heads, of shape `(num_heads, q_seq, kv_seq)`."""
    dtype, wide = query.dtype, at_least_single(query.dtype, key.dtype)
    scale = wide.type(1 / math.sqrt(query.shape[2] or 1))
    if dtype == wide:
        # A query is shorter than its scores are many.
        scores = _product(query * scale, key, (2, 2), (1, 1))
    else:
        scores = _product(query, key, (2, 2), (1, 1), wide) * scale
    if mask is not None:
        scores = jnp.where(mask, scores, jnp.finfo(wide).min)
    return convert(jax.nn.softmax(scores, axis=-1), dtype)


def _product(
    x: Array, y: Array, contracted: tuple[int, int], batched: tuple[int, int], dtype: Any = None
) -> Array:
    """Multiply matrices, one for each index of an axis, which comes first in the result."""
    if x.dtype != y.dtype:
        common = jnp.result_type(x, y)
        x, y = convert(x, common), convert(y, common)
    (sum_x, sum_y), (batch_x, batch_y) = contracted, batched
    axes = (((sum_x,), (sum_y,)), ((batch_x,), (batch_y,)))
    return lax.dot_general(x, y, axes, preferred_element_type=dtype)
