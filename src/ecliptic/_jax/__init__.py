"""The one room that touches unstable JAX.

Everything that Ecliptic takes from `jax._src`, `jax.core`, `jax.interpreters`, `jax.extend` or
`jax.lib` is a row of the table below: where it comes from, since which JAX, why it is needed.
A name is looked up at its first use, so that a JAX release that moves it breaks one feature and
never the import. Each row is checked by a test in `tests/unit/_jax/`.
"""

import importlib
from typing import Any, NamedTuple


class Borrowed(NamedTuple):
    """Where a borrowed name lives.

    Args:
        module: the module of JAX that holds the name.
        name: the attribute in that module.
        since: the oldest JAX in which it was seen.
        why: what Ecliptic needs it for.
    """

    module: str
    name: str
    since: str
    why: str


BORROWED: dict[str, Borrowed] = {
    "Tracer": Borrowed("jax.core", "Tracer", "0.4", "tell traced values from concrete ones"),
    "is_vmappable": Borrowed(
        "jax._src.interpreters.batching", "is_vmappable", "0.4.38",
        "`jax.vmap` treats registered vmappable types as leaves; there is no public way to ask",
    ),
    "spec_types": Borrowed(
        "jax._src.interpreters.batching", "spec_types", "0.4.38",
        "vmappable types may have objects of their own that say how they are mapped",
    ),
    "vmappables": Borrowed(
        "jax._src.interpreters.batching", "vmappables", "0.4.38",
        "a scan asks by what kind of axis a vmappable type is mapped",
    ),
    "to_elt_handlers": Borrowed(
        "jax._src.interpreters.batching", "to_elt_handlers", "0.4.38",
        "one step's element of a vmappable object is made by the owner's rule",
    ),
    "from_elt_handlers": Borrowed(
        "jax._src.interpreters.batching", "from_elt_handlers", "0.4.38",
        "a vmappable object is made of its steps' elements by the owner's rule",
    ),
    "trace_state_clean": Borrowed(
        "jax._src.core", "trace_state_clean", "0.4",
        "loops outside of any trace are compiled, so that they are not traced at each call; "
        "arrays outside of any trace are put on devices at once",
    ),
    "TypedNdArray": Borrowed(
        "jax._src.literals", "TypedNdArray", "0.7", "literal arrays inside traces are arrays"
    ),
    "trace_ctx": Borrowed(
        "jax._src.core", "trace_ctx", "0.4.36",
        "a check in a loop asks whether it is a part of the program of the loop",
    ),
    "DynamicJaxprTrace": Borrowed(
        "jax._src.interpreters.partial_eval", "DynamicJaxprTrace", "0.4",
        "the same: it may be a part of a program of its own, which other programs call",
    ),
    "trace_context": Borrowed(
        "jax._src.config", "trace_context", "0.4.36",
        "an answer is remembered for the options of JAX and the names of axes it was found under",
    ),
    "eval_jaxpr": Borrowed(
        "jax.core", "eval_jaxpr", "0.4", "evaluate a program with other constants"
    ),
    "Literal": Borrowed(
        "jax._src.core", "Literal", "0.4", "evaluate a program operation by operation"
    ),
    "current_name_stack": Borrowed(
        "jax._src.source_info_util", "current_name_stack", "0.4",
        "an operation that is evaluated again keeps its name in profiles",
    ),
    "user_context": Borrowed(
        "jax._src.source_info_util", "user_context", "0.4",
        "an operation that is evaluated again keeps its place in the user's source",
    ),
    "Primitive": Borrowed(
        # (`jax.extend.core` has it too; importing that takes as long as all of Ecliptic.)
        "jax._src.core", "Primitive", "0.4",
        "a loop that can be differentiated in every mode is an operation of its own",
    ),
    "Zero": Borrowed(
        "jax.interpreters.ad", "Zero", "0.4", "the derivative of what does not depend on the input"
    ),
    "instantiate_zeros": Borrowed(
        "jax.interpreters.ad", "instantiate_zeros", "0.4", "make an array of such a derivative"
    ),
    "UndefinedPrimal": Borrowed(
        "jax.interpreters.ad", "UndefinedPrimal", "0.4",
        "the transpose of a batch is made of transposes of its elements",
    ),
    "ShapedArray": Borrowed(
        "jax.core", "ShapedArray", "0.4", "the types of arrays that an operation returns"
    ),
    "is_undefined_primal": Borrowed(
        "jax.interpreters.ad", "is_undefined_primal", "0.4",
        "tell what an operation is transposed with respect to",
    ),
    "callback_op_sharding": Borrowed(
        "jax._src.callback", "_callback_op_sharding", "0.4.36",
        "a failing check calls the host once for a program on several devices",
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    row = BORROWED.get(name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(row.module), row.name)
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"JAX has no {row.module}.{row.name} any more, which Ecliptic needs to {row.why}. "
            "This version of JAX is newer than this version of Ecliptic supports."
        ) from error
    globals()[name] = value
    return value
