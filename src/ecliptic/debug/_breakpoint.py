"""`breakpoint_if`: a breakpoint under a condition that is known when the program runs."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from ecliptic.primitive import unvmap_any


def breakpoint_if(pred: Bool[Array, "..."] | bool, **kwargs: Any) -> None:
    """Opens the debugger of JAX if any element of `pred` is true when the program gets there.

    Under `jax.vmap` one element of the batch is enough, and the breakpoint opens once.

    Args:
        pred: the condition; of any shape.
        **kwargs: options of `jax.debug.breakpoint`, such as `num_frames`.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> @jax.jit
        ... def f(x):
        ...     ec.debug.breakpoint_if(jnp.isnan(x))
        ...     return 2 * x
        >>> f(jnp.ones(2)).tolist()
        [2.0, 2.0]
    """
    kwargs.setdefault("token", None)
    jax.lax.cond(
        unvmap_any(jnp.asarray(pred, bool)),
        lambda: jax.debug.breakpoint(**kwargs),
        lambda: None,
    )
