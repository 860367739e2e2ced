"""Which trace a tracer belongs to, and which is under way.

A tracer carries its trace, and a trace its tag; neither attribute is documented. Where they are
missing, `trace_tag` is None and `is_mapped_by` false, and the mistakes that they would have told
of are reported later, by JAX.
"""

import os
from types import CodeType
from typing import Any

from ecliptic import _jax

# Where `jax.jit` traces a function.
_JIT = os.sep + os.path.join("jax", "_src", "pjit.py")


def trace_tag(value: Any) -> Any:
    """The tag of the transformation that made this tracer; None for what is no tracer."""
    return getattr(getattr(value, "_trace", None), "tag", None)


def is_mapped_by(value: Any, tag: Any) -> bool:
    """Whether the `jax.vmap` with this tag has another value for each element."""
    if tag is None or trace_tag(value) is not tag:
        return False
    return getattr(value, "batch_dim", 0) is not None


def is_of_jit(code: CodeType) -> bool:
    """Whether this is code of `jax.jit`, which is on the stack while a function is traced."""
    return code.co_filename.endswith(_JIT)


def current_trace() -> Any:
    """The trace that the next operation goes to."""
    return _jax.trace_ctx.trace


def is_part_of(trace: Any) -> bool:
    """Whether what is computed now becomes a part of this trace, possibly differentiated or mapped.

    It is not where another program is being made, of a function under `jax.jit` for instance, even
    if that program will be called in this one.
    """
    here = current_trace()
    while here is not trace:
        if here is None or isinstance(here, _jax.DynamicJaxprTrace):
            return False
        here = getattr(here, "parent_trace", None)
    return True
