"""`nondifferentiable` and `nondifferentiable_backward`: no derivatives, or none in reverse."""

from typing import Any

from jaxtyping import PyTree

from ecliptic.barrier._identity import identity, mark
from ecliptic.errors import NonDifferentiableError
from ecliptic.runtime import error_if


def _refuse(*args: Any, msg: str) -> Any:
    raise NonDifferentiableError(msg)


nondifferentiable_p: Any = identity("nondifferentiable", jvp=_refuse)
"""The primitive of `nondifferentiable`."""


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    # The tangents go through it as well, for the sake of its transpose.
    primitive = nondifferentiable_backward_p
    return primitive.bind(*primals, **params), primitive.bind(*tangents, **params)


def _transpose(cotangent: Any, x: Any, *, msg: str, symbolic: bool) -> Any:
    if symbolic:
        raise NonDifferentiableError(msg)
    return [error_if(cotangent, cotangent != 0, msg)]


nondifferentiable_backward_p: Any = identity(
    "nondifferentiable_backward", jvp=_jvp, transpose=_transpose
)
"""The primitive of `nondifferentiable_backward`."""


def nondifferentiable(x: PyTree, *, name: str | None = None, msg: str | None = None) -> PyTree:
    """Returns its argument, which can then not be differentiated.

    `jax.lax.stop_gradient` makes derivatives zero, which may well be wrong. This makes them an
    error.

    Args:
        x: any PyTree.
        name: what to call it in the message. Default: "This operation".
        msg: the whole message, in place of the usual one.

    Returns:
        The same PyTree.

    Raises:
        NonDifferentiableError: once an array of it is differentiated.

    !!! Example

        >>> import jax
        >>> import ecliptic.barrier as exb
        >>> print(jax.vmap(exb.nondifferentiable)(jax.numpy.ones(2)))
        [1. 1.]
        >>> jax.grad(lambda x: exb.nondifferentiable(x, name="The tolerance"))(2.0)
        Traceback (most recent call last):
        ...
        ecliptic.errors.NonDifferentiableError: Unexpected tangent. The tolerance cannot be ...
    """

    def message(where: str) -> str:
        return msg or (
            f"Unexpected tangent. {_or(name)} cannot be autodifferentiated, and {where} depends on "
            "what is being differentiated. If it shall count as a constant, give it "
            "`jax.lax.stop_gradient(...)`."
        )

    return mark(nondifferentiable_p, x, message)


def nondifferentiable_backward(
    x: PyTree, name: str | None = None, msg: str | None = None, symbolic: bool = True
) -> PyTree:
    """Returns its argument, which can then not be differentiated in reverse mode.

    Args:
        x: any PyTree.
        name: what to call it in the message. Default: "This operation".
        msg: the whole message, in place of the usual one.
        symbolic: whether any cotangent is an error which JAX does not know to be zero, which is
            found out while the program is traced. Otherwise a cotangent is an error only if it is
            not zero, which is found out while the program runs. The former is the default, since it
            costs nothing.

    Returns:
        The same PyTree.

    Raises:
        NonDifferentiableError: once a cotangent reaches an array of it, if `symbolic`. Otherwise
            what `error_if` raises.

    !!! Example

        >>> import jax
        >>> import ecliptic.barrier as exb
        >>> print(jax.jvp(exb.nondifferentiable_backward, (2.0,), (1.0,))[1])
        1.0
        >>> jax.grad(lambda x: exb.nondifferentiable_backward(x, name="A forward solve"))(2.0)
        Traceback (most recent call last):
        ...
        ecliptic.errors.NonDifferentiableError: Unexpected cotangent. A forward solve cannot be ...
    """

    def message(where: str) -> str:
        return msg or (
            f"Unexpected cotangent. {_or(name)} cannot be reverse-mode autodifferentiated, and a "
            f"cotangent reached {where}. Use forward mode (`jax.jvp`, `jax.jacfwd`), or give it "
            "`jax.lax.stop_gradient(...)` if it shall count as a constant."
        )

    return mark(nondifferentiable_backward_p, x, message, symbolic=symbolic)


def _or(name: str | None) -> str:
    return "This operation" if name is None else name
