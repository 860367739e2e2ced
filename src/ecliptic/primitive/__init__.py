"""For library authors: own primitives of JAX, and what they need."""

from typing import TYPE_CHECKING

from ecliptic._later import later
from ecliptic.primitive._broadcast import left_broadcast_to
from ecliptic.primitive._filtered import (
    filter_primitive_batching,
    filter_primitive_bind,
    filter_primitive_def,
    filter_primitive_jvp,
    filter_primitive_transpose,
)
from ecliptic.primitive._finalise import (
    finalise_eval_jaxpr,
    finalise_fn,
    finalise_jaxpr,
    finalise_jaxpr_as_fn,
    finalise_make_jaxpr,
)
from ecliptic.primitive._neighbours import nextafter, prevbefore
from ecliptic.primitive._registry import primitive_finalisations, register_impl_finalisation
from ecliptic.primitive._unvmap import (
    unvmap_all,
    unvmap_any,
    unvmap_max,
)
from ecliptic.primitive._vectorised import create_vprim
from ecliptic.primitive._zeros import materialise_zeros

if TYPE_CHECKING:
    from typing import Any

    unvmap_all_p: Any
    unvmap_any_p: Any
    unvmap_max_p: Any

# Primitives are borrowed from JAX, which must not be a condition of the import.
__getattr__ = later(
    __name__,
    dict.fromkeys(("unvmap_all_p", "unvmap_any_p", "unvmap_max_p"), "ecliptic.primitive._unvmap"),
)

__all__ = [
    "create_vprim",
    "filter_primitive_batching",
    "filter_primitive_bind",
    "filter_primitive_def",
    "filter_primitive_jvp",
    "filter_primitive_transpose",
    "finalise_eval_jaxpr",
    "finalise_fn",
    "finalise_jaxpr",
    "finalise_jaxpr_as_fn",
    "finalise_make_jaxpr",
    "left_broadcast_to",
    "materialise_zeros",
    "nextafter",
    "prevbefore",
    "primitive_finalisations",
    "register_impl_finalisation",
    "unvmap_all",
    "unvmap_all_p",
    "unvmap_any",
    "unvmap_any_p",
    "unvmap_max",
    "unvmap_max_p",
]
