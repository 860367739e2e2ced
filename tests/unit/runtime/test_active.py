"""Checks in the loops and branches of a batch: they fail for what is run, and for nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import RuntimeCheckError
from ecliptic.runtime import error_if

KINDS = {
    "lax": {},
    "lax, max_steps": {"max_steps": 20},
    "checkpointed": {"kind": "checkpointed", "max_steps": 20},
    "bounded": {"kind": "bounded", "max_steps": 20},
}

# Each program goes from one number up to before another, and fails where it is at the number 3.


def _not_three(x):
    return error_if(x, x == 3, "three")


def _while(start, stop, **options):
    return ec.filter_while_loop(lambda x: x < stop, lambda x: _not_three(x) + 1, start, **options)


def _fori(start, stop):
    return ec.filter_fori_loop(start, stop, lambda i, x: _not_three(i) + x, jnp.array(0))


def _scan_in_while(start, stop):
    def body(x):
        return ec.filter_scan(lambda x, _: (_not_three(x) + 1, None), x, length=1)[0]

    return ec.filter_while_loop(lambda x: x < stop, body, start)


def _cond_in_scan_in_while(start, stop):
    def step(x, _):
        return ec.filter_cond(x > 0, lambda x: _not_three(x) + 1, lambda x: x + 1, x), None

    def body(x):
        return ec.filter_scan(step, x, length=1)[0]

    return ec.filter_while_loop(lambda x: x < stop, body, start)


def _while_in_while(start, stop):
    """The loop inside has reasons of its own to go on, also when the one around is done."""

    def body(x):
        y = ec.filter_while_loop(lambda y: y < 1, lambda y: _not_three(x) + y * 0 + 1, x * 0)
        return x + jnp.minimum(y, 1)

    return ec.filter_while_loop(lambda x: x < stop, body, start)


# Branches are not taken from 4 on, and see a 3 there.


def _seen(start):
    return jnp.where(start >= 4, 3, start)


def _cond(start, stop):
    return ec.filter_cond(start < 4, lambda x: _not_three(_seen(x)), lambda x: x, start)


def _cond_not(start, stop):
    return ec.filter_cond(start >= 4, lambda x: x, lambda x: _not_three(_seen(x)), start)


def _switch(start, stop):
    branches = [lambda x: x, lambda x: _not_three(_seen(x))]
    return ec.filter_switch(jnp.where(start < 4, 9, 0), branches, start)


def _while_in_cond(start, stop):
    return ec.filter_cond(start < 4, lambda x: _while(_seen(x), stop), lambda x: x, start)


PROGRAMS = {
    **{
        f"while, {name}": lambda start, stop, kw=kw: _while(start, stop, **kw)
        for name, kw in KINDS.items()
    },
    "fori": _fori,
    "scan in while": _scan_in_while,
    "cond in scan in while": _cond_in_scan_in_while,
    "while in while": _while_in_while,
    "cond": _cond,
    "cond, other branch": _cond_not,
    "switch": _switch,
    "while in cond": _while_in_cond,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_that_are_done_do_not_fail(name):
    program = PROGRAMS[name]
    # The second is done at 3, and has to wait for the third, which has begun behind it.
    starts, stops = jnp.array([0, 0, 4]), jnp.array([2, 3, 9])
    expected = [program(start, stop) for start, stop in zip(starts, stops, strict=True)]
    for batched in (jax.vmap(program), ec.filter_jit(ec.filter_vmap(program))):
        np.testing.assert_array_equal(batched(starts, stops), expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_that_are_run_do_fail(name):
    batched = ec.filter_jit(ec.filter_vmap(PROGRAMS[name]))
    with pytest.raises(RuntimeCheckError, match="three\nFailed for 2 of 4 elements .*: 1, 3\\."):
        batched(jnp.array([0, 3, 4, 3]), jnp.array([3, 6, 9, 5]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_batch_they_fail_as_ever(name):
    program = ec.filter_jit(PROGRAMS[name])
    assert program(jnp.array(1), jnp.array(2)) is not None
    with pytest.raises(RuntimeCheckError, match="three"):
        program(jnp.array(3), jnp.array(6))


@pytest.mark.parametrize("kind", ["checkpointed", "bounded"])
def test_derivatives_go_through(kind):
    def total(x, stop):
        def body(carry):
            i, x = carry
            return i + 1, error_if(x, i == 3, "three") * 2

        cond = ec.filter_while_loop(
            lambda carry: carry[0] < stop, body, (0, x), kind=kind, max_steps=9
        )
        return cond[1]

    gradients = ec.filter_jit(ec.filter_vmap(jax.grad(total)))
    np.testing.assert_array_equal(gradients(jnp.ones(3), jnp.array([1, 2, 3])), [2, 4, 8])
    with pytest.raises(RuntimeCheckError, match="three"):
        gradients(jnp.ones(2), jnp.array([1, 4]))


def test_a_program_of_its_own_in_a_loop_knows_nothing_and_keeps_nothing():
    @jax.jit
    def helper(x):
        return error_if(x, x < 0, "negative") + 1

    for _ in range(2):
        for stop in (3, 5):
            out = ec.filter_jit(ec.filter_while_loop)(lambda x, n=stop: x < n, helper, jnp.array(0))
            assert out == stop


@pytest.mark.parametrize("wrap", [jax.checkpoint, ec.filter_checkpoint, ec.filter_jit])
def test_a_function_that_is_traced_by_itself_can_be_used_in_a_loop(wrap):
    body = wrap(lambda x: error_if(x, x < 0, "negative") + 1)
    batched = jax.vmap(lambda stop: ec.filter_while_loop(lambda x: x < stop, body, jnp.array(0)))
    np.testing.assert_array_equal(ec.filter_jit(batched)(jnp.array([1, 3])), [1, 3])


def test_a_gradient_within_a_loop():
    def body(x):
        return x + jax.grad(lambda x: error_if(x, x > 3.5, "far") ** 2 / 2)(x) * 0 + 1

    def run(stop):
        return ec.filter_while_loop(lambda x: x < stop, body, jnp.array(1.0))

    batched = ec.filter_jit(jax.vmap(run))
    np.testing.assert_array_equal(batched(jnp.array([2.0, 4.0])), [2, 4])
    with pytest.raises(RuntimeCheckError, match="far"):
        batched(jnp.array([2.0, 6.0]))


def test_what_a_condition_does_beside_is_done_once(capfd):
    def cond(x):
        jax.debug.print("at {}", x)
        return x < 2

    def body(x):
        return error_if(x, x == 7, "seven") + 1

    jax.block_until_ready(ec.filter_while_loop(cond, body, jnp.array(0)))
    jax.effects_barrier()
    assert capfd.readouterr().out.split("\n")[:-1] == ["at 0", "at 1", "at 2"]


def test_a_condition_may_have_a_check_of_its_own():
    def cond(x):
        return error_if(x, x > 5, "far") < 4

    def body(x):
        return error_if(x, x == 7, "seven") + 1

    run = ec.filter_jit(jax.vmap(lambda x: ec.filter_while_loop(cond, body, x)))
    np.testing.assert_array_equal(run(jnp.array([0, 3])), [4, 4])
    with pytest.raises(RuntimeCheckError, match="far"):
        run(jnp.array([0, 6]))


def test_it_costs_nothing_outside_of_a_batch():
    def cond(x):
        return jnp.sum(jnp.sin(x)) < 4

    def compiled(body):
        run = jax.jit(lambda x: ec.filter_while_loop(cond, body, x))
        return run.lower(jnp.ones(3)).compile().as_text()

    checked = compiled(lambda x: error_if(x, x[0] > 9, "far") + 1)
    assert checked.count("sine(") == compiled(lambda x: x + 1).count("sine(") > 0


@pytest.mark.parametrize("inner_kind", ["checkpointed", "bounded"])
@pytest.mark.parametrize("outer_kind", ["lax", "checkpointed"])
def test_derivatives_of_loops_in_loops(outer_kind, inner_kind):
    outer_options = {"kind": outer_kind} if outer_kind == "lax" else KINDS[outer_kind]

    def total(x, stop):
        def multiply(carry):
            i, x = carry
            return i + 1, error_if(x, i == 7, "seven") * 1.5

        def body(carry):
            i, x = carry
            _, x = ec.filter_while_loop(
                lambda carry: carry[0] < 2, multiply, (0, x), **KINDS[inner_kind]
            )
            return i + 1, ec.filter_cond(
                i < stop, lambda x: error_if(x, i == 3, "three"), lambda x: x, x
            )

        return ec.filter_while_loop(lambda carry: carry[0] < stop, body, (0, x), **outer_options)[1]

    stops = jnp.array([1, 2, 3])
    expected = [1.5**2, 1.5**4, 1.5**6]
    first = ec.filter_jit(ec.filter_vmap(jax.jacfwd(total)))
    np.testing.assert_allclose(first(jnp.ones(3), stops), expected)
    second = ec.filter_jit(jax.vmap(jax.jacfwd(jax.jacfwd(total))))
    np.testing.assert_array_equal(second(jnp.ones(3), stops), jnp.zeros(3))
    with pytest.raises(RuntimeCheckError, match="three"):
        first(jnp.ones(2), jnp.array([1, 4]))
