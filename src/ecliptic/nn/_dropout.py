"""`Dropout`: sets random elements to zero."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from ecliptic import _jax
from ecliptic.errors import EclipticWarning, LayerArgumentError, MissingKeyError
from ecliptic.module import Module
from ecliptic.nn._traced import traced_once


class Dropout(Module):
    """Sets each element to zero with probability `p`, and divides the others by `1 - p`.

    The expectation of each element stays what it was, so that nothing changes in inference, where
    the layer returns its input. Both fields are leaves of the tree.

    Args:
        p: the probability that an element is dropped, from 0 to 1.
        inference: whether to return the input as it is. `inference_mode` sets this for all layers
            of a model.
        deterministic: the old name of `inference`; deprecated.

    Raises:
        LayerArgumentError: `p` is no probability.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> dropout = nn.Dropout(0.5)
        >>> set(dropout(jnp.ones(100), key=jax.random.key(0)).tolist()) == {0.0, 2.0}
        True
        >>> dropout(jnp.ones(3), inference=True)
        Array([1., 1., 1.], dtype=float32)

    Source: Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting",
    JMLR 15 (2014).
    """

    p: float
    inference: bool

    def __init__(
        self, p: float = 0.5, inference: bool = False, *, deterministic: bool | None = None
    ):
        if isinstance(p, int | float) and not 0 <= p <= 1:
            raise LayerArgumentError(
                f"`Dropout` got p={p!r}, but the probability that an element is dropped is between "
                "0 and 1."
            )
        if deterministic is not None:
            _warn_of_old_name("Dropout(deterministic=...)", "Dropout(inference=...)")
            inference = deterministic
        self.p = p
        self.inference = inference

    @property
    def deterministic(self) -> bool:
        """The old name of `inference`."""
        return self.inference

    def __call__(
        self,
        x: Array,
        *,
        key: PRNGKeyArray | None = None,
        inference: bool | None = None,
        deterministic: bool | None = None,
    ) -> Array:
        """Drop elements.

        Args:
            x: an array of any shape; every element is dropped or kept on its own.
            key: the PRNG key. It may be left out in inference and for `p=0`.
            inference: replaces the field of this name for one call.
            deterministic: the old name of `inference`; deprecated.

        Returns:
            An array of the shape of `x`.

        Raises:
            MissingKeyError: a key is needed and none was given.
        """
        if deterministic is not None:
            _warn_of_old_name("Dropout()(deterministic=...)", "Dropout()(inference=...)")
            inference = deterministic
        if inference is None:
            inference = self.inference
        traced = isinstance(inference, _jax.Tracer)
        if (not traced and inference) or _is_number(self.p, 0):
            return x
        if key is None:
            raise MissingKeyError(
                "`Dropout` requires a key when it drops elements: call it as "
                "`dropout(x, key=key)`, with another key at each call. Inference needs none: "
                "switch the whole model with `inference_mode(model)`, or pass `inference=True`."
            )
        if _is_number(self.p, 1):
            # Dividing by 1 - p would make the gradient NaN.
            dropped = jnp.zeros_like(x)
        elif isinstance(self.p, int | float) and isinstance(key, _jax.Tracer):
            dropped = _drop_number(1 - self.p, x, key)
        else:
            # (Outside of a program, each number would have to be compiled.)
            dropped = _drop(1 - jax.lax.stop_gradient(self.p), x, key)
        return jnp.where(inference, x, dropped) if traced else dropped


def _drop(kept: Any, x: Array, key: PRNGKeyArray) -> Array:
    """Keeps so large a share of the elements."""
    mask = jax.random.bernoulli(key, kept, jnp.shape(x))
    if hasattr(kept, "dtype") and jnp.issubdtype(jnp.result_type(x), jnp.inexact):
        kept = jnp.asarray(kept, jnp.result_type(x))
    return jnp.where(mask, x / kept, 0)


_drop_number = traced_once(1)(_drop)


def _is_number(p: Any, number: int) -> bool:
    return isinstance(p, int | float) and p == number


def _warn_of_old_name(old: str, new: str) -> None:
    warnings.warn(f"`{old}` is deprecated in favour of `{new}`.", EclipticWarning, stacklevel=3)
