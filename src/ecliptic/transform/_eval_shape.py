"""`filter_eval_shape`: `jax.eval_shape` over any PyTree, and a form of it that remembers."""

from collections.abc import Callable
from typing import Any

import jax
from jax.tree_util import tree_flatten
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic.transform._flat import flatten_call_with_function, unpack
from ecliptic.transform._memo import Memo
from ecliptic.transform._static import static_key
from ecliptic.tree import is_array
from ecliptic.tree._predicates import has_shape


def filter_eval_shape(
    fun: Callable[..., Any], *args: Any, **kwargs: Any
) -> PyTree[jax.ShapeDtypeStruct | Any]:
    """Finds out what a function returns, without computing it.

    As `jax.eval_shape`, for any PyTree. Nothing is allocated, so that this also says what a model
    that does not fit into memory looks like, by calling its class.

    Args:
        fun: the function. If it is a PyTree itself, it may hold descriptions of arrays as well.
        *args: its arguments, in which each array may be given by a `jax.ShapeDtypeStruct`.
        **kwargs: its keyword arguments, likewise.

    Returns:
        The output, with a `jax.ShapeDtypeStruct` in place of each array and everything else as
        the function returned it.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax
        >>> import jax.numpy as jnp
        >>> def rows(x, name):
        ...     return {"name": name, "sum": x.sum(axis=1)}
        >>> filter_eval_shape(rows, jax.ShapeDtypeStruct((1_000_000, 1_000_000), jnp.float32), "a")
        {'name': 'a', 'sum': ShapeDtypeStruct(shape=(1000000,), dtype=float32)}
    """
    flat = flatten_call_with_function(fun, args, kwargs, has_shape)
    return unpack(jax.eval_shape(flat.function, flat.arrays))


# Each entry keeps its function alive, and what that closes over.
_answers = Memo(2048)


def _key(leaf: Any) -> Any:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    return jax.typeof(leaf) if is_array(leaf) else static_key(leaf)


def cached_filter_eval_shape(
    fn: Callable[..., Any], *args: Any, **kwargs: Any
) -> PyTree[jax.ShapeDtypeStruct | Any]:
    """Does what `filter_eval_shape` does, and remembers the answer.

    The function is traced again only if it is another one, or if the tree structure, a shape, a
    dtype or a leaf that is no array differs from those of earlier calls. It must be pure for that.
    Where such leaves cannot be hashed, nothing is remembered. A limited number of answers is, and
    those that were asked for last are kept.

    Args:
        fn: as for `filter_eval_shape`.
        *args: as for `filter_eval_shape`.
        **kwargs: as for `filter_eval_shape`.

    Returns:
        What `filter_eval_shape` returns.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> cached_filter_eval_shape(jnp.sin, jax.ShapeDtypeStruct((3,), jnp.float32))
        ShapeDtypeStruct(shape=(3,), dtype=float32)
    """
    leaves, treedef = tree_flatten((fn, args, kwargs))
    # What a function does may depend on the mesh, on names of mapped axes, on JAX's options.
    key = treedef, tuple(map(_key, leaves)), _jax.trace_context()
    found, out_treedef = _answers.get(
        key, lambda: tree_flatten(filter_eval_shape(fn, *args, **kwargs))
    )
    # (A new tree each time: the caller may change it.)
    return out_treedef.unflatten(found)
