"""What stands for a primitive in a program that is handed to those who know JAX's own alone.

The one who makes a primitive says what it becomes, so that nothing here knows of any of them.
"""

from collections.abc import Callable
from typing import Any

primitive_finalisations: dict[Any, Callable[..., Any]] = {}
"""For each primitive, the function of its arguments and parameters that takes its place."""


def register_impl_finalisation(prim: Any) -> None:
    """Says that a primitive becomes what its implementation consists of.

    Args:
        prim: a `jax.extend.core.Primitive`. Its `impl` has to consist of operations of JAX. It may
            be given to the primitive after this call.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> from jax.extend.core import Primitive
        >>> double = Primitive("double")
        >>> _ = double.def_impl(lambda x: x + x)
        >>> _ = double.def_abstract_eval(lambda x: x)
        >>> exp.register_impl_finalisation(double)
        >>> program = jax.make_jaxpr(double.bind)(jnp.ones(2))
        >>> [eqn.primitive.name for eqn in program.eqns]
        ['double']
        >>> [eqn.primitive.name for eqn in exp.finalise_jaxpr(program).eqns]
        ['add']
    """
    # Looked up at its use, for the sake of whoever replaces `impl` later.
    primitive_finalisations[prim] = lambda *args, **params: prim.impl(*args, **params)
