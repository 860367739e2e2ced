"""Filtered transformations: those of JAX, over any PyTree."""

from ecliptic.transform._grad import filter_grad, filter_value_and_grad
from ecliptic.transform._jit import filter_jit
from ecliptic.transform._program import Output, pack_output
from ecliptic.transform._stages import Exported
from ecliptic.transform._static import same_static
from ecliptic.transform._vmap import filter_vmap, if_array

__all__ = [
    "Exported",
    "Output",
    "filter_grad",
    "filter_jit",
    "filter_value_and_grad",
    "filter_vmap",
    "if_array",
    "pack_output",
    "same_static",
]
