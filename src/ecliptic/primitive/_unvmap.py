"""Reductions over everything, the axes of every `jax.vmap` around included.

What decides how a program goes on (whether a loop is at its end, whether a check failed) is one
value for a whole batch. These operations make it: under `jax.vmap` they reduce the mapped axis
too, and their result is not mapped.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Int

from ecliptic import _jax
from ecliptic._jax._define import define, no_tangent, scalar_like
from ecliptic.errors import RuleError
from ecliptic.primitive._registry import register_impl_finalisation

# What each does, and the dtype of its result, if it is not that of `x`.
_REDUCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "unvmap_any": (jnp.any, np.dtype(bool)),
    "unvmap_all": (jnp.all, np.dtype(bool)),
    "unvmap_max": (jnp.max, None),
}


@functools.cache
def _reduction(name: str) -> Any:
    """The primitive of a reduction, made at its first use."""
    reduce, dtype = _REDUCTIONS[name]
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


def __getattr__(name: str) -> Any:
    """The primitives `unvmap_any_p`, `unvmap_all_p` and `unvmap_max_p`."""
    if name.removesuffix("_p") not in _REDUCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _reduction(name.removesuffix("_p"))


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
    return _reduction("unvmap_any").bind(jnp.asarray(x))


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
    return _reduction("unvmap_all").bind(jnp.asarray(x))


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
    return _reduction("unvmap_max").bind(jnp.asarray(x))
