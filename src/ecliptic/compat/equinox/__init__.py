"""The names of Equinox 0.13.8, as Ecliptic has them.

Three ways to run a program that was written for Equinox:

- `import ecliptic.compat.equinox as eqx` in its source;
- `python -m ecliptic.compat.equinox program.py`, or `install()` before anything imports Equinox:
  then `import equinox` gives this package, in the program and in the libraries that it uses;
- `pytest -p ecliptic.compat.equinox.pytest_plugin` for its tests.

Names are mapped one to one. Where a signature or a spelling differs there is an adapter, which says
why it is there.
"""

from ecliptic.compat.equinox import _module as _module
from ecliptic.compat.equinox import debug, internal, nn
from ecliptic.compat.equinox._adapters import (
    StrictConfig,
    static_field,
    tree_inference,
)
from ecliptic.compat.equinox._checks import branched_error_if, error_if
from ecliptic.compat.equinox._install import install, uninstall
from ecliptic.compat.equinox._pmap import filter_pmap
from ecliptic.compat.equinox._serialisation import tree_deserialise_leaves
from ecliptic.errors import RuntimeCheckError as EquinoxRuntimeError
from ecliptic.errors import TracetimeCheckError as EquinoxTracetimeError
from ecliptic.module import (
    AbstractClassVar,
    AbstractVar,
    Module,
    Partial,
    field,
    module_update_wrapper,
)
from ecliptic.runtime import Enumeration
from ecliptic.serialise import (
    default_deserialise_filter_spec,
    default_serialise_filter_spec,
    tree_serialise_leaves,
)
from ecliptic.transform import (
    clear_caches,
    filter_checkpoint,
    filter_closure_convert,
    filter_custom_jvp,
    filter_custom_vjp,
    filter_eval_shape,
    filter_grad,
    filter_hessian,
    filter_jacfwd,
    filter_jacrev,
    filter_jit,
    filter_jvp,
    filter_make_jaxpr,
    filter_pure_callback,
    filter_shard,
    filter_value_and_grad,
    filter_vjp,
    filter_vmap,
    if_array,
)
from ecliptic.tree import (
    apply_updates,
    combine,
    filter,
    is_array,
    is_array_like,
    is_inexact_array,
    is_inexact_array_like,
    partition,
    tree_at,
    tree_check,
    tree_equal,
    tree_flatten_one_level,
    tree_pformat,
    tree_pprint,
)

# The version that is mapped. Programs compare it.
__version__ = "0.13.8"

__all__ = [
    "AbstractClassVar",
    "AbstractVar",
    "Enumeration",
    "EquinoxRuntimeError",
    "EquinoxTracetimeError",
    "Module",
    "Partial",
    "StrictConfig",
    "apply_updates",
    "branched_error_if",
    "clear_caches",
    "combine",
    "debug",
    "default_deserialise_filter_spec",
    "default_serialise_filter_spec",
    "error_if",
    "field",
    "filter",
    "filter_checkpoint",
    "filter_closure_convert",
    "filter_custom_jvp",
    "filter_custom_vjp",
    "filter_eval_shape",
    "filter_grad",
    "filter_hessian",
    "filter_jacfwd",
    "filter_jacrev",
    "filter_jit",
    "filter_jvp",
    "filter_make_jaxpr",
    "filter_pmap",
    "filter_pure_callback",
    "filter_shard",
    "filter_value_and_grad",
    "filter_vjp",
    "filter_vmap",
    "if_array",
    "install",
    "internal",
    "is_array",
    "is_array_like",
    "is_inexact_array",
    "is_inexact_array_like",
    "module_update_wrapper",
    "nn",
    "partition",
    "static_field",
    "tree_at",
    "tree_check",
    "tree_deserialise_leaves",
    "tree_equal",
    "tree_flatten_one_level",
    "tree_inference",
    "tree_pformat",
    "tree_pprint",
    "tree_serialise_leaves",
    "uninstall",
]
