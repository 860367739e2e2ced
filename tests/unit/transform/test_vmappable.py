"""`filter_vmap` of objects whose type is registered with JAX as vmappable."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

import ecliptic as ec
from ecliptic.errors import ArgumentError, StructureError
from ecliptic.transform import filter_grad, filter_jit, filter_vmap, if_array
from tests.support.vmappables import Nested, Rows, Shared, Table

# What the functions that are registered for sparse arrays raise at a None.
_OF_SPARSE = (AttributeError, AssertionError, TypeError, ValueError)


def x23():
    return jnp.arange(6.0).reshape(2, 3)


def equal(first, second):
    return bool(ec.tree_equal(first, second))


def same(x):
    return x


def refused(error, message, fun, *args, **options):
    with pytest.raises(error, match=message):
        filter_vmap(fun, **options)(*args)


DENSE = np.arange(1.0, 25.0, dtype=np.float32).reshape(4, 3, 2)
V = np.array([1.0, 10.0], np.float32)

SPARSE = pytest.mark.parametrize("kind", [sparse.BCOO, sparse.BCSR])


def batched(kind, dense=DENSE):
    return kind.fromdense(jnp.asarray(dense), n_batch=1, nse=6)


def times_v(m):
    return m @ jnp.asarray(V)


@SPARSE
@pytest.mark.parametrize("in_axes", [if_array(0), 0, (0,), (if_array(0),), lambda x: 0, {"m": 0}])
def test_a_sparse_argument_is_mapped_whole(kind, in_axes):
    assert equal(filter_vmap(times_v, in_axes=in_axes)(batched(kind)), jnp.asarray(DENSE @ V))


@SPARSE
def test_a_sparse_output_is_put_together_by_its_type(kind):
    found = filter_vmap(lambda x: kind.fromdense(x, nse=6))(jnp.asarray(DENSE))
    assert (type(found), found.shape, found.n_batch) == (kind, (4, 3, 2), 1)
    assert np.array_equal(found.todense(), DENSE)


@SPARSE
def test_a_specification_below_a_sparse_argument_that_says_one_thing_is_taken(kind):
    m = batched(kind)
    spec = jax.tree.map(lambda leaf: 0, (m,))
    assert equal(filter_vmap(times_v, in_axes=spec)(m), jnp.asarray(DENSE @ V))


@SPARSE
def test_a_sparse_argument_can_be_the_same_for_each_element(kind):
    one = kind.fromdense(jnp.asarray(DENSE[0]))
    xs = jnp.ones((5, 2))
    none = jax.tree.unflatten(jax.tree.structure(one), [None] * len(jax.tree.leaves(one)))
    for spec in (None, lambda leaf: None, none):
        found = filter_vmap(lambda m, x: m @ x, in_axes=(spec, 0))(one, xs)
        assert np.allclose(found, np.ones((5, 2)) @ DENSE[0].T)


def test_an_unmapped_sparse_output_stays_as_it_is_or_is_broadcast():
    one, xs = sparse.BCOO.fromdense(jnp.asarray(DENSE[0])), jnp.ones((5, 2))
    f = lambda m, x: (m @ x, m)
    assert filter_vmap(f, in_axes=(None, 0), out_axes=(0, None))(one, xs)[1].shape == (3, 2)
    assert filter_vmap(f, in_axes=(None, 0))(one, xs)[1].shape == (5, 3, 2)


@pytest.mark.parametrize("out_axes", [1, if_array(1), lambda leaf: 1])
def test_a_sparse_output_is_put_together_at_any_axis_that_it_has(out_axes):
    x = jnp.arange(48.0).reshape(2, 4, 3, 2)
    m = sparse.BCOO.fromdense(x, n_batch=2, nse=6)
    found = filter_vmap(same, out_axes=out_axes)(m)
    assert np.array_equal(found.todense(), jnp.moveaxis(x, 0, 1))


def test_sparse_arguments_nest():
    x = jnp.arange(48.0).reshape(2, 4, 3, 2)
    m = sparse.BCOO.fromdense(x, n_batch=2, nse=6)
    assert np.array_equal(filter_vmap(filter_vmap(times_v))(m), x @ V)
    assert np.array_equal(filter_vmap(filter_vmap(times_v), in_axes=1)(m), np.moveaxis(x, 1, 0) @ V)


def test_a_sparse_field_of_a_module_is_mapped():
    class Sparse(ec.Module):
        m: sparse.BCOO
        bias: jax.Array
        name: str

        def __call__(self, x):
            return self.m @ x + self.bias

    module = Sparse(batched(sparse.BCOO), jnp.ones((4, 3)), "n")
    for spec in (if_array(0), Sparse(0, 0, None)):
        y, back = filter_vmap(lambda m, x: (m(x), m), in_axes=(spec, None))(module, jnp.asarray(V))
        assert np.array_equal(y, DENSE @ V + 1)
        assert (back.name, back.m.shape) == ("n", (4, 3, 2))


def test_sparse_arguments_go_through_jit_scan_and_grad():
    m = batched(sparse.BCOO)
    assert filter_jit(filter_vmap(lambda m, s: (m, s)))(m, "a")[1] == "a"
    step = filter_vmap(lambda m: m * 2.0)
    carried, _ = jax.lax.scan(lambda c, _: (step(c), None), m, None, length=3)
    assert np.array_equal(carried.todense(), DENSE * 8)
    gradient = filter_grad(lambda m: filter_vmap(lambda m: times_v(m).sum())(m).sum())(m)
    assert np.array_equal(gradient.data, V[np.asarray(m.indices)[..., 1]])


def shared():
    return Shared(jnp.zeros((4, 2)), jnp.ones(16))


def test_a_field_that_the_type_does_not_batch_stays_as_it_is():
    found = filter_vmap(lambda d, i: d.replace(state=d.state + i))(shared(), jnp.arange(4.0))
    assert equal(found.state, jnp.arange(4.0)[:, None] + jnp.zeros((1, 2)))
    assert found.buffer.shape == (16,)


@pytest.mark.parametrize("out_axes", [1, -1, lambda leaf: 1, lambda leaf: -1])
def test_only_what_the_type_batches_gets_the_axis(out_axes):
    found = filter_vmap(same, out_axes=out_axes)(shared())
    assert (found.state.shape, found.buffer.shape) == ((2, 4), (16,))


def test_a_vmappable_object_in_another_is_mapped_by_the_outer_one():
    found = filter_vmap(lambda o: Nested(o.inner, o.x + 1), axis_size=4)(
        Nested(shared(), jnp.arange(4.0))
    )
    assert (found.inner.state.shape, found.inner.buffer.shape) == ((4, 2), (16,))
    assert equal(found.x, jnp.arange(1.0, 5.0))


@pytest.mark.parametrize(
    ("in_axes", "out_axes"),
    [((Rows(),), Rows()), (lambda leaf: Rows(), (Rows())), (if_array(0), if_array(0)), (0, 0)],
)
def test_specifications_of_the_types_own_are_passed_on(in_axes, out_axes):
    table = Table(x23())
    found = filter_vmap(
        lambda t: Table(t.cells + 1), in_axes=in_axes, out_axes=out_axes, axis_size=2
    )(table)
    assert equal(found.cells, x23() + 1)


def test_if_array_is_an_axis_for_vmappable_objects():
    assert if_array(0)(Shared(jnp.ones(2), jnp.ones(3))) == 0


def test_is_leaf_does_no_harm_to_vmappable_objects():
    found = filter_vmap(same, is_leaf=lambda x: isinstance(x, Shared))(shared())
    assert (found.state.shape, found.buffer.shape) == ((4, 2), (16,))


def test_an_unknown_size_is_refused():
    refused(
        ArgumentError,
        r"Cannot tell the size.*from `o` \(`Nested`\).*Pass `axis_size=`",
        lambda o: o,
        Nested(shared(), jnp.arange(4.0)),
    )


def test_different_sizes_are_listed_by_path():
    with pytest.raises(ArgumentError, match="Inconsistent sizes") as caught:
        filter_vmap(lambda m, x, y: m)(batched(sparse.BCOO), jnp.ones(5), [jnp.ones(4)])
    assert str(caught.value).splitlines()[1:] == [
        "  * 4: `m` (BCOO, shape (4, 3, 2), axis 0)",
        "  * 5: `x` (shape (5,), axis 0)",
    ]


def test_a_mapped_sparse_output_without_an_axis_is_refused():
    refused(
        ArgumentError,
        "`out_axes` is None for `out`, but",
        same,
        batched(sparse.BCOO),
        out_axes=None,
    )


def test_a_function_that_cannot_take_the_arrays_inside_may_leave_the_object_unmapped():
    seen = []

    def axis(leaf):
        if type(leaf) is not Shared:
            raise TypeError("only whole objects")
        return seen.append(leaf)

    found = filter_vmap(lambda d, x: x, in_axes=(axis, 0))(shared(), x23())
    assert equal(found, x23())
    assert seen


# Mistakes.


def test_different_axes_inside_a_vmappable_object_are_refused():
    m = batched(sparse.BCOO)
    spec = jax.tree.unflatten(jax.tree.structure(m), [0, None])
    refused(
        ArgumentError,
        r"goes below the `BCOO` at `x`, and gives different axes \(0, None\).*registered with JAX.*"
        r"Give one axis \(an integer or None\) for the whole `BCOO` at `x`",
        same,
        m,
        in_axes=(spec,),
    )


def test_another_object_where_a_vmappable_one_is_is_refused():
    spec = jax.tree.map(lambda leaf: 0, batched(sparse.BCOO))
    refused(
        StructureError,
        "has a `BCOO` at `x`, where the value is a `Array",
        same,
        x23(),
        in_axes=(spec,),
    )


def test_a_vmappable_object_of_another_structure_is_refused():
    spec = jax.tree.map(lambda leaf: 0, batched(sparse.BCOO, DENSE[:1]))
    refused(
        StructureError,
        "has a `BCOO` at `x` whose structure is not that",
        same,
        batched(sparse.BCOO),
        in_axes=(spec,),
    )


def test_a_container_where_a_vmappable_object_is_is_refused():
    refused(
        StructureError,
        "has a `tuple`, and the value is of type `BCOO`.*`in_axes` must not go below it",
        same,
        batched(sparse.BCOO),
        in_axes=((0, 0),),
    )


@pytest.mark.parametrize(("option", "place"), [("in_axes", "x"), ("out_axes", "out")])
def test_a_function_that_knows_arrays_only_is_refused_at_a_vmappable_object(option, place):
    refused(
        ArgumentError,
        rf"returned None for the `BCOO` at `{place}`, but \[0\] for arrays.*Return an axis for it",
        same,
        batched(sparse.BCOO),
        **{option: lambda leaf: 0 if ec.is_array(leaf) else None},
    )


def test_an_axis_that_a_vmappable_object_does_not_have_is_its_types_error():
    refused(ValueError, "Cannot map in_axis=1 for BCOO", same, batched(sparse.BCOO), in_axes=1)


@pytest.mark.parametrize("wrap", [same, jax.jit, filter_jit])
def test_a_mapped_value_in_a_field_that_is_not_batched_is_refused_at_once(wrap):
    def f(d, p):
        return {"d": jax.tree.map(lambda x: jnp.where(p, x, x + 1), d)}

    with pytest.raises(
        ArgumentError, match=r"At `out\['d'\]`: the fields `buffer` of `Shared`.*Data\.where"
    ):
        wrap(filter_vmap(f))(shared(), jnp.arange(4) > 2)


def test_a_value_of_an_outer_trace_may_be_in_a_field_that_is_not_batched():
    found = jax.jit(lambda t: filter_vmap(lambda d: d.replace(buffer=d.buffer * t))(shared()))(2.0)
    assert equal(found.buffer, jnp.full(16, 2.0))
    states = filter_vmap(
        lambda t: filter_vmap(lambda d: d.replace(buffer=d.buffer * t))(shared()).state * t
    )(jnp.arange(3.0))
    assert states.shape == (3, 4, 2)


def test_an_error_over_a_none_in_a_vmappable_object_has_a_note():
    m = batched(sparse.BCOO)
    with pytest.raises(_OF_SPARSE) as caught:
        filter_vmap(lambda m: filter_grad(lambda m: times_v(m).sum())(m))(m)
    assert any(
        re.search(r"`out\[<flat index 1>\]` is None", note) for note in caught.value.__notes__
    )


def test_an_error_over_a_none_in_an_argument_has_a_note():
    m = ec.filter(batched(sparse.BCOO), ec.is_inexact_array)
    with pytest.raises(_OF_SPARSE) as caught:
        filter_vmap(lambda m: m.data)(m)
    assert any("`m[<flat index 1>]` is None" in note for note in caught.value.__notes__)


def test_other_errors_have_no_note():
    def f(m):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine") as caught:
        filter_vmap(f)(batched(sparse.BCOO))
    assert not any("filter_vmap" in note for note in getattr(caught.value, "__notes__", ()))
