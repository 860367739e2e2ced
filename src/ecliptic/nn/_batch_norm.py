"""`BatchNorm`: normalises channels by what they are in the whole batch."""

import copy
import functools
import warnings
from collections.abc import Hashable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, PRNGKeyArray

from ecliptic import _jax
from ecliptic.errors import (
    AxisNameError,
    EclipticWarning,
    LayerArgumentError,
    ShapeError,
    StateValueError,
)
from ecliptic.module import field
from ecliptic.nn._check import check_size, shape_of
from ecliptic.nn._normalise import (
    check_eps,
    inverse_root,
    mean_over,
    ones_and_zeros,
    precision_with,
    scale_and_shift,
    spread,
)
from ecliptic.nn._precision import at_least_single, convert, squares
from ecliptic.nn._random import default_dtype
from ecliptic.nn._stateful import StatefulLayer
from ecliptic.nn._traced import traced_once
from ecliptic.state import State, StateIndex


class _Moments(NamedTuple):
    """A mean and a variance of each channel."""

    mean: Array
    variance: Array


class BatchNorm(StatefulLayer):
    """Gives each channel the mean 0 and the variance 1 over a batch, then scales and shifts it.

    The layer acts on one example, with its channels first and any number of other axes, under a
    `jax.vmap` or `filter_vmap` that gives the axis of the batch a name. Mean and (biased) variance
    of a channel are taken over that axis and over the other axes of the example. Running averages
    of them are kept in the state, and normalise in inference. All are computed in float32 at least,
    and the output has the dtype of the input.

    - `mode="batch"` normalises by the batch in training. This is what other libraries do, and what
      new programs should use; the momentum has no influence on gradients. In inference the running
      averages are divided by `1 - momentum**n` after `n` batches, since they start at mean 0 and
      variance 1.
    - `mode="ema"` normalises by the running averages in training as well, which start with the
      first batch. Little of a running average depends on the present batch, and so do gradients.

    Inference before any training takes mean and variance as 0 and 1 in both modes.

    **The first steps of `mode="batch"`.** The division corrects the mean exactly: it started at 0.
    The variance started at 1, and what is left of that is divided as well, so that inference sees a
    variance that is too large by `momentum**n / (1 - momentum**n)`: by 99 after one batch, by 0.58
    after a hundred and by 0.007 after five hundred, with the default momentum. Outputs are too
    small until then. This is kept as it is because programs and saved states of Equinox count on
    these numbers; training does not see them. To use a model after a few steps, take a smaller
    momentum (0.9, PyTorch's default, is off by 0.00003 after a hundred batches) or `mode="ema"`,
    which starts with the first batch.

    With the same weight and bias, `mode="batch"` agrees with PyTorch's layer in training, where
    `momentum` is one minus PyTorch's. PyTorch's running variance is the unbiased one, `n / (n - 1)`
    times as large for `n` numbers a channel, and it does not divide by `1 - momentum**n`. So
    inference agrees with PyTorch's after many batches, and at once for averages that were loaded
    from there, if the `batch_counter` in the state is set to a large number.

    Args:
        input_size: the number of channels.
        axis_name: the name of the mapped axis of the batch, or a sequence of the names of several.
        eps: what is added to the variance, so that constant channels are not divided by zero.
        channelwise_affine: whether to scale and shift; otherwise the fields `weight` and `bias`
            are `None`.
        momentum: how much of the running averages stays at each batch.
        inference: whether to use the running averages, and leave the state as it is.
            `inference_mode` sets this for all layers of a model.
        dtype: the dtype of weight and bias. By default JAX's: float64 if 64 bits are enabled,
            float32 otherwise.
        mode: `"batch"` or `"ema"`. The default, `"legacy"`, is `"ema"` with a warning.

    Raises:
        LayerArgumentError: the mode is none of these, the momentum is not between 0 and 1, `eps` is
            negative, or the dtype is not inexact.

    Warns:
        EclipticWarning: no mode was given.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> norm, state = nn.make_with_state(nn.BatchNorm)(1, axis_name="batch", mode="batch")
        >>> batched = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        >>> y, state = batched(jnp.array([[1.0], [3.0]]), state)
        >>> y.round(3)
        Array([[-1.],
               [ 1.]], dtype=float32)
        >>> nn.inference_mode(norm)(jnp.array([2.0]), state)[0].shape
        (1,)

    Source: Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing
    Internal Covariate Shift", ICML (2015).
    """

    weight: Array | None
    bias: Array | None
    ema_first_time_index: StateIndex[Array] | None
    ema_state_index: StateIndex[tuple[Array, Array]] | None
    batch_counter: StateIndex[Array] | None
    batch_state_index: StateIndex[tuple[Array, Array]] | None
    axis_name: Hashable | Sequence[Hashable]
    inference: bool
    input_size: int = field(static=True)
    eps: float = field(static=True)
    channelwise_affine: bool = field(static=True)
    momentum: float = field(static=True)
    mode: Literal["ema", "batch"] = field(static=True)

    def __init__(
        self,
        input_size: int,
        axis_name: Hashable | Sequence[Hashable],
        eps: float = 1e-5,
        channelwise_affine: bool = True,
        momentum: float = 0.99,
        inference: bool = False,
        dtype: Any = None,
        mode: Literal["ema", "batch", "legacy"] = "legacy",
    ):
        self.input_size = check_size(input_size, "input_size", "BatchNorm")
        self.axis_name = tuple(axis_name) if isinstance(axis_name, list) else axis_name
        self.eps = check_eps(eps, "BatchNorm")
        self.channelwise_affine = bool(channelwise_affine)
        self.momentum = _check_momentum(momentum)
        self.inference = inference
        self.mode = _check_mode(mode)
        dtype = default_dtype(dtype, "BatchNorm")
        use, size = self.channelwise_affine, (self.input_size,)
        self.weight, self.bias = ones_and_zeros(size, dtype, use, use)
        of_ema = self.mode == "ema"
        moments, first, counter = _first_values(size, at_least_single(dtype))
        self.ema_first_time_index = StateIndex(first) if of_ema else None
        self.ema_state_index = StateIndex(moments) if of_ema else None
        self.batch_counter = None if of_ema else StateIndex(counter)
        self.batch_state_index = None if of_ema else StateIndex(moments)

    def __call__(
        self,
        x: Array,
        state: State,
        *,
        key: PRNGKeyArray | None = None,
        inference: bool | None = None,
    ) -> tuple[Array, State]:
        """Normalise one example.

        Args:
            x: an array of shape `(input_size, ...)`.
            state: the state.
            key: ignored; layers of all kinds are called alike.
            inference: replaces the field of this name for one call.

        Returns:
            An array of the shape and dtype of `x`, and the new state; in inference, the same state.

        Raises:
            ShapeError: `x` has another number of channels.
            AxisNameError: no axis of the name `axis_name` is mapped.
            StateValueError: the state is that of a batch of models, and was not mapped.
        """
        shape = tuple(shape_of(x))
        if not shape or shape[0] != self.input_size:
            raise self._wrong_shape(shape)
        if inference is None:
            inference = self.inference
        x = jnp.asarray(x)
        if isinstance(inference, _jax.Tracer):
            known = self._known_moments(state)
            trained, new = self._train(x, copy.copy(state))
            moments = _where(inference, known, _cast_like(trained, known))
            state = state.update(_where(inference, state.substate(self), new.substate(self)))
        elif inference:
            moments = self._known_moments(state)
        else:
            moments, state = self._train(x, state)
        return _normalised(self.eps, x, *moments, self.weight, self.bias), state

    @property
    def _averages(self) -> Any:
        """Where the running averages are in the state."""
        return self.ema_state_index if self.mode == "ema" else self.batch_state_index

    def _train(self, x: Array, state: State) -> tuple[_Moments, State]:
        """What to normalise a batch by, and the state after it."""
        present, past = self._moments(x), self._read(state)
        new = self._mixed(past, present)
        if self.mode == "batch":
            counter: Any = self.batch_counter
            state = state.set(counter, state.get(counter) + 1)
            return present, state.set(self._averages, tuple(new))
        is_first: Any = self.ema_first_time_index
        first = state.get(is_first)
        new = _where(first, _cast_like(present, past), new)
        state = state.set(is_first, jnp.zeros_like(first))
        return new, state.set(self._averages, tuple(new))

    def _known_moments(self, state: State) -> _Moments:
        """What to normalise by in inference."""
        mean, variance = self._read(state)
        if self.mode == "ema":
            return _Moments(mean, variance)
        counter: Any = self.batch_counter
        count = state.get(counter)
        weight = 1 - self.momentum ** count.astype(variance.dtype)
        weight = jnp.where((count == 0) | (weight == 0), 1, weight)
        return _Moments(mean / weight.astype(mean.dtype), variance / weight)

    def _moments(self, x: Array) -> _Moments:
        """Mean and variance of each channel over the batch."""
        try:
            return _Moments(*_moments(self.axis_name, x, self.weight, self.bias))
        except NameError as error:
            raise self._no_axis() from error

    def _mixed(self, past: _Moments, present: _Moments) -> _Moments:
        """The running averages after one more batch."""
        return _Moments(*_mixed(self.momentum, *past, *_cast_like(present, past)))

    def _read(self, state: State) -> _Moments:
        """The running averages in the state."""
        mean, variance = state.get(self._averages)
        if jnp.shape(mean) != (self.input_size,):
            raise StateValueError(
                f"The running averages of {self._named()} have shape {jnp.shape(mean)} in the "
                f"state, but the layer has input_size={self.input_size} channels. If the state is "
                "that of a batch of models, map it as they are mapped, with the axis 0 in `in_axes`"
                " and `out_axes`: `filter_vmap(call, in_axes=(if_array(0), None, if_array(0)))"
                "(models, x, states)`."
            )
        return _Moments(mean, variance)

    def _named(self) -> str:
        """The layer and its place in the model, for messages."""
        marker = self._averages.marker
        place = marker.rpartition(".")[0] if isinstance(marker, str) else ""
        return f"`BatchNorm` at `{place}`" if "." in place or "[" in place else "`BatchNorm`"

    def _wrong_shape(self, shape: tuple[int, ...]) -> ShapeError:
        hint = ""
        if len(shape) > 1:
            hint = (
                " The channels come first, and a layer acts on one example at a time. For a batch, "
                f"did you mean `jax.vmap`, as in {_how_to_map(self.axis_name)}?"
            )
        return ShapeError(
            f"{self._named()} was made with input_size={self.input_size} and acts on x of shape "
            f"({self.input_size}, ...); got x of shape {shape}.{hint}"
        )

    def _no_axis(self) -> AxisNameError:
        missing = [name for name in _names(self.axis_name) if not _is_mapped(name)]
        return AxisNameError(
            f"{self._named()} takes means over the mapped axis of the batch, with "
            f"axis_name={self.axis_name!r}, and no axis named "
            f"{' or '.join(map(repr, missing))} is being mapped. Map the model over a batch and "
            f"name the axis, as in {_how_to_map(self.axis_name)}. Inference needs no batch: switch "
            "the whole model with `inference_mode(model)`."
        )


@traced_once(1)
def _moments(
    axis_name: Any, x: Array, weight: Array | None, bias: Array | None
) -> tuple[Array, Array]:
    """Mean and variance of each channel over the batch."""
    x = convert(x, precision_with(x, weight, bias).computed)
    axes = tuple(range(1, x.ndim))
    mean = lax.pmean(mean_over(x, axes), axis_name)
    centred = lax.sub(x, spread(mean, x))
    return mean, lax.pmean(mean_over(squares(centred), axes), axis_name)


@traced_once(1)
def _mixed(
    momentum: float, mean: Array, variance: Array, new_mean: Array, new_variance: Array
) -> tuple[Array, Array]:
    """Two running averages after one more batch."""
    kept, new = momentum, 1 - momentum
    return kept * mean + new * new_mean, kept * variance + new * new_variance


@traced_once(1)
def _normalised(
    eps: float,
    x: Array,
    mean: Array,
    variance: Array,
    weight: Array | None,
    bias: Array | None,
) -> Array:
    precision = precision_with(x, weight, bias)
    x = convert(x, precision.computed)
    variance = convert(variance, jnp.finfo(x.dtype).dtype)
    y = lax.sub(x, spread(mean, x))
    y = lax.mul(y, spread(inverse_root(variance, eps), x))
    return convert(scale_and_shift(y, weight, bias, (0,)), precision.output)


def _names(axis_name: Any) -> tuple[Hashable, ...]:
    return axis_name if isinstance(axis_name, tuple) else (axis_name,)


def _is_mapped(name: Hashable) -> bool:
    try:
        lax.axis_index(name)
    except NameError:
        return False
    return True


def _how_to_map(axis_name: Any) -> str:
    """The call that maps a model and names the axis; one inside the other for several."""
    call = "model"
    for name in _names(axis_name):
        call = f"jax.vmap({call}, axis_name={name!r}, in_axes=(0, None), out_axes=(0, None))"
    return f"`{call}(x, state)`"


def _check_momentum(momentum: Any) -> float:
    if not isinstance(momentum, int | float | np.number) or not 0 <= momentum <= 1:
        raise LayerArgumentError(
            f"`BatchNorm` got momentum={momentum!r}, but how much of the running averages stays at "
            "each batch is a number from 0 to 1."
        )
    return float(momentum)


def _check_mode(mode: Any) -> Literal["ema", "batch"]:
    if mode == "legacy":
        warnings.warn(
            "`BatchNorm` was made without a `mode`, which is `'ema'` then, as in older programs. "
            "Give `mode='batch'` to normalise by the batch in training, which trains better, or "
            "`mode='ema'` to keep it as it is.",
            EclipticWarning,
            stacklevel=4,
        )
        return "ema"
    if mode not in ("ema", "batch"):
        raise LayerArgumentError(
            f"`BatchNorm` got mode={mode!r}: invalid mode, must be 'ema' or 'batch'."
        )
    return mode


# One compiled call for all arrays, in place of four eager ones; layers of one size share it.
@functools.partial(jax.jit, static_argnums=(0, 1))
def _first_values(shape: tuple[int, ...], dtype: Any) -> tuple[tuple[Array, Array], Array, Array]:
    """The moments before any training, that the next batch is the first, and a count of none."""
    moments = jnp.zeros(shape, dtype), jnp.ones(shape, jnp.finfo(dtype).dtype)
    return moments, jnp.array(True), jnp.array(0, jnp.int32)


def _cast_like(moments: _Moments, like: _Moments) -> _Moments:
    return _Moments(
        moments.mean.astype(like.mean.dtype), moments.variance.astype(like.variance.dtype)
    )


def _where(condition: Any, one: Any, other: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), one, other)
