"""Tools that say what a program does: why it was traced again, where the NaN is, what is wrong."""

from ecliptic.debug._announce import announce_jaxpr_p, announce_transform
from ecliptic.debug._backward_nan import backward_nan
from ecliptic.debug._breakpoint import breakpoint_if
from ecliptic.debug._dce import inspect_dce, store_dce
from ecliptic.debug._max_traces import assert_max_traces, get_num_traces

__all__ = [
    "announce_jaxpr_p",
    "announce_transform",
    "assert_max_traces",
    "backward_nan",
    "breakpoint_if",
    "get_num_traces",
    "inspect_dce",
    "store_dce",
]
