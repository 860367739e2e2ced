"""For library authors: own primitives of JAX, and what they need."""

from ecliptic.primitive._registry import primitive_finalisations, register_impl_finalisation
from ecliptic.primitive._unvmap import (
    unvmap_all,
    unvmap_all_p,
    unvmap_any,
    unvmap_any_p,
    unvmap_max,
    unvmap_max_p,
)

__all__ = [
    "primitive_finalisations",
    "register_impl_finalisation",
    "unvmap_all",
    "unvmap_all_p",
    "unvmap_any",
    "unvmap_any_p",
    "unvmap_max",
    "unvmap_max_p",
]
