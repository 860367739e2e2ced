"""Computations that JAX traces once for all layers of the same shapes."""

import functools
from collections.abc import Callable
from typing import Any

import jax


def traced_once(n_static: int = 0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a function of arrays, so that JAX keeps its trace, derivative and batched form.

    They are looked up by shapes and dtypes, and written into the caller's program operation by
    operation: at once, or since JAX 0.12 when that program is lowered. This is what makes the
    gradient of a deep model quick to trace: without it, JAX works out the derivative of each
    operation of each layer.

    Called with anything else than arrays or `None`, such as a type of a user's that stands for a
    weight, the function is just called.

    Args:
        n_static: how many of the first parameters are hashable and no arrays.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        inlined = jax.jit(function, static_argnums=tuple(range(n_static)), inline=True)

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            arrays = all([x is None or isinstance(x, jax.Array) for x in args[n_static:]])
            return inlined(*args) if arrays else function(*args)

        return call

    return decorate
