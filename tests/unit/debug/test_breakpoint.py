"""`breakpoint_if`: the debugger opens where the condition holds."""

import jax
import jax.numpy as jnp
import pytest

from ecliptic.debug import breakpoint_if

FALSE = jnp.array([False, False])


@pytest.fixture
def opened(monkeypatch):
    calls = []

    def open_debugger(**kwargs):
        jax.debug.callback(lambda: calls.append(kwargs))

    monkeypatch.setattr(jax.debug, "breakpoint", open_debugger)
    return calls


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.vmap])
@pytest.mark.parametrize(("where", "expected"), [(None, 0), (1, 1)])
def test_it_opens_once_where_any_element_is_true(opened, wrap, where, expected):
    pred = FALSE if where is None else FALSE.at[where].set(True)
    wrap(lambda pred: breakpoint_if(pred, num_frames=2))(pred)
    jax.effects_barrier()
    assert len(opened) == expected
    assert all(kwargs["num_frames"] == 2 for kwargs in opened)


@pytest.mark.parametrize("pred", [False, 0])
def test_a_python_value_is_a_condition_too(opened, pred):
    breakpoint_if(pred)
    jax.effects_barrier()
    assert opened == []
