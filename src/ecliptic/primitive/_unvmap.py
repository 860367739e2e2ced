"""Reductions over everything, the axes of every `jax.vmap` around included.

What decides how a program goes on (whether a loop is at its end, whether a check failed) is one
value for a whole batch. These operations make it: under `jax.vmap` they reduce the mapped axis
too, and their result is not mapped.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Int

from ecliptic import _jax
from ecliptic._jax._define import define, no_tangent, scalar_like
from ecliptic.errors import RuleError
from ecliptic.primitive._registry import register_impl_finalisation


def _reduction(name: str, reduce: Callable[[Any], Any], dtype: Any) -> Any:
    """The primitive of a reduction; `dtype` is that of the result, if it is not that of `x`."""
    primitive = _jax.Primitive(name)

    def abstract(x: Any) -> Any:
        return scalar_like(x, x.dtype if dtype is None else dtype)

    def jvp(primals: Any, tangents: Any) -> Any:
        out = primitive.bind(*primals)
        if jnp.issubdtype(out.dtype, jnp.inexact):
            raise RuleError(
                f"`{name}` has no derivative, and a value that is being differentiated reached it. "
                "Give it `jax.lax.stop_gradient(x)`."
            )
        return out, no_tangent(out)

    def batch(args: Any, dims: Any) -> Any:
        return primitive.bind(*args), None

    define(primitive, reduce, abstract, eager=reduce, jvp=jvp, batch=batch)
    register_impl_finalisation(primitive)
    return primitive


unvmap_any_p: Any = _reduction("unvmap_any", jnp.any, np.dtype(bool))
"""The primitive of `unvmap_any`."""

unvmap_all_p: Any = _reduction("unvmap_all", jnp.all, np.dtype(bool))
"""The primitive of `unvmap_all`."""

unvmap_max_p: Any = _reduction("unvmap_max", jnp.max, None)
"""The primitive of `unvmap_max`."""


def unvmap_any(x: Bool[ArrayLike, "..."]) -> Bool[Array, ""]:
    """Whether any element is true, over all axes and those of every `jax.vmap` around.

    Args:
        x: booleans of any shape.

    Returns:
        One boolean, which is not mapped by any `jax.vmap`.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> print(jax.vmap(exp.unvmap_any)(jnp.array([False, True, False])))
        [ True  True  True]
    """
    return unvmap_any_p.bind(jnp.asarray(x))


def unvmap_all(x: Bool[ArrayLike, "..."]) -> Bool[Array, ""]:
    """Whether all elements are true, over all axes and those of every `jax.vmap` around.

    Args:
        x: booleans of any shape.

    Returns:
        One boolean, which is not mapped by any `jax.vmap`.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> print(jax.vmap(exp.unvmap_all)(jnp.array([False, True, False])))
        [False False False]
    """
    return unvmap_all_p.bind(jnp.asarray(x))


def unvmap_max(x: Int[ArrayLike, "..."]) -> Int[Array, ""]:
    """The greatest element, over all axes and those of every `jax.vmap` around.

    Args:
        x: integers of any shape, at least one.

    Returns:
        One number of the dtype of `x`, which is not mapped by any `jax.vmap`.

    Raises:
        RuleError: if it is differentiated.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> print(jax.vmap(exp.unvmap_max)(jnp.array([1, 3, 2])))
        [3 3 3]
    """
    return unvmap_max_p.bind(jnp.asarray(x))
