"""Laws of `filter_vmap`, for any tree and any axes."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import ecliptic as ec
from ecliptic.transform import filter_jit, filter_vmap, if_array
from tests.unit.tree.nodes import Affine, Pair

SIZE = 2

few = settings(max_examples=40)


@dataclasses.dataclass
class Drawn:
    """A leaf: its value, the axis to map, the axis of the result."""

    value: Any
    axis: int | None
    out_axis: int | None


def _array(shape, axis):
    """An array whose elements along `axis` have `shape`."""
    full = list(shape)
    if axis is not None:
        full.insert(axis if axis >= 0 else len(full) + 1 + axis, SIZE)
    return np.arange(np.prod(full, dtype=int), dtype=np.float32).reshape(full)


@st.composite
def arrays(draw, unmapped=True):
    shape = draw(st.sampled_from([(), (3,), (3, 1)]))
    axes = st.integers(-len(shape) - 1, len(shape))
    axis = draw(st.none() | axes if unmapped else axes)
    # Only what is the same for each element can stay without an axis.
    out_axis = draw(axes | st.none() if axis is None else axes)
    return Drawn(_array(shape, axis), axis, out_axis)


statics = st.builds(Drawn, st.sampled_from(["relu", 1.5, 2, jnp.tanh]), st.none(), st.none())


def _nodes(children):
    return (
        st.lists(children, max_size=3)
        | st.lists(children, max_size=2).map(tuple)
        | st.dictionaries(st.sampled_from("abc"), children, max_size=3)
        | st.builds(Affine, children, children, st.sampled_from(["x", "y"]))
        | st.builds(Pair, children, children)
    )


def trees(leaves):
    return st.recursive(leaves | st.none(), _nodes, max_leaves=6)


def part(drawn, name):
    return jax.tree.map(lambda leaf: getattr(leaf, name), drawn)


def negate(tree):
    return jax.tree.map(lambda x: -x if ec.is_array(x) else x, tree)


def by_a_loop(drawn):
    """What mapping `negate` over a drawn tree means."""
    rows = [
        negate(
            jax.tree.map(
                lambda leaf: (
                    leaf.value if leaf.axis is None else np.take(leaf.value, i, axis=leaf.axis)  # noqa: B023
                ),
                drawn,
            )
        )
        for i in range(SIZE)
    ]
    return jax.tree.map(
        lambda leaf, *values: (
            values[0] if leaf.out_axis is None else np.stack(values, axis=leaf.out_axis)
        ),
        drawn,
        *rows,
    )


def equal(first, second):
    return bool(ec.tree_equal(jax.tree.map(_to_jax, first), jax.tree.map(_to_jax, second)))


def _to_jax(x):
    return jnp.asarray(x) if ec.is_array(x) else x


@few
@given(trees(arrays() | statics))
def test_mapping_is_stacking_the_results_of_a_loop(drawn):
    found = filter_vmap(
        negate,
        in_axes=(part(drawn, "axis"),),
        out_axes=part(drawn, "out_axis"),
        axis_size=SIZE,
    )(part(drawn, "value"))
    assert equal(found, by_a_loop(drawn))


@few
@given(trees(arrays() | statics))
def test_axes_that_functions_choose_mean_the_same(drawn):
    axes = {id(leaf.value): leaf.axis for leaf in jax.tree.leaves(drawn)}
    outs = iter([leaf.out_axis for leaf in jax.tree.leaves(drawn)])
    found = filter_vmap(
        negate,
        in_axes=lambda leaf: axes[id(leaf)] if ec.is_array(leaf) else None,
        out_axes=lambda leaf: next(outs),
        axis_size=SIZE,
    )(part(drawn, "value"))
    assert equal(found, by_a_loop(drawn))


@few
@given(trees(arrays() | statics))
def test_mapping_under_jit_is_mapping(drawn):
    f = filter_vmap(
        negate,
        in_axes=(part(drawn, "axis"),),
        out_axes=part(drawn, "out_axis"),
        axis_size=SIZE,
    )
    value = part(drawn, "value")
    assert equal(filter_jit(f)(value), f(value))


@few
@given(trees(arrays()))
def test_mapping_arrays_is_mapping_of_jax(drawn):
    options = {
        "in_axes": (part(drawn, "axis"),),
        "out_axes": part(drawn, "out_axis"),
        "axis_size": SIZE,
    }
    value = part(drawn, "value")
    assert equal(filter_vmap(negate, **options)(value), jax.vmap(negate, **options)(value))


axes = st.none() | st.integers(-3, 2)
entries = axes | st.lists(axes, min_size=1, max_size=3).map(tuple)


def outcome(f, *args):
    try:
        return f(*args)
    except (ValueError, TypeError) as error:
        return type(error)


@few
@given(
    st.lists(st.sampled_from([(2,), (3,), (2, 3), (2, 2)]), min_size=1, max_size=3),
    entries | st.tuples(entries),
    entries,
)
def test_what_jax_maps_is_mapped_and_what_it_refuses_is_refused(shapes, in_axes, out_axes):
    # Specifications of any kind, right or wrong, for one argument that is a tuple of arrays.
    value = tuple(np.ones(shape, np.float32) for shape in shapes)
    expected = outcome(jax.vmap(negate, in_axes=in_axes, out_axes=out_axes), value)
    found = outcome(filter_vmap(negate, in_axes=in_axes, out_axes=out_axes), value)
    if isinstance(expected, type):
        # A function whose arguments are all unmapped is called once if nothing else is needed.
        once = not any(axis is not None for axis in jax.tree.leaves((in_axes, out_axes)))
        assert isinstance(found, type) or once
    else:
        assert equal(found, expected)


@few
@given(arrays(unmapped=False), arrays(unmapped=False))
def test_default_axes_are_the_first_ones(first, second):
    value = {
        "a": np.moveaxis(first.value, first.axis, 0),
        "b": [np.moveaxis(second.value, second.axis, 0), "s"],
    }
    found = filter_vmap(negate)(value)
    assert equal(found, {"a": -value["a"], "b": [-value["b"][0], "s"]})


@few
@given(st.permutations(range(3)), st.data())
def test_nested_mappings_are_those_of_jax(order, data):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    inner = data.draw(st.integers(-2, 1)), data.draw(st.integers(-2, 1))
    outer = data.draw(st.integers(-3, 2)), data.draw(st.integers(-3, 2))

    def nest(vmap):
        f = vmap(lambda x: x * 2, in_axes=inner[0], out_axes=inner[1])
        return vmap(f, in_axes=outer[0], out_axes=outer[1])(x.transpose(order))

    assert equal(nest(filter_vmap), nest(jax.vmap))


@few
@given(st.integers(0, 2))
def test_a_negative_axis_counts_from_the_end(axis):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for wrap in (lambda axis: axis, if_array):
        found = filter_vmap(negate, in_axes=wrap(axis), out_axes=wrap(axis))(x)
        same = filter_vmap(negate, in_axes=wrap(axis - 3), out_axes=wrap(axis - 3))(x)
        assert equal(found, same)
        assert equal(found, -x)
