"""Modules: frozen dataclasses that are PyTrees."""

from ecliptic.module._abstract import AbstractClassVar, AbstractVar
from ecliptic.module._bound import BoundMethod
from ecliptic.module._field import field
from ecliptic.module._meta import ModuleMeta
from ecliptic.module._module import Module
from ecliptic.module._partial import Partial
from ecliptic.module._static import Static
from ecliptic.module._wrapper import module_update_wrapper

__all__ = [
    "AbstractClassVar",
    "AbstractVar",
    "BoundMethod",
    "Module",
    "ModuleMeta",
    "Partial",
    "Static",
    "field",
    "module_update_wrapper",
]
