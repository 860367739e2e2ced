"""Which trace a tracer belongs to.

A tracer carries its trace, and a trace its tag; neither attribute is documented. Where they are
missing, `trace_tag` is None and `is_mapped_by` false, and the mistakes that they would have told
of are reported later, by JAX.
"""

from typing import Any


def trace_tag(value: Any) -> Any:
    """The tag of the transformation that made this tracer; None for what is no tracer."""
    return getattr(getattr(value, "_trace", None), "tag", None)


def is_mapped_by(value: Any, tag: Any) -> bool:
    """Whether the `jax.vmap` with this tag has another value for each element."""
    if tag is None or trace_tag(value) is not tag:
        return False
    return getattr(value, "batch_dim", 0) is not None
