"""An old state is found out wherever it was made old, and a state that was only read is not old."""

import jax
import jax.numpy as jnp
import pytest

from ecliptic.control import (
    filter_cond,
    filter_fori_loop,
    filter_scan,
    filter_switch,
    filter_while_loop,
)
from ecliptic.errors import OldStateError
from ecliptic.module import Module
from ecliptic.state import State, StateIndex, make_with_state
from ecliptic.transform import (
    filter_checkpoint,
    filter_eval_shape,
    filter_grad,
    filter_jit,
    filter_jvp,
    filter_linearize,
    filter_make_jaxpr,
    filter_value_and_grad,
    filter_vjp,
    filter_vmap,
)

INDEX, _ = make_with_state(StateIndex)(jnp.array(0.0))


def fresh():
    return make_with_state(StateIndex)(jnp.array(0.0))[1]


def count(state, x):
    """Uses the state up."""
    return state.set(INDEX, state.get(INDEX) + x)


def read(state, x):
    return state.get(INDEX) + x


def in_scan(f):
    return lambda state, x: filter_scan(lambda s, _: (f(s, x), None), state, length=2)[0]


def in_while(f):
    def run(state, x):
        carry = filter_while_loop(
            lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1], x)), (jnp.array(0), state)
        )
        return carry[1]

    return run


def in_checked_vmap(f):
    return lambda state, x: filter_vmap(f, in_axes=(None, None), axis_size=2)(state, x)


# Each runs a function of a state and a number under a transformation.
CHANGING = {
    "eager": lambda f: f,
    "jit": filter_jit,
    "jit, twice": lambda f: filter_jit(filter_jit(f)),
    "vmap": lambda f: lambda s, x: filter_vmap(f, in_axes=(None, 0))(s, jnp.arange(3.0)),
    "vmap, nothing mapped": in_checked_vmap,
    "scan": in_scan,
    "while": in_while,
    "fori": lambda f: lambda s, x: filter_fori_loop(0, 2, lambda i, c: f(c, x), s),
    "cond": lambda f: lambda s, x: filter_cond(x > 0, f, f, s, x),
    "switch": lambda f: lambda s, x: filter_switch(jnp.array(0), [f, f], s, x),
    "jit of scan": lambda f: filter_jit(in_scan(f)),
    "scan of jit": lambda f: in_scan(filter_jit(f)),
    "jit of vmap": lambda f: filter_jit(
        lambda s, x: filter_vmap(f, in_axes=(None, 0))(s, jnp.arange(3.0))
    ),
    "vjp": lambda f: lambda s, x: filter_vjp(f, s, x)[0],
    "jvp": lambda f: (
        lambda s, x: filter_jvp(
            lambda x, s: f(s, x), (x, s), (jnp.ones_like(x), jax.tree.map(lambda _: None, s))
        )[0]
    ),
    "checkpoint": filter_checkpoint,
    "jit of checkpoint": lambda f: filter_jit(filter_checkpoint(f)),
    "linearize": lambda f: lambda s, x: filter_linearize(f, s, x)[0],
}
EVERY = pytest.mark.parametrize("run", CHANGING.values(), ids=CHANGING)


@EVERY
def test_a_state_that_was_set_inside_is_old_outside(run):
    function = run(count)
    for _ in range(6):  # Compiled calls get shorter ways after some calls.
        state = fresh()
        new = function(state, jnp.array(1.0))
        assert state.is_used
        assert not new.is_used
    with pytest.raises(OldStateError):
        function(state, jnp.array(1.0))


def read_and_pass_on(state, x):
    read(state, x)
    return state


@EVERY
def test_a_state_that_was_only_read_stays(run):
    function, state = run(read_and_pass_on), fresh()
    for _ in range(6):
        new = function(state, jnp.array(1.0))
    assert not state.is_used
    count(new, jnp.array(1.0))
    assert state.is_used == (new is state)


@pytest.mark.parametrize("jit", [False, True])
def test_a_gradient_uses_the_state_up(jit):
    def loss(carried, x):
        weight, state = carried
        state = count(state, x)
        return weight * x, state

    step = filter_grad(loss, has_aux=True)
    step = filter_jit(step) if jit else step
    for _ in range(2):
        state = fresh()
        _, new = step((jnp.array(1.0), state), jnp.array(2.0))
        assert state.is_used
        assert new.get(INDEX) == 2


def test_a_training_step_uses_the_state_up_and_an_evaluation_does_not():
    class Model(Module):
        index: StateIndex
        weight: jax.Array

        def __init__(self):
            self.index = StateIndex(jnp.array(0.0))
            self.weight = jnp.array(1.0)

        def __call__(self, x, state, train):
            if train:
                state = state.set(self.index, state.get(self.index) + 1)
            return self.weight * x, state

    @filter_jit
    @filter_value_and_grad(has_aux=True)
    def step(model, state, x):
        return model(x, state, True)

    @filter_jit
    def evaluate(model, state, x):
        return model(x, state, False)[0]

    model, state = make_with_state(Model)()
    x = jnp.array(3.0)
    for _ in range(6):
        evaluate(model, state, x)
        old = state
        (_, state), _ = step(model, state, x)
        with pytest.raises(OldStateError):
            evaluate(model, old, x)
    assert state.get(model.index) == 6


def test_states_at_any_place_in_the_arguments_are_found():
    class Holder(Module):
        state: State

    @filter_jit
    def function(first, *, named):
        for state in (first[0]["a"], first[1].state, named):
            count(state, 1.0)
        return first[0]["b"].get(INDEX)

    for _ in range(6):
        states = [fresh() for _ in range(4)]
        function([{"a": states[0], "b": states[3]}, Holder(states[1])], named=states[2])
        assert [state.is_used for state in states] == [True, True, True, False]


def test_a_node_that_says_nothing_of_its_children_is_searched():
    class Opaque:
        def __init__(self, state):
            self.hidden = state

    jax.tree_util.register_pytree_node(
        Opaque, lambda node: ((node.hidden,), None), lambda _, children: Opaque(*children)
    )
    function = filter_jit(lambda node: count(node.hidden, 1.0))
    for _ in range(6):
        state = fresh()
        function(Opaque(state))
        assert state.is_used


def test_a_program_that_uses_nothing_up_is_not_searched(monkeypatch):
    from ecliptic.transform import _program

    searches = []
    monkeypatch.setattr(_program, "find_used", lambda tree: searches.append(tree) or [])
    filter_jit(lambda state, x: read(state, x))(fresh(), 1.0)
    assert searches == []
    filter_jit(lambda state, x: count(state, x))(fresh(), 1.0)
    assert len(searches) == 1


def test_a_substate_goes_through_a_transformation_on_its_own():
    state = fresh()
    part = state.substate(INDEX)
    new = filter_jit(count)(part, 1.0)
    assert part.is_used
    assert not state.is_used
    assert state.update(new).get(INDEX) == 1


def test_the_states_that_are_scanned_over_are_old_then():
    states = filter_vmap(lambda _: fresh())(jnp.arange(3))
    _, new = filter_scan(lambda c, s: (c, count(s, 1.0)), 0, states)
    assert states.is_used
    assert new.get(INDEX).tolist() == [1, 1, 1]


@pytest.mark.parametrize("look", [filter_eval_shape, filter_make_jaxpr])
def test_a_look_at_the_shapes_uses_nothing_up(look):
    state = fresh()
    look(count)(state, 1.0) if look is filter_make_jaxpr else look(count, state, 1.0)
    filter_jit(count).lower(state, 1.0)
    assert not state.is_used


@pytest.mark.parametrize("run", [filter_jit, in_scan, in_checked_vmap])
def test_a_function_that_fails_uses_nothing_up(run):
    def fail(state, x):
        count(state, x)
        raise RuntimeError("too late")

    state = fresh()
    with pytest.raises(RuntimeError, match="too late"):
        run(fail)(state, jnp.array(1.0))
    assert not state.is_used


def test_a_copy_made_inside_is_independent():
    def function(state, x):
        count(jax.tree.map(lambda leaf: leaf + 1, state), x)
        return read(state, x)

    state = fresh()
    filter_jit(function)(state, 1.0)
    assert not state.is_used


def test_a_carry_that_is_traced_twice_is_used_up_once():
    def step(carry, _):
        state, n = carry
        return (count(state, 1.0), n + 1), None

    state = fresh()
    # The Python number changes, so that the loop is traced anew with an array in its place.
    new, n = filter_jit(lambda s: filter_scan(step, (s, 0), length=3)[0])(state)
    assert state.is_used
    assert (new.get(INDEX), n) == (3, 3)
    state = fresh()
    filter_scan(step, (state, 0), length=3)
    assert state.is_used


def test_plain_jax_takes_a_state():
    assert jax.jit(count)(fresh(), 1.0).get(INDEX) == 1
    new, _ = jax.lax.scan(lambda s, x: (count(s, x), None), fresh(), jnp.arange(3.0))
    assert new.get(INDEX) == 3
    many = jax.vmap(count, in_axes=(None, 0))(fresh(), jnp.arange(3.0))
    assert many.get(INDEX).tolist() == [0, 1, 2]
    gradient = jax.grad(lambda s: count(s, 1.0).get(INDEX) ** 2)(fresh())
    assert gradient.get(INDEX) == 2


def test_threads_do_not_meet():
    import threading

    failed = []

    def work():
        try:
            for _ in range(5):
                state = fresh()
                new = in_scan(count)(state, jnp.array(1.0))
                assert state.is_used
                assert not new.is_used
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
