"""Modules: frozen dataclasses that are PyTrees."""

from ecliptic.module._abstract import AbstractClassVar, AbstractVar
from ecliptic.module._bound import BoundMethod, bind
from ecliptic.module._documented import doc_remove_args, doc_repr
from ecliptic.module._exchange import TorchRule, Weights, register_torch_rule, torch_rule
from ecliptic.module._field import field
from ecliptic.module._function import (
    StaticFunction,
    plain_jax_problems,
    unwrap_functions,
    wrap_functions,
)
from ecliptic.module._meta import ModuleMeta, is_module
from ecliptic.module._module import Module
from ecliptic.module._partial import Partial
from ecliptic.module._source import compile_function, tuple_display
from ecliptic.module._static import Static
from ecliptic.module._wrapper import (
    adopt_module_name,
    looks_like_wrapped,
    module_update_wrapper,
)

__all__ = [
    "AbstractClassVar",
    "AbstractVar",
    "BoundMethod",
    "Module",
    "ModuleMeta",
    "Partial",
    "Static",
    "StaticFunction",
    "TorchRule",
    "Weights",
    "adopt_module_name",
    "bind",
    "compile_function",
    "doc_remove_args",
    "doc_repr",
    "field",
    "is_module",
    "looks_like_wrapped",
    "module_update_wrapper",
    "plain_jax_problems",
    "register_torch_rule",
    "torch_rule",
    "tuple_display",
    "unwrap_functions",
    "wrap_functions",
]
