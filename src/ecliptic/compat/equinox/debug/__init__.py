"""The names of `equinox.debug`."""

from ecliptic.debug import (
    announce_transform,
    assert_max_traces,
    backward_nan,
    breakpoint_if,
    get_num_traces,
    inspect_dce,
    store_dce,
)

__all__ = [
    "announce_transform",
    "assert_max_traces",
    "backward_nan",
    "breakpoint_if",
    "get_num_traces",
    "inspect_dce",
    "store_dce",
]
