"""What a program says of itself as it runs: outcomes with messages."""

from ecliptic.runtime._enumeration import Enumeration, member
from ecliptic.runtime._item import EnumerationItem

__all__ = [
    "Enumeration",
    "EnumerationItem",
    "member",
]
