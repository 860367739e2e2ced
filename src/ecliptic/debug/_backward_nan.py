"""`backward_nan`: where a derivative becomes NaN."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_leaves
from jaxtyping import PyTree

from ecliptic.runtime import error_if
from ecliptic.transform import filter_custom_vjp
from ecliptic.tree import is_inexact_array, tree_pformat


def backward_nan(x: PyTree, name: str | None = None, terminate: bool = True) -> PyTree:
    """Returns `x`, and prints values and cotangents when it is differentiated in reverse mode.

    Args:
        x: any PyTree.
        name: is printed too, if given.
        terminate: whether the program ends with an error if a cotangent is NaN.

    Returns:
        `x`, unchanged.

    Raises:
        RuntimeCheckError: in the backward pass, if a cotangent is NaN and `terminate` is set. It is
            an [`error_if`][ecliptic.runtime.error_if], so `ECLIPTIC_ON_ERROR=breakpoint` opens a
            debugger there.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> def f(x):
        ...     return jnp.sum(ec.debug.backward_nan(x, name="x") ** 2)
        >>> _ = jax.grad(f)(jnp.ones(2))
        x:
           primals=Array([1., 1.], dtype=float32)
        cotangents=Array([2., 2.], dtype=float32)
    """
    return _watch()(x, name, terminate)


@functools.cache
def _watch() -> Any:
    """The identity with a rule of its own for the way back, made at its first use."""
    watch = filter_custom_vjp(lambda x, name, terminate: x)
    watch.def_fwd(lambda perturbed, x, name, terminate: (x, None))
    watch.def_bwd(_backward)
    return watch


def _backward(
    residuals: None, cotangents: PyTree, perturbed: PyTree, x: PyTree, name: Any, terminate: bool
) -> PyTree:
    def show(primals: PyTree, cotangents: PyTree) -> None:
        heading = "" if name is None else f"{name}:\n"
        print(f"{heading}   primals={_text(primals)}\ncotangents={_text(cotangents)}", flush=True)

    jax.debug.callback(show, x, cotangents)
    if terminate:
        bad = [jnp.isnan(leaf).any() for leaf in tree_leaves(cotangents) if is_inexact_array(leaf)]
        if bad:
            where = "" if name is None else f" in the derivative of `{name}`"
            cotangents = error_if(cotangents, jnp.stack(bad), f"Encountered NaN{where}")
    return cotangents


def _text(tree: PyTree) -> str:
    return tree_pformat(tree, short_arrays=False)
