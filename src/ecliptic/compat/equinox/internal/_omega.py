"""The module of Equinox that other libraries import the metaclass of `ω` from."""

from ecliptic.tree import ω

_Metaω = type(ω)

__all__ = ["_Metaω", "ω"]
