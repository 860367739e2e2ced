"""Programs that do something else on Ecliptic, which is meant, and why."""

_CLASS = "the error says what is wrong, in a class of its own, where the other is an accident of "
_ACCIDENT = _CLASS + "what fails first"
_STRICT = "a mistake that has no meaning is refused, where it went unnoticed"
_MORE = "what has a clear meaning works"
_LEGIBLE = "a printed tree shows no addresses, which differ from run to run"

ON_PURPOSE: dict[str, str] = {
    # Modules
    "modules.frozen_deletion": "a field of a frozen instance cannot be deleted either",
    "modules.keywords_of_the_call_win": "as in functools.partial",
    "modules.static_field_warns": "a deprecation is a DeprecationWarning",
    "modules.metadata_may_not_say_static_twice": "a wrong class statement is a DefinitionError",
    "modules.module_update_wrapper_without_wrapped": "a wrong class is a DefinitionError",
    # Trees
    "filters.predicates_of_a_tracer": "a tracer is an array",
    "filters.filter_by_a_numpy_bool": "NumPy's booleans are booleans",
    "filters.combine_nothing": "the error says what is missing: a StructureError",
    "filters.apply_updates_keeps_the_dtype": "a model in half precision stays so, as in Optax",
    "trees.at_something_that_is_made": "what is computed is no node: a SelectionError",
    "trees.at_the_same_place_twice": "two different replacements of one node contradict each other",
    "text.of_relu": _LEGIBLE,
    "text.of_sin": _LEGIBLE,
    "text.mlp": _LEGIBLE,
    "text.mlp_repr": _LEGIBLE,
    "text.bound_method": "a bound method is shown as the tree that it is",
    # Transformations
    "jit.compiled_with_another_static": "the program of another static value is a wrong result",
    "jit.traces_by_type": "1, 1.0 and True are different static values: results differ in dtype",
    "jit.an_unhashable_static": "a static value without a hash is a StaticError (a TypeError)",
    "vmap.in_axes_wrong_type": "a wrong type is a TypeError",
    "vmap.in_axes_int_on_a_string": "a wrong value is a ValueError",
    "vmap.in_axes_list": _MORE,
    "vmap.keywords": _MORE + ": keyword arguments are mapped by default",
    "derivatives.grad_of_a_python_float": "a warning: nothing is differentiated",
    "derivatives.grad_of_integers": "a warning: nothing is differentiated",
    "derivatives.grad_argnums": _MORE,
    "derivatives.jacfwd_has_aux": _MORE + ": the auxiliary output may be anything",
    "derivatives.jvp_of_a_model": _MORE + ": None is a tangent of any subtree",
    "derivatives.custom_jvp_without_a_rule": _ACCIDENT,
    "derivatives.custom_jvp_perturbed_keyword": "one class for what a rule lacks: RuleError",
    "derivatives.custom_vjp_old": "a deprecation is a DeprecationWarning",
    "derivatives.custom_vjp_bad_rule": "a rule that returns another tree than its input is refused",
    # Layers
    "layers.linear_wrong_shape": "a wrong shape is a ShapeError (a ValueError), in every layer",
    "layers.conv_transpose_reflect": "a wrong argument of a layer is a ValueError",
    "layers.max_pool_wrong_rank": "a wrong shape is a ShapeError (a ValueError), in every layer",
    "layers.embedding_floats": "a wrong argument of a layer is a ValueError",
    "layers.sequential_of_functions": _MORE + ": functions without `key` are layers",
    "layers.prelu_none": "None is the default slope, as its documentation says",
    "layers.weight_norm_of_what_is_not_there": _ACCIDENT,
    "layers.mlp_bad_depth": _ACCIDENT,
    "layers.dropout_bad_p": _STRICT,
    "layers.rotary_of_two_thetas": "each base has its own tables, also at the same size",
    # States
    "state.sequential_without_state": _ACCIDENT,
    "state.batch_norm_inference_first": "before the first step the statistics are 0 and 1, not 0",
    "state.batch_norm_wrong_size": "a wrong shape is a ShapeError (a ValueError), in every layer",
    "state.spectral_norm_of_what_is_not_there": _ACCIDENT,
    "serialisation.a_spec_that_is_no_function": "a tree that does not fit is a StructureError",
    "serialisation.a_typed_key": _MORE + ": typed keys are written and read",
    # Checks
    "runtime.a_wrong_mode": "a wrong argument is a ValueError",
    "runtime.no_arrays": _MORE + ", outside of a compiled program",
    "runtime.a_number": _MORE + ", outside of a compiled program",
    "runtime.a_predicate_of_numbers": "a condition is boolean: a TypeError says so",
    "runtime.branched_without_messages": _STRICT,
    "runtime.enumeration_is_not_called": _STRICT,
    "runtime.enumeration_assignment": _STRICT,
    "runtime.enumeration_hash": _MORE,
    "runtime.enumeration_iterates": _MORE,
    "runtime.backward_nan_of_a_number": "the derivative at a Python number is not 0",
    # Loops
    "control.while_zero_steps": _MORE,
    "control.while_negative_steps": _STRICT,
    "control.while_bad_condition": _ACCIDENT,
    "control.while_carry_changes": "a changed carry is a CarryError (a TypeError), as in JAX",
    "control.while_dtype_changes": "a weakly typed carry is promoted, as in JAX",
    "control.while_with_a_static_leaf": _MORE,
    "control.scan_bad_kind": _STRICT,
    "internal.omega_plus_a_tree": "a wrong operand is a LeafError (a TypeError)",
    "internal.omega_bool": "a truth value that is always True hides mistakes",
    "internal.omega_is_frozen": _STRICT,
    "internal.noinline_under_jit": _MORE,
}
