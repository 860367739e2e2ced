"""`backward_nan`: where a derivative becomes NaN."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_leaves
from jaxtyping import PyTree

from ecliptic.errors import DebugError
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
    return _watch(x, name, terminate)


@filter_custom_vjp
def _watch(x: PyTree, name: str | None, terminate: bool) -> PyTree:
    return x


@_watch.def_fwd
def _forward(perturbed: PyTree, x: PyTree, name: str | None, terminate: bool) -> Any:
    return x, None


@_watch.def_bwd
def _backward(
    residuals: None, cotangents: PyTree, perturbed: PyTree, x: PyTree, name: Any, terminate: bool
) -> PyTree:
    def show(primals: PyTree, cotangents: PyTree) -> None:
        heading = "" if name is None else f"{name}:\n"
        print(f"{heading}   primals={_text(primals)}\ncotangents={_text(cotangents)}", flush=True)
        if terminate and any(_has_nan(leaf) for leaf in tree_leaves(cotangents)):
            raise DebugError("Encountered NaN")

    jax.debug.callback(show, x, cotangents, ordered=False)
    return cotangents


def _text(tree: PyTree) -> str:
    return tree_pformat(tree, short_arrays=False)


def _has_nan(leaf: Any) -> bool:
    return is_inexact_array(leaf) and bool(jnp.isnan(leaf).any())
