"""`State`: reading, setting, parts, and what happens to old states."""

import copy
import io
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic.errors import OldStateError, StateKeyError, StateValueError
from ecliptic.module import Module
from ecliptic.serialise import tree_deserialise_leaves, tree_serialise_leaves
from ecliptic.state import State, StateIndex, delete_init_state, make_with_state
from ecliptic.tree import tree_equal


class Counter(Module):
    count: StateIndex

    def __init__(self):
        self.count = StateIndex(jnp.array(0))

    def __call__(self, x, state):
        count = state.get(self.count) + 1
        return x * count, state.set(self.count, count)


class Model(Module):
    first: Counter
    others: list
    named: dict

    def __init__(self):
        self.first = Counter()
        self.others = [Counter(), Counter()]
        self.named = {"z": StateIndex((jnp.zeros(2), None)), "a": StateIndex(jnp.zeros(3))}


@pytest.fixture
def model_and_state():
    return make_with_state(Model)()


def test_a_value_is_read_and_set(model_and_state):
    model, state = model_and_state
    assert state.get(model.first.count) == 0
    state = state.set(model.first.count, jnp.array(3))
    assert state.get(model.first.count) == 3
    assert state.get(model.others[0].count) == 0


def test_the_entries_are_named_by_place_and_in_the_order_of_the_leaves(model_and_state):
    model, state = model_and_state
    assert state.tree_flatten()[1] == (
        "Model.first.count",
        "Model.others[0].count",
        "Model.others[1].count",
        "Model.named['a']",
        "Model.named['z']",
    )
    assert model.others[1].count.marker == "Model.others[1].count"
    paths = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_flatten_with_path(state)[0]]
    assert paths[-1] == "[\"Model.named['z']\"][0]"


def test_setting_does_not_change_the_order(model_and_state):
    model, state = model_and_state
    before = jax.tree.structure(state)
    assert jax.tree.structure(state.set(model.others[0].count, 1)) == before


def test_an_old_state_cannot_be_read_set_flattened_or_copied(model_and_state):
    model, state = model_and_state
    index = model.first.count
    state.set(index, 1)
    for use in (
        lambda: state.get(index),
        lambda: state.set(index, 1),
        lambda: state.substate(model),
        lambda: state.update(state),
        lambda: jax.tree.leaves(state),
        lambda: copy.copy(state),
        lambda: pickle.dumps(state),
    ):
        with pytest.raises(OldStateError, match=r"old state(.|\n)*pass `new_state`"):
            use()
    assert repr(state) == "State(~old~)"


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s)),
     lambda s: jax.tree.map(lambda x: x, s)],
)  # fmt: skip
def test_a_copy_stays_when_the_original_is_old(model_and_state, duplicate):
    model, state = model_and_state
    other = duplicate(state)
    state.set(model.first.count, 1)
    assert other.get(model.first.count) == 0
    assert jax.tree.structure(other) == jax.tree.structure(make_with_state(Model)()[1])


def test_a_substate_has_the_values_of_a_part(model_and_state):
    model, state = model_and_state
    part = state.substate(model.others)
    assert len(jax.tree.leaves(part)) == 2
    part = part.set(model.others[1].count, 5)
    new = state.update(part)
    assert new.get(model.others[1].count) == 5
    with pytest.raises(OldStateError):
        state.get(model.first.count)


def test_what_has_no_entry_is_said_with_what_has(model_and_state):
    _, state = model_and_state
    other = StateIndex(jnp.zeros(1))
    with pytest.raises(
        StateKeyError, match=r"^This state has no value for an index.*`Model.first.count`, .*"
    ):
        state.get(other)
    with pytest.raises(StateKeyError, match="no value for `Counter.count`"):
        state.substate(make_with_state(Counter)()[0])


def test_only_an_index_is_a_key(model_and_state):
    with pytest.raises(StateValueError, match="Only a `StateIndex` is a key.*got 'count'"):
        model_and_state[1].get("count")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (jnp.zeros(2), r"`Model.named\['a'\]` in the state was f32\[3\], and the new value is f32"),
        (jnp.zeros(3, int), r"`value` was f32\[3\] and is i32\[3\]"),
        ((jnp.zeros(3),), "the structures .* differ"),
        (
            jnp.zeros((5, 3)),
            "new value has an axis more, as after a call for a whole batch.*axis_n",
        ),
        (jnp.array(1j), "was f32"),
    ],
)
def test_a_value_of_another_kind_is_refused(model_and_state, value, message):
    model, state = model_and_state
    with pytest.raises(StateValueError, match=message):
        state.set(model.named["a"], value)
    assert not state.is_used


def test_a_batched_state_that_was_not_mapped_is_explained():
    index, state = make_with_state(StateIndex)(jnp.zeros((4, 3)))
    with pytest.raises(StateValueError, match="old value has an axis more.*axis 0 in `in_axes`"):
        state.set(index, jnp.zeros(3))


def test_a_python_number_takes_the_dtype_of_the_value_before_it():
    index, state = make_with_state(StateIndex)(jnp.array(0, jnp.int8))
    state = state.set(index, 3)
    assert state.get(index).dtype == jnp.int8
    assert not state.get(index).weak_type
    with pytest.raises(StateValueError, match=r"was i8\[\] and is weak_f32\[\]"):
        state.set(index, 0.5)


def test_a_weak_type_stays_what_it_was():
    index, state = make_with_state(StateIndex)((1.0, jnp.array(1.0, jnp.float32)))
    types = [leaf.weak_type for leaf in jax.tree.leaves(state)]
    assert types == [True, False]
    state = state.set(index, (2.0, jnp.asarray(3.0)))
    assert [leaf.weak_type for leaf in jax.tree.leaves(state)] == types


def test_what_is_no_array_is_refused():
    with pytest.raises(
        StateValueError, match=r"`StateIndex` has 'text' of type `str` at `value\[0\]`"
    ):
        make_with_state(StateIndex)(["text"])
    index, state = make_with_state(StateIndex)(1.0)
    with pytest.raises(StateValueError, match="consists of arrays and numbers.*'text'"):
        state.set(index, "text")


@pytest.mark.parametrize("value", [None, (), jax.random.key(0), np.float64(1.0), 1 + 1j, True])
def test_what_a_value_can_be(value):
    index, state = make_with_state(StateIndex)(value)
    state = state.set(index, state.get(index))
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state))


def test_update_takes_substates_only(model_and_state):
    _, state = model_and_state
    with pytest.raises(StateValueError, match="takes a `State`.*got 3 of type `int`"):
        state.update(3)
    with pytest.raises(StateValueError, match="values for `Counter.count`, which this state"):
        state.update(make_with_state(Counter)()[1])


def test_a_state_is_saved_and_loaded(model_and_state):
    model, state = model_and_state
    state = state.set(model.named["a"], jnp.arange(3.0))
    f = io.BytesIO()
    tree_serialise_leaves(f, state)
    f.seek(0)
    loaded = tree_deserialise_leaves(f, jax.eval_shape(lambda: make_with_state(Model)()[1]))
    assert tree_equal(loaded, state)
    assert f.read() == b""


def test_the_picture_shows_names_and_shapes(model_and_state):
    assert "Model.others[0].count=" in repr(model_and_state[1])
    assert "Model.named['z']=(f32[2], None)" in repr(model_and_state[1])


def test_a_state_can_be_made_of_a_model_that_keeps_its_initial_values():
    model = Model()
    state = State(model)
    assert model.first.count.marker == "Model.first.count"
    state = state.set(model.first.count, 7)
    assert state.get(delete_init_state(model).first.count) == 7


def test_an_index_keeps_the_name_that_it_has_and_no_two_have_one():
    one = StateIndex(jnp.zeros(1))
    State([one])
    both = State([StateIndex(jnp.zeros(1)), one])
    assert both.tree_flatten()[1] == ("list[0]'", "list[0]")


def test_equal_constructions_have_equal_structures():
    assert jax.tree.structure(Model()) == jax.tree.structure(Model())
    for one, other in zip(make_with_state(Model)(), make_with_state(Model)(), strict=True):
        assert jax.tree.structure(one) == jax.tree.structure(other)
        assert hash(jax.tree.structure(one)) == hash(jax.tree.structure(other))


def test_an_optimiser_fits_before_and_after_the_state_is_taken_out():
    from ecliptic.tree import filter, is_inexact_array

    before = filter(delete_init_state(Model()), is_inexact_array)
    after = filter(make_with_state(Model)()[0], is_inexact_array)
    assert jax.tree.structure(before) == jax.tree.structure(after)


def test_a_part_of_a_model_without_its_initial_values_finds_its_state():
    model = Model()
    empty = delete_init_state(model.others[0])
    state = State(model)
    assert state.get(empty.count) == 0
    with pytest.raises(StateValueError, match="at path `Counter.count` has no initial value"):
        State(empty)


def test_two_indices_of_one_name_are_refused_and_one_in_two_places_is_one():
    one, other = Counter(), Counter()
    delete_init_state(one), delete_init_state(other)
    with pytest.raises(StateValueError, match=r"`list\[1\].count` has the name `Counter.count`"):
        State([one, other])
    assert len(jax.tree.leaves(State([one, one]))) == 1


def test_models_are_made_under_transformations():
    from ecliptic.transform import filter_eval_shape, filter_jit, filter_vmap

    expected = jax.tree.structure(make_with_state(Model)())
    shapes = filter_eval_shape(make_with_state(Model))
    compiled = filter_jit(make_with_state(Model))()
    many = filter_vmap(lambda _: make_with_state(Model)())(jnp.arange(4))
    for both in (shapes, compiled, many):
        assert jax.tree.structure(both) == expected
    assert many[1].get(many[0].named["a"]).shape == (4, 3)


def test_a_model_whose_state_was_taken_out_is_not_asked_again():
    made, _ = make_with_state(Counter)()
    with pytest.raises(StateValueError, match="inside of one `make_with_state"):
        make_with_state(lambda: [made, Counter()])()
    with pytest.raises(StateValueError, match="no initial value any more"):
        make_with_state(make_with_state(Counter))()


def test_states_and_models_are_those_of_equinox():
    import equinox

    def model(library):
        return {"b": library.StateIndex((jnp.zeros(2), 1)), "a": [library.StateIndex(2.0)]}

    import ecliptic.state

    (ours, state), (theirs, other) = (
        library.make_with_state(lambda library=library: model(library))()
        for library in (ecliptic.state, equinox.nn)
    )
    assert ours["b"].marker == theirs["b"].marker
    assert state.tree_flatten()[1] == other.tree_flatten()[1]
    state, other = (s.set(m["a"][0], 3.0) for s, m in ((state, ours), (other, theirs)))
    for one, another in zip(jax.tree.leaves(state), jax.tree.leaves(other), strict=True):
        assert (one == another).all()
        assert one.dtype == another.dtype
