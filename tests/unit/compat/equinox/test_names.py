"""The root of the stand-in: every public name of Equinox 0.13.8."""

import ecliptic as ec
import ecliptic.compat.equinox as eqx

NAMES = """
AbstractClassVar AbstractVar Enumeration EquinoxRuntimeError EquinoxTracetimeError Module Partial
StrictConfig apply_updates branched_error_if clear_caches combine debug
default_deserialise_filter_spec default_serialise_filter_spec error_if field filter
filter_checkpoint filter_closure_convert filter_custom_jvp filter_custom_vjp filter_eval_shape
filter_grad filter_hessian filter_jacfwd filter_jacrev filter_jit filter_jvp filter_make_jaxpr
filter_pmap filter_pure_callback filter_shard filter_value_and_grad filter_vjp filter_vmap if_array
internal is_array is_array_like is_inexact_array is_inexact_array_like module_update_wrapper nn
partition static_field tree_at tree_check tree_deserialise_leaves tree_equal
tree_flatten_one_level tree_inference tree_pformat tree_pprint tree_serialise_leaves
""".split()

# These differ from Ecliptic's own; what in, the tests of the adapters say.
ADAPTED = {
    "StrictConfig", "branched_error_if", "debug", "error_if", "filter_pmap", "internal", "nn",
    "static_field", "tree_deserialise_leaves", "tree_inference",
}  # fmt: skip
OTHERWISE_NAMED = {
    "EquinoxRuntimeError": ec.errors.RuntimeCheckError,
    "EquinoxTracetimeError": ec.errors.TracetimeCheckError,
}


def test_every_name_is_there_and_the_installer_besides():
    assert set(eqx.__all__) == {*NAMES, "install", "uninstall"}
    assert all(hasattr(eqx, name) for name in NAMES)


def test_a_name_is_that_of_ecliptic_unless_it_is_adapted():
    own = {name: getattr(eqx, name) for name in NAMES if name not in ADAPTED}
    assert own == {name: OTHERWISE_NAMED.get(name) or getattr(ec, name) for name in own}


def test_the_version_is_the_one_that_is_mapped():
    assert eqx.__version__ == "0.13.8"
