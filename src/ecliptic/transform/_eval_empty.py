"""`eval_empty` and `eval_zero`: arrays like those that a function would return."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_map
from jaxtyping import PyTree

from ecliptic.transform._eval_shape import filter_eval_shape


def eval_empty(fn: Callable[..., Any], *inputs: PyTree) -> PyTree:
    """Finds arrays of the shapes and dtypes of what a function returns, without computing that.

    Args:
        fn: the function.
        *inputs: its arguments: any PyTrees, in which each array may be given by a
            `jax.ShapeDtypeStruct`.

    Returns:
        The output, with arbitrary numbers in its arrays, and everything else as it is.

    !!! Example

        >>> import jax.numpy as jnp
        >>> eval_empty(lambda x: {"sum": x.sum(0), "name": "a"}, jnp.ones((2, 3)))["sum"].shape
        (3,)
    """
    return _like(jnp.empty, fn, inputs)


def eval_zero(fn: Callable[..., Any], *inputs: PyTree) -> PyTree:
    """Finds zeros of the shapes and dtypes of what a function returns, without computing that.

    Args:
        fn: the function.
        *inputs: its arguments, as for `eval_empty`.

    Returns:
        The output, with zeros in its arrays, and everything else as it is.

    !!! Example

        >>> import jax.numpy as jnp
        >>> eval_zero(lambda x: x.sum(0) > 1, jnp.ones((2, 3)))
        Array([False, False, False], dtype=bool)
    """
    return _like(jnp.zeros, fn, inputs)


def _like(make: Callable[..., Any], fn: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
    return tree_map(
        lambda x: make(x.shape, x.dtype) if isinstance(x, jax.ShapeDtypeStruct) else x,
        filter_eval_shape(fn, *inputs),
    )
