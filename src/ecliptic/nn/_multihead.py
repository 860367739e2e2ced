"""`MultiheadAttention`: attention with several heads, and the linear maps around it."""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ecliptic.errors import EclipticWarning, LayerArgumentError, ShapeError
from ecliptic.module import Module, field
from ecliptic.nn._attention import attend_heads, check_mask
from ecliptic.nn._check import check_size, shape_of
from ecliptic.nn._dropout import Dropout
from ecliptic.nn._linear import Linear
from ecliptic.nn._random import default_dtype, split
from ecliptic.nn._shapes import vmap_hint
from ecliptic.tree import is_array

ProcessHeads = Callable[[Array, Array, Array], tuple[Array, Array, Array]]


class MultiheadAttention(Module):
    """Attention with several heads.

    Each place of the sequence `query` looks at the places of another, with weights from the scalar
    products of queries and keys, and gets the mean of their values. This is done in `num_heads`
    heads, each with queries, keys and values of its own by linear maps, and the results are mapped
    linearly once more. Give one sequence as all three for self-attention.

    The softmax is computed in float32 at least, and the output has the dtype of the input. Without
    dropout it is `jax.nn.dot_product_attention` that computes, where it applies.

    PyTorch's layer of the same name keeps the maps of queries, keys and values in one
    `in_proj_weight`, whose three equal parts by rows are the weights of `query_proj`, `key_proj`
    and `value_proj` (`in_proj_bias` for the biases); `out_proj` is `output_proj`. Its masks say by
    `True` which places may *not* be looked at.

    Args:
        num_heads: the number of heads.
        query_size: the length of each vector of `query`.
        key_size: that of `key_`; by default `query_size`.
        value_size: that of `value`; by default `query_size`.
        output_size: that of the output; by default `query_size`.
        qk_size: the length of the queries and keys of one head; by default
            `query_size // num_heads`.
        vo_size: the length of the values of one head; by default `query_size // num_heads`.
        use_query_bias: whether the map to queries has a bias.
        use_key_bias: whether the map to keys has a bias.
        use_value_bias: whether the map to values has a bias.
        use_output_bias: whether the map to the output has a bias.
        dropout_p: the probability that a weight of the attention is dropped.
        inference: whether nothing is dropped; see `inference_mode`.
        dtype: the dtype of all maps. By default JAX's: float64 if 64 bits are enabled, float32
            otherwise.
        key: the PRNG key that the maps are drawn with.

    Raises:
        LayerArgumentError: a size is no size, `dropout_p` is no probability, or the dtype is not
            floating.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> attention = nn.MultiheadAttention(2, 6, key=jax.random.key(0))
        >>> x = jnp.ones((5, 6))
        >>> causal = jnp.tril(jnp.ones((5, 5), bool))
        >>> attention(x, x, x, mask=causal).shape
        (5, 6)

    Source: Vaswani et al., "Attention Is All You Need", NeurIPS (2017).
    """

    query_proj: Linear
    key_proj: Linear
    value_proj: Linear
    output_proj: Linear
    dropout: Dropout
    num_heads: int = field(static=True)
    query_size: int = field(static=True)
    key_size: int = field(static=True)
    value_size: int = field(static=True)
    output_size: int = field(static=True)
    qk_size: int = field(static=True)
    vo_size: int = field(static=True)
    use_query_bias: bool = field(static=True)
    use_key_bias: bool = field(static=True)
    use_value_bias: bool = field(static=True)
    use_output_bias: bool = field(static=True)

    def __init__(
        self,
        num_heads: int,
        query_size: int,
        key_size: int | None = None,
        value_size: int | None = None,
        output_size: int | None = None,
        qk_size: int | None = None,
        vo_size: int | None = None,
        use_query_bias: bool = False,
        use_key_bias: bool = False,
        use_value_bias: bool = False,
        use_output_bias: bool = False,
        dropout_p: float = 0.0,
        inference: bool = False,
        dtype: Any = None,
        *,
        key: PRNGKeyArray,
    ):
        self.num_heads = heads = _check_heads(num_heads)
        self.query_size = _size(query_size, "query_size")
        self.key_size = _size(key_size, "key_size", self.query_size)
        self.value_size = _size(value_size, "value_size", self.query_size)
        self.output_size = _size(output_size, "output_size", self.query_size)
        self.qk_size = _size(qk_size, "qk_size", self.query_size // heads)
        self.vo_size = _size(vo_size, "vo_size", self.query_size // heads)
        self.use_query_bias = use_query_bias
        self.use_key_bias = use_key_bias
        self.use_value_bias = use_value_bias
        self.use_output_bias = use_output_bias
        dtype = _check_real(default_dtype(dtype, "MultiheadAttention"))
        qkey, kkey, vkey, okey = split(key, 4)
        qk, vo = heads * self.qk_size, heads * self.vo_size
        self.query_proj = Linear(self.query_size, qk, use_query_bias, dtype, key=qkey)
        self.key_proj = Linear(self.key_size, qk, use_key_bias, dtype, key=kkey)
        self.value_proj = Linear(self.value_size, vo, use_value_bias, dtype, key=vkey)
        self.output_proj = Linear(vo, self.output_size, use_output_bias, dtype, key=okey)
        self.dropout = Dropout(dropout_p, inference)

    def __call__(
        self,
        query: Float[Array, "q_seq q_size"],
        key_: Float[Array, "kv_seq k_size"],
        value: Float[Array, "kv_seq v_size"],
        mask: Bool[Array, "q_seq kv_seq"] | Bool[Array, "num_heads q_seq kv_seq"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
        inference: bool | None = None,
        deterministic: bool | None = None,
        process_heads: ProcessHeads | None = None,
    ) -> Float[Array, "q_seq o_size"]:
        """Apply attention.

        Args:
            query: the sequence that looks, an array of shape `(q_seq, query_size)`.
            key_: the sequence that is looked at, an array of shape `(kv_seq, key_size)`.
            value: what is seen there, an array of shape `(kv_seq, value_size)`.
            mask: a boolean array: which places (columns) each place (row) may look at, for all
                heads or for each. A row that allows none looks at all equally.
            key: the PRNG key for dropout; each head gets its own part. It may be left out in
                inference and without dropout.
            inference: replaces the flag of `dropout` for one call.
            deterministic: the old name of `inference`; deprecated.
            process_heads: is called with the queries, keys and values of all heads, of shape
                `(seq, num_heads, size)`, and returns the three changed, for instance by a
                `RotaryPositionalEmbedding`. It must keep the shapes.

        Returns:
            An array of shape `(q_seq, output_size)`.

        Raises:
            ShapeError: an array, the mask or a result of `process_heads` has a wrong shape.
            LayerArgumentError: the mask is not boolean, or `process_heads` does not return three
                arrays.
            MissingKeyError: a key is needed for dropout and none was given.
        """
        if deterministic is not None:
            warnings.warn(
                "`MultiheadAttention()(deterministic=...)` is deprecated in favour of "
                "`MultiheadAttention()(inference=...)`.",
                EclipticWarning,
                stacklevel=2,
            )
            inference = deterministic
        self._check_sequences(query, key_, value)
        rows, columns = shape_of(query)[0], shape_of(key_)[0]
        check_mask(mask, (rows, columns), (self.num_heads, rows, columns))
        heads = (
            _project(self.query_proj, query).reshape(rows, self.num_heads, self.qk_size),
            _project(self.key_proj, key_).reshape(columns, self.num_heads, self.qk_size),
            _project(self.value_proj, value).reshape(columns, self.num_heads, self.vo_size),
        )
        if process_heads is not None:
            heads = _processed(process_heads, heads)
        mask = None if mask is None else jnp.asarray(mask)
        drop = None if _drops_nothing(self.dropout, inference) else self._drop(key, inference)
        attended = attend_heads(*heads, mask, drop)
        return _project(self.output_proj, attended.reshape(rows, self.num_heads * self.vo_size))

    def _drop(self, key: PRNGKeyArray | None, inference: Any) -> Callable[[Array], Array]:
        def drop(weights: Array) -> Array:
            if key is None:
                return self.dropout(weights, inference=inference)
            keys = jax.random.split(key, self.num_heads)
            return jax.vmap(lambda w, k: self.dropout(w, key=k, inference=inference))(weights, keys)

        return drop

    def _check_sequences(self, query: Any, key_: Any, value: Any) -> None:
        shapes = tuple([tuple(shape_of(x)) for x in (query, key_, value)])
        sizes = (self.query_size, self.key_size, self.value_size)
        names = ("query", "key_", "value")
        for name, shape, size in zip(names, shapes, sizes, strict=True):
            if len(shape) != 2 or shape[1] != size:
                option = f"{name.strip('_')}_size={size}"
                raise ShapeError(
                    f"`MultiheadAttention` was made with {option} and acts on {name} of shape "
                    f"(sequence, {size}); got {name} of shape {shape}."
                    f"{vmap_hint(shape, (None, size))}"
                )
        if shapes[1][0] != shapes[2][0]:
            raise ShapeError(
                "`MultiheadAttention` needs a value for each key: key_ and value must be sequences "
                f"of equal length. Got key_ of shape {shapes[1]} and value of shape {shapes[2]}."
            )


def _check_heads(number: Any) -> int:
    heads = check_size(number, "num_heads", "MultiheadAttention")
    if heads == 0:
        raise LayerArgumentError("`MultiheadAttention` got num_heads=0, but needs one at least.")
    return heads


def _size(value: Any, name: str, default: int | None = None) -> int:
    if value is None and default is not None:
        return default
    return check_size(value, name, "MultiheadAttention")


def _check_real(dtype: Any) -> Any:
    if jnp.issubdtype(dtype, jnp.complexfloating):
        raise LayerArgumentError(
            f"`MultiheadAttention` got dtype={dtype}, but looks most at the place with the largest "
            "product, and complex numbers have no order. Use a floating dtype."
        )
    return dtype


def _drops_nothing(dropout: Any, inference: Any) -> bool:
    """Whether it is known in advance that the weights stay as they are."""
    if type(dropout) is not Dropout:
        return False
    if inference is None:
        inference = dropout.inference
    return inference is True or (isinstance(dropout.p, int | float) and dropout.p == 0)


def _project(layer: Any, x: Array) -> Array:
    """Map each vector of a sequence.

    For a `Linear` that is one product of matrices, which is traced faster than the layer mapped.
    Anything else may stand in its place.
    """
    if type(layer) is not Linear or not is_array(layer.weight):
        return jax.vmap(layer)(x)
    y = jnp.asarray(x) @ layer.weight.T
    return y if layer.bias is None else y + layer.bias[None]


def _processed(process: ProcessHeads, heads: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    changed = process(*heads)
    if not isinstance(changed, tuple | list) or len(changed) != 3:
        raise LayerArgumentError(
            "`process_heads` of `MultiheadAttention` must return three arrays, the queries, keys "
            f"and values of all heads; got a `{type(changed).__name__}`."
        )
    before, after = [shape_of(x) for x in heads], [tuple(shape_of(x)) for x in changed]
    if before != after:
        raise ShapeError(
            "`process_heads` of `MultiheadAttention` must not change the shapes of the queries, "
            f"keys and values, which are {before}; it returned {after}."
        )
    query, key, value = changed
    return query, key, value
