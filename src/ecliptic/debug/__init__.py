"""Tools that say what a program does: why it was traced again, where the NaN is, what is wrong."""

from typing import TYPE_CHECKING, Any

from ecliptic._later import later
from ecliptic.debug._announce import announce_transform
from ecliptic.debug._backward_nan import backward_nan
from ecliptic.debug._breakpoint import breakpoint_if
from ecliptic.debug._changes import Change
from ecliptic.debug._dce import inspect_dce, store_dce
from ecliptic.debug._diagnose import Diagnosis, Finding, diagnose
from ecliptic.debug._max_traces import assert_max_traces, get_num_traces
from ecliptic.debug._report import TraceCount, TraceReport, trace_report
from ecliptic.debug._retrace import Retrace, RetraceReport, explain_retraces
from ecliptic.transform import large_constants

if TYPE_CHECKING:
    announce_jaxpr_p: Any

# Primitives are borrowed from JAX, which must not be a condition of the import.
__getattr__ = later(__name__, {"announce_jaxpr_p": "ecliptic.debug._announce"})

__all__ = [
    "Change",
    "Diagnosis",
    "Finding",
    "Retrace",
    "RetraceReport",
    "TraceCount",
    "TraceReport",
    "announce_jaxpr_p",
    "announce_transform",
    "assert_max_traces",
    "backward_nan",
    "breakpoint_if",
    "diagnose",
    "explain_retraces",
    "get_num_traces",
    "inspect_dce",
    "large_constants",
    "store_dce",
    "trace_report",
]
