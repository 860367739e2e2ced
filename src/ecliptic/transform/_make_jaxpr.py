"""`filter_make_jaxpr`: `jax.make_jaxpr` over any PyTree."""

from collections.abc import Callable
from typing import Any, ParamSpec

import jax
from jax.tree_util import tree_map
from jaxtyping import PyTree

from ecliptic.module import looks_like_wrapped
from ecliptic.transform._flat import flatten_call
from ecliptic.transform._program import Output
from ecliptic.transform._wrapper import AbstractWrapper, check_callable
from ecliptic.tree._predicates import has_shape

_P = ParamSpec("_P")


class _MakeJaxpr(AbstractWrapper):
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        flat = flatten_call(self._fun, args, kwargs, has_shape)
        jaxpr, out = jax.make_jaxpr(flat.function, return_shape=True)(flat.arrays)
        if type(out) is not Output:
            return jaxpr, out, tree_map(lambda _: None, out)
        structs: list[Any] = [None] * len(out.template)
        for position, struct in zip(out.positions, out.arrays, strict=True):
            structs[position] = struct
        return jaxpr, out.treedef.unflatten(structs), out.treedef.unflatten(out.template)


looks_like_wrapped(_MakeJaxpr)


def filter_make_jaxpr(
    fun: Callable[_P, Any],
) -> Callable[_P, tuple[Any, PyTree[jax.ShapeDtypeStruct], PyTree[Any]]]:
    """Makes a function return the program that JAX traces of it.

    As `jax.make_jaxpr`, for any PyTree.

    Args:
        fun: the function. Arrays that it holds or closes over are constants of the program.

    Returns:
        A function, which is a Module, of the same arguments, in which each array may be given by a
        `jax.ShapeDtypeStruct`. It returns three things: the program, a `ClosedJaxpr` that takes
        and returns the arrays in the order of flattening; the output with a `jax.ShapeDtypeStruct`
        for each array and None for the rest; and the output with None for each array.

    Raises:
        ArgumentTypeError: if `fun` cannot be called.

    !!! Example

        >>> import jax.numpy as jnp
        >>> def double(x, name):
        ...     return 2 * x, name
        >>> jaxpr, structs, static = filter_make_jaxpr(double)(jnp.ones(3), "a")
        >>> jaxpr
        { lambda ; a:f32[3]. let b:f32[3] = mul 2.0:f32[] a in (b,) }
        >>> structs, static
        ((ShapeDtypeStruct(shape=(3,), dtype=float32), None), (None, 'a'))
    """
    check_callable(fun, "filter_make_jaxpr")
    return _MakeJaxpr(fun)
