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

    !!! Example

        >>> import warnings
        >>> import ecliptic.compat.equinox as eqx
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", DeprecationWarning)
        ...     class Layer(eqx.Module):
        ...         size: int = eqx.static_field()
        >>> Layer(3)
        Layer(size=3)
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

    !!! Example

        >>> import ecliptic.compat.equinox as eqx
        >>> eqx.tree_inference(eqx.nn.Dropout(0.5)).inference
        True
    """
    return inference_mode(pytree, value)


def StrictConfig(force_abstact: bool = False, **kwargs: object) -> Literal[False] | None:
    """What `class M(Module, strict=StrictConfig(...))` once took. Its other options do nothing.

    Args:
        force_abstact: whether the class is abstract, whatever it lacks. (So it is spelt.)
        **kwargs: ignored.

    !!! Example

        >>> import ecliptic.compat.equinox as eqx
        >>> class Base(eqx.Module, strict=eqx.StrictConfig()):
        ...     pass
        >>> Base()
        Base()
    """
    return None if force_abstact else False
