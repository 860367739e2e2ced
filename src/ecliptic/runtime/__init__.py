"""What a program says of itself as it runs: checks, and outcomes with messages."""

from ecliptic.runtime._assert_dce import assert_dce
from ecliptic.runtime._enumeration import Enumeration, member
from ecliptic.runtime._error_if import branched_error_if, error_if
from ecliptic.runtime._item import EnumerationItem
from ecliptic.runtime._mode import on_error
from ecliptic.transform import converted_errors

__all__ = [
    "Enumeration",
    "EnumerationItem",
    "assert_dce",
    "branched_error_if",
    "converted_errors",
    "error_if",
    "member",
    "on_error",
]
