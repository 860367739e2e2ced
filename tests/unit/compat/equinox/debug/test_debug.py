"""`equinox.debug`."""

import ecliptic.compat.equinox as eqx
from ecliptic import debug

NAMES = [
    "announce_transform", "assert_max_traces", "backward_nan", "breakpoint_if", "get_num_traces",
    "inspect_dce", "store_dce",
]  # fmt: skip


def test_every_name_is_there_and_is_that_of_ecliptic():
    assert eqx.debug.__all__ == NAMES
    assert all(getattr(eqx.debug, name) is getattr(debug, name) for name in NAMES)
