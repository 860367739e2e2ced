"""Names of Equinox's root whose signature or spelling differs here."""

import warnings
from typing import Any, Literal

from jaxtyping import PyTree

from ecliptic.module import field
from ecliptic.nn import inference_mode


def static_field(**kwargs: Any) -> Any:
    """`field(static=True)`, under the name that it had once.

    Args:
        **kwargs: as for `field`.
    """
    warnings.warn(
        "`static_field(...)` is deprecated in favour of `field(..., static=True)`.",
        DeprecationWarning,
        stacklevel=2,
    )
    return field(**kwargs, static=True)


def tree_inference(pytree: PyTree, value: bool = True) -> PyTree:
    """`nn.inference_mode`, under the name that it had once.

    Args:
        pytree: as there.
        value: as there.
    """
    return inference_mode(pytree, value)


def StrictConfig(force_abstact: bool = False, **kwargs: object) -> Literal[False] | None:
    """What `class M(Module, strict=StrictConfig(...))` once took. Its other options do nothing.

    Args:
        force_abstact: whether the class is abstract, whatever it lacks. (So it is spelt.)
        **kwargs: ignored.
    """
    return None if force_abstact else False
