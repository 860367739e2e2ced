"""The names of `equinox.internal`."""

from ecliptic.barrier import (
    noinline,
    noinline_p,
    nonbatchable,
    nonbatchable_p,
    nondifferentiable,
    nondifferentiable_backward,
    nondifferentiable_backward_p,
    nontraceable,
    nontraceable_p,
)
from ecliptic.compat.equinox._checks import branched_error_if, error_if
from ecliptic.compat.equinox.internal import _omega as _omega
from ecliptic.compat.equinox.internal._containers import ContainerMeta
from ecliptic.compat.equinox.internal._loops import scan, while_loop
from ecliptic.control import AbstractProgress as AbstractProgressMeter
from ecliptic.control import (
    MaybeBuffer,
    buffer_at_set,
    maybe_set_p,
    scan_trick,
    select_if_vmap_p,
)
from ecliptic.control import NoProgress as NoProgressMeter
from ecliptic.control import TextProgress as TextProgressMeter
from ecliptic.control import TqdmProgress as TqdmProgressMeter
from ecliptic.debug import (
    announce_jaxpr_p,
    announce_transform,
    breakpoint_if,
    inspect_dce,
    store_dce,
)
from ecliptic.debug import backward_nan as debug_backward_nan
from ecliptic.module import (
    AbstractClassVar,
    AbstractVar,
    Static,
    doc_remove_args,
    doc_repr,
)
from ecliptic.primitive import (
    create_vprim,
    filter_primitive_batching,
    filter_primitive_bind,
    filter_primitive_def,
    filter_primitive_jvp,
    filter_primitive_transpose,
    finalise_eval_jaxpr,
    finalise_fn,
    finalise_jaxpr,
    finalise_jaxpr_as_fn,
    finalise_make_jaxpr,
    left_broadcast_to,
    materialise_zeros,
    nextafter,
    prevbefore,
    primitive_finalisations,
    register_impl_finalisation,
    unvmap_all,
    unvmap_all_p,
    unvmap_any,
    unvmap_any_p,
    unvmap_max,
    unvmap_max_p,
)
from ecliptic.runtime import (
    Enumeration,
    assert_dce,
)
from ecliptic.serialise import (
    to_onnx,
)
from ecliptic.testing import (
    GetKey,
)
from ecliptic.transform import (
    cached_filter_eval_shape,
    closure_to_pytree,
    eval_empty,
    eval_zero,
)
from ecliptic.tree import (
    TreeWLCustom,
    hashable_combine,
    hashable_partition,
    str2jax,
    ω,
)

__all__ = [
    "AbstractClassVar",
    "AbstractProgressMeter",
    "AbstractVar",
    "ContainerMeta",
    "Enumeration",
    "GetKey",
    "MaybeBuffer",
    "NoProgressMeter",
    "Static",
    "TextProgressMeter",
    "TqdmProgressMeter",
    "TreeWLCustom",
    "announce_jaxpr_p",
    "announce_transform",
    "assert_dce",
    "branched_error_if",
    "breakpoint_if",
    "buffer_at_set",
    "cached_filter_eval_shape",
    "closure_to_pytree",
    "create_vprim",
    "debug_backward_nan",
    "doc_remove_args",
    "doc_repr",
    "error_if",
    "eval_empty",
    "eval_zero",
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
    "hashable_combine",
    "hashable_partition",
    "inspect_dce",
    "left_broadcast_to",
    "materialise_zeros",
    "maybe_set_p",
    "nextafter",
    "noinline",
    "noinline_p",
    "nonbatchable",
    "nonbatchable_p",
    "nondifferentiable",
    "nondifferentiable_backward",
    "nondifferentiable_backward_p",
    "nontraceable",
    "nontraceable_p",
    "prevbefore",
    "primitive_finalisations",
    "register_impl_finalisation",
    "scan",
    "scan_trick",
    "select_if_vmap_p",
    "store_dce",
    "str2jax",
    "to_onnx",
    "unvmap_all",
    "unvmap_all_p",
    "unvmap_any",
    "unvmap_any_p",
    "unvmap_max",
    "unvmap_max_p",
    "while_loop",
    "ω",
]
