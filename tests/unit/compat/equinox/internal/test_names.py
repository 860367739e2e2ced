"""`equinox.internal`: names, and a metaclass that is there for old programs alone."""

import ecliptic.compat.equinox as eqx
from ecliptic import control
from ecliptic.compat.equinox import internal as eqxi
from ecliptic.compat.equinox.internal import _omega

NAMES = """
AbstractClassVar AbstractProgressMeter AbstractVar ContainerMeta Enumeration GetKey MaybeBuffer
NoProgressMeter Static TextProgressMeter TqdmProgressMeter TreeWLCustom announce_jaxpr_p
announce_transform assert_dce branched_error_if breakpoint_if buffer_at_set cached_filter_eval_shape
closure_to_pytree create_vprim debug_backward_nan doc_remove_args doc_repr error_if eval_empty
eval_zero filter_primitive_batching filter_primitive_bind filter_primitive_def filter_primitive_jvp
filter_primitive_transpose finalise_eval_jaxpr finalise_fn finalise_jaxpr finalise_jaxpr_as_fn
finalise_make_jaxpr hashable_combine hashable_partition inspect_dce left_broadcast_to
materialise_zeros maybe_set_p nextafter noinline noinline_p nonbatchable nonbatchable_p
nondifferentiable nondifferentiable_backward nondifferentiable_backward_p nontraceable
nontraceable_p prevbefore primitive_finalisations register_impl_finalisation scan scan_trick
select_if_vmap_p store_dce str2jax to_onnx unvmap_all unvmap_all_p unvmap_any unvmap_any_p
unvmap_max unvmap_max_p while_loop ω
""".split()


def test_every_name_is_there():
    assert sorted(eqxi.__all__) == sorted(NAMES)
    assert all(hasattr(eqxi, name) for name in NAMES)


def test_what_has_another_name_in_ecliptic():
    assert eqxi.TqdmProgressMeter is control.TqdmProgress
    assert eqxi.debug_backward_nan is eqx.debug.backward_nan
    assert (eqxi.Enumeration, eqxi.error_if) == (eqx.Enumeration, eqx.error_if)
    assert _omega._Metaω is type(eqxi.ω)


def test_a_container_numbers_its_attributes():
    class Names(metaclass=eqxi.ContainerMeta):
        one = "first"
        other = "second"

    assert (Names.one, Names.other, len(Names)) == (0, 1, 2)
    assert Names[Names.other] == "second"
