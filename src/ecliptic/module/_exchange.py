"""How the weights that PyTorch keeps for a layer become those of a Module: a hook on classes.

`serialise` loads weights and knows no layer, `nn` has layers and knows no file: they meet here. A
layer of one's own is registered in the same way.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

Weights = Mapping[str, np.ndarray]


class TorchRule(NamedTuple):
    """How PyTorch's weights fit a class of Modules.

    Args:
        convert: a function of the Module and of PyTorch's weights of it, by name, that returns the
            arrays of the Module by path, in the shapes that they have there. The value at the path
            of a `StateIndex` is that of the state. It takes from the weights what it needs: what is
            not there counts as missing, and what nobody took as extra. Without a function, the
            names and shapes are the same in both.
        transparent: the name of a field that PyTorch's names leave out: its `layers[0].weight` is
            `0.weight` there.

    !!! Example

        >>> import ecliptic as ec
        >>> from ecliptic.serialise import TorchRule, register_torch_rule
        >>> class Scale(ec.Module):
        ...     factor: object
        >>> def convert(scale, weights):
        ...     return {"factor": weights["weight"]}
        >>> register_torch_rule(Scale, TorchRule(convert))
    """

    convert: Callable[[Any, Weights], dict[str, Any]] | None = None
    transparent: str | None = None


_RULES: dict[type, TorchRule] = {}


def register_torch_rule(cls: type, rule: TorchRule) -> None:
    """Say how PyTorch's weights fit a class, for `ecliptic.serialise.from_torch`.

    Without a rule, an array is looked for under its own path, written with dots, in its own shape.

    Args:
        cls: a class of Modules; the rule holds for subclasses too.
        rule: the rule.

    !!! Example

        >>> import ecliptic as ec, jax, jax.numpy as jnp, numpy as np
        >>> from ecliptic.serialise import TorchRule, from_torch, register_torch_rule
        >>> class Scale(ec.Module):
        ...     factor: jax.Array
        >>> register_torch_rule(Scale, TorchRule(lambda layer, w: {"factor": w["weight"]}))
        >>> from_torch(Scale(jnp.zeros(2)), {"weight": np.ones(2, np.float32)}).factor
        Array([1., 1.], dtype=float32)
    """
    _RULES[cls] = rule


def torch_rule(cls: type) -> TorchRule:
    """The rule of a class, or of the nearest of its bases that has one."""
    return next((_RULES[base] for base in cls.__mro__ if base in _RULES), TorchRule())
