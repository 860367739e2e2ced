"""Filtered transformations: those of JAX, over any PyTree."""

from ecliptic.transform._grad import filter_grad, filter_value_and_grad
from ecliptic.transform._jit import filter_jit
from ecliptic.transform._stages import Exported
from ecliptic.transform._vmap import filter_vmap, if_array

__all__ = ["Exported", "filter_grad", "filter_jit", "filter_value_and_grad", "filter_vmap", "if_array"]
