"""`nonbatchable`: one value for a whole batch."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import PyTree

from ecliptic.barrier._identity import identity, mark
from ecliptic.errors import NonBatchableError
from ecliptic.runtime import error_if


def _batch(args: Any, dims: Any, *, msg: str, allow_constant_across_batch: bool) -> Any:
    (x,), (dim,) = args, dims
    params = {"msg": msg, "allow_constant_across_batch": allow_constant_across_batch}
    if not allow_constant_across_batch:
        raise NonBatchableError(msg)
    x = jnp.moveaxis(x, dim, 0)
    first = x[:1]
    differs = x != first
    if jnp.issubdtype(x.dtype, jnp.inexact):
        differs &= ~(jnp.isnan(x) & jnp.isnan(first))
    # (Through here again: there may be another batch around.)
    return nonbatchable_p.bind(error_if(x[0], jnp.any(differs), msg), **params), None


nonbatchable_p: Any = identity("nonbatchable", batch=_batch)
"""The primitive of `nonbatchable`."""


def nonbatchable(
    x: PyTree,
    *,
    name: str | None = None,
    msg: str | None = None,
    allow_constant_across_batch: bool = False,
) -> PyTree:
    """Returns its argument, which can then not be batched.

    For what has to be one value for a whole batch, such as the time of a simulation whose elements
    go in step.

    Args:
        x: any PyTree.
        name: what to call it in the message. Default: "This operation".
        msg: the whole message, in place of the usual one.
        allow_constant_across_batch: whether a batch will do if all of its elements are the same,
            which is found out while the program runs; the result is that value then, and is not
            batched. Not by default, since it costs time, and NaN counts as the same as NaN.

    Returns:
        The same PyTree.

    Raises:
        NonBatchableError: once an array of it is batched. If constant batches are allowed, what
            `error_if` raises, if the batch is not constant.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.barrier as exb
        >>> print(jax.vmap(lambda x, t: x * exb.nonbatchable(t), (0, None))(jnp.ones(2), 3.0))
        [3. 3.]
        >>> jax.vmap(lambda t: exb.nonbatchable(t, name="The time"))(jnp.ones(2))
        Traceback (most recent call last):
        ...
        ecliptic.errors.NonBatchableError: Unexpected batch tracer. The time cannot be vmap'd, ...
    """
    called = "This operation" if name is None else name

    def message(where: str) -> str:
        if msg is not None:
            return msg
        if allow_constant_across_batch:
            return (
                f"Nonconstant batch. {called} needs one value for a whole batch, and {where} "
                "differs from element to element."
            )
        return (
            f"Unexpected batch tracer. {called} cannot be vmap'd, and {where} has another value "
            "for each element of a batch. Map over the rest with `in_axes=None` for it, or loop "
            "with `jax.lax.map`."
        )

    return mark(nonbatchable_p, x, message, allow_constant_across_batch=allow_constant_across_batch)
