"""`nontraceable`: neither differentiation nor batching."""

from typing import Any

from jaxtyping import PyTree

from ecliptic.barrier._identity import identity, mark
from ecliptic.errors import NonTraceableError


def _refuse(what: str) -> Any:
    def rule(*args: Any, msg: str) -> Any:
        raise NonTraceableError(f"Detected {what} of {msg}")

    return rule


nontraceable_p: Any = identity(
    "nontraceable",
    jvp=_refuse("differentiation"),
    transpose=_refuse("transposition"),
    batch=_refuse("batching"),
)
"""The primitive of `nontraceable`."""


def nontraceable(x: PyTree, *, name: str = "nontraceable operation") -> PyTree:
    """Returns its argument, which can then be neither differentiated nor batched.

    For values that a rule makes at a point where all transformations ought to be over. They can
    be compiled.

    Args:
        x: any PyTree.
        name: what to call it in the message.

    Returns:
        The same PyTree.

    Raises:
        NonTraceableError: once an array of it is differentiated or batched.

    !!! Example

        >>> import jax
        >>> import ecliptic.barrier as exb
        >>> print(jax.jit(exb.nontraceable)(2.0))
        2.0
        >>> jax.grad(lambda x: exb.nontraceable(x, name="the result of a search"))(2.0)
        Traceback (most recent call last):
        ...
        ecliptic.errors.NonTraceableError: Detected differentiation of the result of a search. ...
    """

    def message(where: str) -> str:
        return (
            f"{name}. Its author rules out that {where} is transformed by `jax.grad`, `jax.jvp`, "
            "`jax.vmap` or the like."
        )

    return mark(nontraceable_p, x, message)
