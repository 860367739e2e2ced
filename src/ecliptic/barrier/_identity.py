"""Operations that do nothing, save that some transformation of JAX is ruled out."""

from collections.abc import Callable
from typing import Any

from jax.tree_util import tree_map_with_path

from ecliptic import _jax
from ecliptic._jax._define import define
from ecliptic.primitive import register_impl_finalisation
from ecliptic.tree import format_path, is_array


def identity(
    name: str,
    *,
    jvp: Callable[..., Any] | None = None,
    transpose: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
) -> Any:
    """An operation of one array that does nothing.

    Args:
        name: what programs call it.
        jvp: its rule for derivatives. Default: tangents pass, too.
        transpose: its rule for cotangents, if it is applied to tangents.
        batch: its rule for `jax.vmap`. Default: batches pass, too.
    """
    primitive = _jax.Primitive(name)

    def run(x: Any, **params: Any) -> Any:
        return x

    def outside(x: Any, **params: Any) -> Any:
        # A number that was given to `jax.jvp` comes as a number of JAX's own, and leaves as it was.
        if is_array(x):
            return x
        kinds: tuple[Any, ...] = (bool, int, float, complex)
        return next((kind(x) for kind in kinds if isinstance(x, kind)), x)

    def of_tangent(primals: Any, tangents: Any, **params: Any) -> Any:
        # JAX asks also where there is nothing to differentiate, such as for an integer that comes
        # out of a function with floating-point results.
        if jvp is None or type(tangents[0]) is _jax.Zero:
            return primitive.bind(*primals, **params), tangents[0]
        return jvp(primals, tangents, **params)

    def pass_batch(args: Any, dims: Any, **params: Any) -> Any:
        return primitive.bind(*args, **params), dims[0]

    define(
        primitive, run, run, eager=outside,
        jvp=of_tangent, transpose=transpose, batch=batch or pass_batch,
    )  # fmt: skip
    register_impl_finalisation(primitive)
    return primitive


def mark(primitive: Any, tree: Any, message: Callable[[str], str], **params: Any) -> Any:
    """Applies such an operation to all arrays of a tree.

    Args:
        primitive: the operation.
        tree: any tree. What is no array in it stays as it is.
        message: what its rules will say, given how to call the leaf that they met.
        **params: other parameters of the operation.
    """

    def one(path: Any, leaf: Any) -> Any:
        if not is_array(leaf):
            return leaf
        where = f"`{format_path(path, 'x')}` in it" if path else "it"
        return primitive.bind(leaf, msg=message(where), **params)

    return tree_map_with_path(one, tree)
