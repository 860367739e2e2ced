"""`announce_transform`: says which transformations a value goes through."""

import functools
from collections.abc import Callable
from typing import Any

from jax.tree_util import tree_flatten
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic._jax._define import define
from ecliptic.primitive._filtered import is_zero
from ecliptic.tree import is_array


@functools.cache
def announce_primitive() -> Any:
    """The operation behind it, made at its first use."""
    primitive = _jax.Primitive("announce_jaxpr")
    primitive.multiple_results = True
    run, abstract = _say("mlir"), _say("abstract")
    define(primitive, run, abstract, jvp=_jvp, transpose=_transpose, batch=_batch)
    primitive.def_impl(_say("impl"))
    return primitive


class _Teller:
    """Whom to tell, and what to call the value. Compared by what it holds: it is a parameter."""

    __slots__ = ("announce", "name")

    def __init__(self, announce: Callable[[str], Any], name: str) -> None:
        self.announce = announce
        self.name = name

    def say(self, stack: tuple[str, ...], event: str) -> None:
        self.announce(f"{self.name}{':'.join((*stack, event))}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Teller):
            return NotImplemented
        return self.name == other.name and self.announce == other.announce

    def __hash__(self) -> int:
        return hash((self.name, self.announce))

    def __repr__(self) -> str:
        return self.name.strip() or "_"


def _say(event: str) -> Callable[..., list[Any]]:
    """A rule that announces the event and passes the arrays on."""

    def rule(*arrays: Any, teller: _Teller, stack: tuple[str, ...], intermediates: bool) -> Any:
        teller.say(stack, event)
        return list(arrays)

    return rule


def _bind(arrays: Any, teller: _Teller, stack: tuple[str, ...], event: str, deep: bool) -> Any:
    return announce_primitive().bind(
        *arrays, teller=teller, stack=(*stack, event), intermediates=deep
    )


def _bind_known(values: Any, *how: Any) -> list[Any]:
    """Does so to all tangents or cotangents but those that are known to be zero."""
    known = [x for x in values if not is_zero(x)]
    bound = iter(_bind(known, *how) if known else ())
    return [x if is_zero(x) else next(bound) for x in values]


def _tell(teller: _Teller, stack: tuple[str, ...], event: str, intermediates: bool) -> None:
    if intermediates:
        teller.say(stack, event)


def _jvp(
    primals: Any, tangents: Any, *, teller: _Teller, stack: tuple[str, ...], intermediates: bool
) -> Any:
    _tell(teller, stack, "jvp", intermediates)
    out = _bind(primals, teller, stack, "jvp_p", intermediates)
    return out, _bind_known(tangents, teller, stack, "jvp_t", intermediates)


def _transpose(
    cotangents: Any, *arrays: Any, teller: _Teller, stack: tuple[str, ...], intermediates: bool
) -> Any:
    _tell(teller, stack, "transpose", intermediates)
    return _bind_known(cotangents, teller, stack, "transpose", intermediates)


def _batch(
    arrays: Any, axes: Any, *, teller: _Teller, stack: tuple[str, ...], intermediates: bool
) -> Any:
    _tell(teller, stack, "vmap", intermediates)
    return _bind(arrays, teller, stack, "vmap", intermediates), axes


def announce_transform(
    x: PyTree,
    name: str | None = None,
    intermediates: bool = False,
    announce: Callable[[str], Any] = print,
) -> PyTree:
    """Returns `x`, and announces each transformation of JAX that its arrays go through.

    What is announced is how the arrays got to a rule of JAX: `vmap:jvp_t:transpose:mlir` is the
    transpose of the tangent of a batch, as it is lowered. The steps are `jvp_p` and `jvp_t` (values
    and tangents of forward-mode differentiation), `vmap`, and `transpose`; what happens in the end
    is `impl` (evaluated at once), `abstract` (traced: shapes are worked out) or `mlir` (lowered).

    Args:
        x: any PyTree; leaves that are no arrays are passed through.
        name: is announced too, in brackets. Default: nothing.
        intermediates: whether steps are announced as they are taken, too, and not only what
            happens in the end.
        announce: is called with each text.

    Returns:
        `x`, unchanged.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> def f(x):
        ...     return ec.debug.announce_transform(x, name="f") ** 2
        >>> _ = jax.jit(jax.vmap(f))(jnp.ones(3))
        (f) vmap:abstract
        (f) vmap:mlir
    """
    leaves, treedef = tree_flatten(x)
    positions = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
    teller = _Teller(announce, "" if name is None else f"({name}) ")
    arrays = announce_primitive().bind(
        *(leaves[i] for i in positions), teller=teller, stack=(), intermediates=intermediates
    )
    for position, array in zip(positions, arrays, strict=True):
        leaves[position] = array
    return treedef.unflatten(leaves)


def __getattr__(name: str) -> Any:
    """The primitive `announce_jaxpr_p`."""
    if name == "announce_jaxpr_p":
        return announce_primitive()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
