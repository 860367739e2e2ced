"""The operations of a program."""

from collections.abc import Callable
from typing import Any

import jax


def operations(function: Callable[..., Any], *args: Any) -> list[Any]:
    """Lists the operations of a function as they will be compiled.

    Those of a function under `jax.jit` with `inline=True` are among them. Since JAX 0.12 they get
    there when the program is lowered, and `jax.make_jaxpr` shows the function.
    """
    return _inlined(jax.make_jaxpr(function)(*args))


def _inlined(jaxpr: Any) -> list[Any]:
    found = []
    for eqn in jaxpr.eqns:
        found += _inlined(eqn.params["jaxpr"]) if eqn.params.get("inline") else [eqn]
    return found
