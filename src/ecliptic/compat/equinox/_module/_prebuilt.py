"""A name that typinox imports from `equinox._module._prebuilt`."""

from ecliptic.module import BoundMethod

__all__ = ["BoundMethod"]
