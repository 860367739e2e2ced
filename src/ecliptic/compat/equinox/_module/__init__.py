"""Private modules of Equinox that other libraries import from."""

from ecliptic.compat.equinox._module import _module as _module
from ecliptic.compat.equinox._module import _prebuilt as _prebuilt

__all__ = []
