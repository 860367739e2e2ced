"""Programs without the constants that they were traced with."""

from typing import Any


def without_constants(closed: Any) -> Any:
    """The program of a `ClosedJaxpr`, which takes the constants as its first arguments.

    From JAX 0.12 on a program holds its constants itself; elsewhere it does not.
    """
    jaxpr = closed.jaxpr
    return jaxpr.with_consts(()) if hasattr(jaxpr, "with_consts") else jaxpr
