"""`GRUCell` and `LSTMCell`: one step of a recurrent network."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, PRNGKeyArray

from ecliptic.errors import LayerArgumentError
from ecliptic.module import Module, field
from ecliptic.nn._affine import affine
from ecliptic.nn._check import check_size
from ecliptic.nn._random import default_dtype, uniform
from ecliptic.nn._shapes import check_shape
from ecliptic.nn._traced import traced_once


class GRUCell(Module):
    """One step of a gated recurrent unit.

    With the rows of `weight_ih`, `weight_hh` and `bias` in three equal parts, for the gates reset
    `r` and update `z` and for the new value `n`:

    ```
    r = sigmoid(W_ir x + b_r + W_hr h)
    z = sigmoid(W_iz x + b_z + W_hz h)
    n = tanh(W_in x + b_n + r * (W_hn h + bias_n))
    h' = n + z * (h - n)
    ```

    All arrays are drawn uniformly between `±1/sqrt(hidden_size)`.

    PyTorch's cell of the same name has the same two weights, and two biases for every gate, of
    which only sums matter but for the new value. From its `bias_ih` and `bias_hh`, of length
    `3 * hidden_size`: `bias_n = bias_hh[-hidden_size:]`, and `bias = bias_ih` with the first
    `2 * hidden_size` numbers of `bias_hh` added to its own.

    Args:
        input_size: the length of the input.
        hidden_size: the length of the hidden state.
        use_bias: whether there are biases; otherwise the fields `bias` and `bias_n` are `None`.
        dtype: the dtype of all arrays, floating or complex. By default JAX's: float64 if 64 bits
            are enabled, float32 otherwise.
        key: the PRNG key that the arrays are drawn with.

    Raises:
        LayerArgumentError: a size is no size, or the dtype is not inexact.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> cell = nn.GRUCell(2, 3, key=jax.random.key(0))
        >>> sequence = jnp.ones((5, 2))
        >>> jax.lax.scan(lambda h, x: (cell(x, h), None), jnp.zeros(3), sequence)[0].shape
        (3,)

    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", EMNLP (2014).
    """

    weight_ih: Array
    weight_hh: Array
    bias: Array | None
    bias_n: Array | None
    input_size: int = field(static=True)
    hidden_size: int = field(static=True)
    use_bias: bool = field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        use_bias: bool = True,
        dtype: Any = None,
        *,
        key: PRNGKeyArray,
    ):
        self.input_size = inputs = check_size(input_size, "input_size", "GRUCell")
        self.hidden_size = hidden = check_size(hidden_size, "hidden_size", "GRUCell")
        self.use_bias = bool(use_bias)
        rows = 3 * hidden
        biases = ((rows,), (hidden,)) if self.use_bias else (None, None)
        self.weight_ih, self.weight_hh, self.bias, self.bias_n = _draw(
            key,
            ((rows, inputs), (rows, hidden), *biases),
            default_dtype(dtype, "GRUCell"),
            1 / math.sqrt(hidden or 1),
        )

    def __call__(self, input: Array, hidden: Array, *, key: PRNGKeyArray | None = None) -> Array:
        """Take one step.

        Args:
            input: an array of shape `(input_size,)`.
            hidden: the hidden state, an array of shape `(hidden_size,)`.
            key: ignored; layers of all kinds are called alike.

        Returns:
            The new hidden state, an array of shape `(hidden_size,)`.

        Raises:
            ShapeError: `input` or `hidden` has another shape.
        """
        _check_input(self, input)
        _check_hidden(self, hidden, "hidden")
        weights = (self.weight_ih, self.weight_hh, self.bias, self.bias_n)
        return _gru_step(self.hidden_size, *weights, input, hidden)


class LSTMCell(Module):
    """One step of a long short-term memory.

    With the rows of `weight_ih`, `weight_hh` and `bias` in four equal parts, for the gates input
    `i`, forget `f` and output `o` and for the candidate `g`, in the order `i, f, g, o`:

    ```
    i, f, o = sigmoid(W_i x + W_h h + b)    each with its rows
    g = tanh(W_ig x + W_hg h + b_g)
    c' = f * c + i * g
    h' = o * tanh(c')
    ```

    All arrays are drawn uniformly between `±1/sqrt(hidden_size)`.

    PyTorch's cell of the same name has the same two weights, and two biases whose sum is `bias`.

    Args:
        input_size: the length of the input.
        hidden_size: the length of the hidden state and of the cell state.
        use_bias: whether there is a bias; otherwise the field `bias` is `None`.
        dtype: the dtype of all arrays, floating or complex. By default JAX's: float64 if 64 bits
            are enabled, float32 otherwise.
        key: the PRNG key that the arrays are drawn with.

    Raises:
        LayerArgumentError: a size is no size, or the dtype is not inexact.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> cell = nn.LSTMCell(2, 3, key=jax.random.key(0))
        >>> h, c = cell(jnp.ones(2), (jnp.zeros(3), jnp.zeros(3)))
        >>> h.shape, c.shape
        ((3,), (3,))

    Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural Computation 9 (1997), with
    the forget gate of Gers, Schmidhuber and Cummins, Neural Computation 12 (2000).
    """

    weight_ih: Array
    weight_hh: Array
    bias: Array | None
    input_size: int = field(static=True)
    hidden_size: int = field(static=True)
    use_bias: bool = field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        use_bias: bool = True,
        dtype: Any = None,
        *,
        key: PRNGKeyArray,
    ):
        self.input_size = inputs = check_size(input_size, "input_size", "LSTMCell")
        self.hidden_size = hidden = check_size(hidden_size, "hidden_size", "LSTMCell")
        self.use_bias = bool(use_bias)
        rows = 4 * hidden
        self.weight_ih, self.weight_hh, self.bias = _draw(
            key,
            ((rows, inputs), (rows, hidden), (rows,) if self.use_bias else None),
            default_dtype(dtype, "LSTMCell"),
            1 / math.sqrt(hidden or 1),
        )

    def __call__(
        self, input: Array, hidden: tuple[Array, Array], *, key: PRNGKeyArray | None = None
    ) -> tuple[Array, Array]:
        """Take one step.

        Args:
            input: an array of shape `(input_size,)`.
            hidden: the pair of hidden state and cell state, each of shape `(hidden_size,)`.
            key: ignored; layers of all kinds are called alike.

        Returns:
            The new pair of hidden state and cell state.

        Raises:
            ShapeError: one of the three arrays has another shape.
            LayerArgumentError: `hidden` is no pair.
        """
        _check_input(self, input)
        try:
            h, c = hidden
        except (TypeError, ValueError):
            raise LayerArgumentError(
                "`LSTMCell` keeps two arrays from step to step: call it as "
                "`h, c = cell(input, (h, c))`. What it got as `hidden` is no pair: "
                f"{_described(hidden)}."
            ) from None
        _check_hidden(self, h, "hidden[0]")
        _check_hidden(self, c, "hidden[1]")
        weights = (self.weight_ih, self.weight_hh, self.bias)
        return _lstm_step(self.hidden_size, *weights, input, h, c)


@traced_once(1)
def _gru_step(
    size: int, weight_ih: Any, weight_hh: Any, bias: Any, bias_n: Any, x: Any, h: Any
) -> Array:
    from_input, from_hidden, h, bias_n = _of_one_dtype(
        affine(weight_ih, x, bias), weight_hh @ h, h, bias_n
    )
    gates_x, new_x = lax.split(from_input, (2 * size, size))
    gates_h, new_h = lax.split(from_hidden, (2 * size, size))
    reset, update = lax.split(lax.logistic(lax.add(gates_x, gates_h)), (size, size))
    if bias_n is not None:
        new_h = lax.add(new_h, bias_n)
    new = lax.tanh(lax.add(new_x, lax.mul(reset, new_h)))
    return lax.add(new, lax.mul(update, lax.sub(h, new)))


@traced_once(1)
def _lstm_step(
    size: int, weight_ih: Any, weight_hh: Any, bias: Any, x: Any, h: Any, c: Any
) -> tuple[Array, Array]:
    rows = weight_ih @ x + weight_hh @ h
    if bias is not None:
        rows = rows + bias
    rows, c = _of_one_dtype(rows, c)
    into, forget, candidate, out = lax.split(rows, (size,) * 4)
    kept = lax.mul(lax.logistic(forget), c)
    c = lax.add(kept, lax.mul(lax.logistic(into), lax.tanh(candidate)))
    return lax.mul(lax.logistic(out), lax.tanh(c)), c


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _draw(
    key: PRNGKeyArray, shapes: tuple[tuple[int, ...] | None, ...], dtype: Any, limit: float
) -> tuple[Any, ...]:
    """Draw arrays, each from a key of its own, at the cost of one call; `None` stays."""
    keys = jax.random.split(key, len(shapes))
    return tuple(
        None if shape is None else uniform(keys[i], shape, dtype, limit)
        for i, shape in enumerate(shapes)
    )


def _of_one_dtype(*arrays: Any) -> tuple[Any, ...]:
    """Arrays as JAX's rules promote them, or refuse to; `None` stays."""
    if all([x is None or isinstance(x, jax.Array) for x in arrays]):
        dtypes = {x.dtype for x in arrays if x is not None}
        if len(dtypes) == 1:
            return arrays
    dtype = jnp.result_type(*[jnp.asarray(x) for x in arrays if x is not None])
    return tuple([None if x is None else jnp.asarray(x, dtype) for x in arrays])


def _check_input(cell: GRUCell | LSTMCell, x: Any) -> None:
    made_with = f"input_size={cell.input_size}"
    check_shape(x, (cell.input_size,), made_with, type(cell).__name__, "input")


def _check_hidden(cell: GRUCell | LSTMCell, x: Any, argument: str) -> None:
    made_with = f"hidden_size={cell.hidden_size}"
    check_shape(x, (cell.hidden_size,), made_with, type(cell).__name__, argument)


def _described(x: Any) -> str:
    shape = getattr(x, "shape", None)
    return f"a `{type(x).__name__}`" + ("" if shape is None else f" of shape {tuple(shape)}")
