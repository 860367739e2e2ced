"""Filtered transformations: those of JAX, over any PyTree."""

from ecliptic.transform._baked import captured_arrays, large_constants, nbytes, show_bytes
from ecliptic.transform._checkpoint import filter_checkpoint
from ecliptic.transform._clear import clear_caches, on_clear
from ecliptic.transform._closure_convert import filter_closure_convert
from ecliptic.transform._closure_to_pytree import closure_to_pytree
from ecliptic.transform._code import code_of, parameters_of, place_of, unwrapped
from ecliptic.transform._custom_jvp import filter_custom_jvp
from ecliptic.transform._custom_vjp import filter_custom_vjp
from ecliptic.transform._eval_empty import eval_empty, eval_zero
from ecliptic.transform._eval_shape import cached_filter_eval_shape, filter_eval_shape
from ecliptic.transform._failure import (
    check_compiled,
    converted_errors,
    on_failure,
    tell_failure,
)
from ecliptic.transform._grad import filter_grad, filter_value_and_grad
from ecliptic.transform._history import Lineage, Trace, lineages, observe
from ecliptic.transform._jacobian import filter_hessian, filter_jacfwd, filter_jacrev
from ecliptic.transform._jit import JitFunction, filter_jit
from ecliptic.transform._jvp import filter_jvp
from ecliptic.transform._linearize import filter_linearize
from ecliptic.transform._make_jaxpr import filter_make_jaxpr
from ecliptic.transform._placement import observe_placements
from ecliptic.transform._pmap import filter_pmap
from ecliptic.transform._program import Output, pack_output
from ecliptic.transform._pure_callback import filter_pure_callback
from ecliptic.transform._shard import filter_shard
from ecliptic.transform._shard_map import filter_shard_map
from ecliptic.transform._signature import ArrayType, FunctionMark, Signature, same_leaf
from ecliptic.transform._stages import Exported
from ecliptic.transform._static import same_static
from ecliptic.transform._vjp import filter_vjp
from ecliptic.transform._vmap import filter_vmap, if_array
from ecliptic.transform._wrapper import AbstractWrapper, check_callable, name_of

__all__ = [
    "AbstractWrapper",
    "ArrayType",
    "Exported",
    "FunctionMark",
    "JitFunction",
    "Lineage",
    "Output",
    "Signature",
    "Trace",
    "cached_filter_eval_shape",
    "captured_arrays",
    "check_callable",
    "check_compiled",
    "clear_caches",
    "closure_to_pytree",
    "code_of",
    "converted_errors",
    "eval_empty",
    "eval_zero",
    "filter_checkpoint",
    "filter_closure_convert",
    "filter_custom_jvp",
    "filter_custom_vjp",
    "filter_eval_shape",
    "filter_grad",
    "filter_hessian",
    "filter_jacfwd",
    "filter_jacrev",
    "filter_jit",
    "filter_jvp",
    "filter_linearize",
    "filter_make_jaxpr",
    "filter_pmap",
    "filter_pure_callback",
    "filter_shard",
    "filter_shard_map",
    "filter_value_and_grad",
    "filter_vjp",
    "filter_vmap",
    "if_array",
    "large_constants",
    "lineages",
    "name_of",
    "nbytes",
    "observe",
    "observe_placements",
    "on_clear",
    "on_failure",
    "pack_output",
    "parameters_of",
    "place_of",
    "same_leaf",
    "same_static",
    "show_bytes",
    "tell_failure",
    "unwrapped",
]
