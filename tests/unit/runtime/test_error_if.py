"""`error_if` and `branched_error_if`: when they fail, how it shows, and what they leave alone."""

import concurrent.futures

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ecliptic as ec
from ecliptic.errors import (
    ArgumentError,
    ArgumentTypeError,
    RuntimeCheckError,
    TracetimeCheckError,
)
from ecliptic.runtime import branched_error_if, converted_errors, error_if

GOOD = jnp.array([1.0, 2.0, 3.0])
BAD = jnp.array([1.0, -2.0, 3.0])


def positive(x, message="not positive"):
    return error_if(x, x <= 0, message)


def total(x):
    return jnp.sum(positive(x) ** 2)


def _scan(x):
    return jax.lax.scan(lambda carry, y: (carry + positive(y), None), 0 * x[0], x)[0]


def _while(x):
    def body(carry):
        i, y = carry
        return i + 1, y + positive(x[i])

    return jax.lax.while_loop(lambda carry: carry[0] < 3, body, (0, 0 * x[0]))[1]


def _cond(x):
    return jax.lax.cond(x[0] > 0, positive, lambda x: x, x)


def _custom_vjp(x):
    @jax.custom_vjp
    def f(x):
        return total(x)

    f.defvjp(lambda x: (total(x), x), lambda x, ct: (2 * ct * positive(x),))
    return jax.value_and_grad(f)(x)


_cached = jax.jit(total)

# Programs that check that no element is negative, in every place where a check can stand.
PLACES = {
    "straight": total,
    "nested jit": _cached,
    "nested filter_jit": ec.filter_jit(total),
    "scan": _scan,
    "filter_scan": lambda x: ec.filter_scan(lambda c, y: (c + positive(y), None), 0 * x[0], x)[0],
    "checkpointed scan": lambda x: jax.grad(
        lambda x: ec.filter_scan(
            lambda c, y: (c + positive(y), None), 0 * x[0], x, kind="checkpointed"
        )[0]
    )(x),
    "while": _while,
    "bounded while": lambda x: ec.filter_while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + positive(x[c[0]])), (0, 0 * x[0]),
        max_steps=3, kind="bounded",
    ),
    "cond": _cond,
    "vmap": jax.vmap(positive),
    "vmap of vmap": lambda x: jax.vmap(jax.vmap(positive))(x[:, None]),
    "vmap of scan": lambda x: jax.vmap(_scan, in_axes=1)(jnp.stack([x, x], axis=1)),
    "scan of vmap": lambda x: jax.lax.scan(
        lambda c, y: (c + jax.vmap(positive)(y[None]), None), jnp.zeros(1), x
    ),
    "value and gradient": jax.value_and_grad(total),
    "gradient alone": jax.grad(lambda x: jnp.sum(2 * positive(x))),
    "gradient of scan": jax.grad(_scan),
    "vmap of gradient": lambda x: jax.vmap(jax.grad(total))(x[:, None]),
    "jvp": lambda x: jax.jvp(total, (x,), (x,)),
    "Hessian": jax.hessian(total),
    "checkpoint": jax.grad(jax.checkpoint(total)),
    "custom_vjp": _custom_vjp,
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_compiled_program_succeeds_fails_and_succeeds_again(place):
    f = PLACES[place]
    run = ec.filter_jit(lambda x: f(x))
    first = run(GOOD)
    with pytest.raises(RuntimeCheckError, match=r"\Anot positive\n"):
        run(BAD)
    assert ec.tree_equal(run(GOOD), first)


@pytest.mark.parametrize("place", PLACES)
def test_outside_of_any_jit(place):
    f = PLACES[place]
    f(GOOD)
    with pytest.raises(RuntimeCheckError, match=r"\Anot positive\n"):
        jax.block_until_ready(f(BAD))


@pytest.mark.parametrize("place", PLACES)
def test_under_a_plain_jit(place):
    f = PLACES[place]
    run = jax.jit(lambda x: f(x))
    first = run(GOOD)
    for _ in range(2):
        with pytest.raises(RuntimeCheckError, match=r"\Anot positive\n") as info:
            jax.block_until_ready(run(BAD))
        assert "Callback" not in str(info.value)
        assert ec.tree_equal(run(GOOD), first)


@pytest.mark.parametrize("place", ["straight", "gradient alone", "scan", "Hessian"])
def test_values_and_derivatives_are_those_without_the_check(place):
    f = PLACES[place]
    out = ec.filter_jit(lambda x: f(x))(GOOD)
    with ec.runtime.on_error("off"):
        plain = jax.jit(lambda x: f(x))(GOOD)
    assert ec.tree_equal(out, plain)


def test_the_error_has_nothing_of_xla():
    run = ec.filter_jit(total)
    with pytest.raises(RuntimeCheckError) as info:
        run(BAD)
    text = str(info.value)
    assert "Callback" not in text
    assert "runtime check" not in text
    assert info.value.__cause__ is None
    assert info.value.__context__ is None


def test_the_error_says_where_the_check_stands():
    with pytest.raises(RuntimeCheckError) as info:
        ec.filter_jit(total)(BAD)
    *_, first, first_code, second, second_code = str(info.value).splitlines()
    assert first.startswith(f'  File "{__file__}", line ')
    assert first.endswith("in total")
    assert first_code == "    return jnp.sum(positive(x) ** 2)"
    assert second.endswith("in positive")
    assert second_code == "    return error_if(x, x <= 0, message)"
    assert "pytest" not in str(info.value)


def _outer(x):
    return jax.jit(lambda x: total(x) + 1)(x)


@pytest.mark.parametrize("function", [total, _outer])
def test_under_a_plain_jit_it_does_not_say_who_called_first(function):
    run = jax.jit(lambda x: function(x))
    run(GOOD)
    with pytest.raises(RuntimeCheckError) as info:
        jax.block_until_ready(run(BAD))
    text = str(info.value)
    assert text.splitlines()[3].endswith("in <lambda>")
    assert f"in {function.__name__}\n" in text
    assert "in positive\n" in text
    assert "in test_" not in text


def test_converted_errors_leaves_others_alone():
    with pytest.raises(ValueError, match="another"), converted_errors():
        raise ValueError("another")


@pytest.mark.parametrize("pred", [True, np.array(True), np.array([False, True])])
def test_a_condition_that_is_known_to_be_true_fails_at_once(pred):
    with pytest.raises(TracetimeCheckError, match="always"):
        error_if(GOOD, pred, "always")
    with pytest.raises(TracetimeCheckError, match="always"):
        jax.eval_shape(lambda x: error_if(x, pred, "always"), GOOD)


def test_an_array_from_outside_is_known_while_a_program_is_traced():
    known = jnp.array(True)
    with pytest.raises(TracetimeCheckError, match="always"):
        jax.eval_shape(lambda x: error_if(x, known, "always"), GOOD)


def test_outside_of_a_program_it_is_no_error_of_tracing():
    with pytest.raises(RuntimeCheckError) as info:
        positive(BAD)
    assert type(info.value) is RuntimeCheckError


@pytest.mark.parametrize("pred", [False, np.array(False), jnp.array([False, False])])
def test_a_condition_that_is_known_to_be_false_leaves_nothing(pred):
    x = {"a": GOOD, "b": "text"}
    assert error_if(x, pred, "never") is x
    program = jax.make_jaxpr(lambda x: error_if(x, False, "never"))(GOOD)
    assert program.eqns == []


def test_a_check_is_left_out_if_the_result_is_not_used():
    run = ec.filter_jit(lambda x: (positive(x), x + 1)[1])
    assert run(BAD).tolist() == (BAD + 1).tolist()


def test_a_whole_tree_goes_through():
    tree = {
        "weak": 1.0 * jnp.ones(()),
        "integer": jnp.arange(3),
        "numpy": np.ones(2, np.float32),
        "key": jax.random.key(0),
        "empty": jnp.zeros((0, 2)),
        "text": "text",
        "number": 3,
    }

    @ec.filter_jit
    def run(tree, pred):
        return error_if(tree, pred, "no")

    out = run(tree, jnp.array(False))
    assert ec.tree_equal(jax.random.key_data(out.pop("key")), jax.random.key_data(tree.pop("key")))
    assert out.pop("numpy").tolist() == tree.pop("numpy").tolist()
    assert ec.tree_equal(out, tree)
    with pytest.raises(RuntimeCheckError, match="no"):
        run({"integer": jnp.arange(3)}, jnp.array(True))


def test_integers_are_booleans_too():
    run = ec.filter_jit(lambda x, pred: error_if(x, pred, "no"))
    run(GOOD, jnp.array(0))
    with pytest.raises(RuntimeCheckError, match="no"):
        run(GOOD, jnp.array(2))


@pytest.mark.parametrize(
    ("index", "message"), [(0, "low"), (1, "high"), (2, "the index of its message is 2")]
)
@pytest.mark.parametrize("how", [lambda f: f, ec.filter_jit], ids=["eager", "jit"])
def test_one_of_several_messages(how, index, message):
    run = how(lambda x, i: branched_error_if(x, x > 0, i, ["low", "high"]))
    with pytest.raises(RuntimeCheckError, match=message):
        run(jnp.array(1.0), jnp.array(index))


@pytest.mark.parametrize("how", [lambda f: f, ec.filter_jit], ids=["eager", "jit"])
def test_each_element_has_a_message_of_its_own(how):
    run = how(lambda x, i: branched_error_if(x, x < 0, i, ["a", "b", "c"]))
    x, index = jnp.array([-1.0, 1.0, -1.0]), jnp.array([2, 1, 0])
    for f in (run, how(jax.vmap(run))):
        with pytest.raises(RuntimeCheckError, match=r"(?s)\Ac\n.* of .* 0\.\na\n.* of .* 2\."):
            f(x, index)


def test_an_unknown_index_of_a_known_failure():
    run = ec.filter_jit(lambda x, i: branched_error_if(x, True, i, ["low", "high"]))
    with pytest.raises(RuntimeCheckError, match="high"):
        run(GOOD, jnp.array(1))


ARGUMENTS = [
    (lambda: error_if(GOOD, GOOD, "no"), ArgumentTypeError, "is a boolean.*float32"),
    (lambda: error_if(GOOD, True, 3), ArgumentTypeError, "is a string; got 3 of type `int`"),
    (
        lambda: branched_error_if(GOOD, True, 0.5, ["a"]),
        ArgumentTypeError,
        "is an integer.*float64",
    ),
    (lambda: branched_error_if(GOOD, True, 0, []), ArgumentError, "needs a message"),
    (
        lambda: branched_error_if(GOOD, True, np.array([0, 1]), ["a"]),
        ArgumentError,
        r"shape of the condition is \(\) and that of the index \(2,\)",
    ),
    (
        lambda: jax.eval_shape(lambda p: error_if(3.0, p, "no"), jnp.array(True)),
        ArgumentError,
        r"has to be an array in it; got 3\.0",
    ),
    (lambda: error_if(GOOD, True, "no", on_error="shout"), ArgumentError, "'off'; got 'shout'"),
]


@pytest.mark.parametrize(("call", "kind", "message"), ARGUMENTS, ids=range(len(ARGUMENTS)))
def test_wrong_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_each_of_many_threads_gets_its_own_message():
    x = jnp.array(0)

    def make(number):
        return ec.filter_jit(lambda x: error_if(x, x > 0, f"thread {number}, for real"))

    functions = [make(number) for number in range(8)]

    def work(number):
        run, good, bad, found = functions[number], x, x + 1, []
        for i in range(200):
            if i % 4 == 3:
                try:
                    run(bad)
                except RuntimeCheckError as error:
                    found.append(str(error).splitlines()[0])
            else:
                run(good)
        return found

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8)))
    assert found == [[f"thread {number}, for real"] * 50 for number in range(8)]


def test_with_the_checker_of_leaks():
    with jax.checking_leaks():
        run = ec.filter_jit(lambda x: jax.vmap(jax.grad(lambda y: positive(y) ** 2))(x))
        run(GOOD)
        with pytest.raises(RuntimeCheckError, match="not positive"):
            run(BAD)


def test_without_compilation():
    run = ec.filter_jit(lambda x: positive(x) + 1)
    with jax.disable_jit():
        for _ in range(6):
            run(GOOD)
            with pytest.raises(RuntimeCheckError, match="not positive"):
                run(BAD)


def test_on_several_devices():
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    where = jax.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    run = ec.filter_jit(lambda x: positive(x) * 2)
    assert run(jax.device_put(jnp.ones(8), where)).tolist() == [2] * 8
    with pytest.raises(RuntimeCheckError, match="True at 8 of 8"):
        run(jax.device_put(-jnp.ones(8), where))


def test_in_a_shard_map():
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("x")

    @ec.filter_jit
    @jax.shard_map(mesh=mesh, in_specs=(spec, jax.sharding.PartitionSpec()), out_specs=spec)
    def run(x, same):
        return x + error_if(same, x < 0, "negative")

    assert run(jnp.arange(4.0), jnp.ones(1)).tolist() == [1, 2, 3, 4]
    with pytest.raises(RuntimeCheckError, match="negative"):
        run(jnp.arange(4.0) - 1, jnp.ones(1))


def _outcome(function, *args):
    try:
        return jax.tree.map(lambda x: np.asarray(x).tolist(), function(*args))
    except RuntimeError as error:
        return "high" if "high" in str(error) else "low"


@pytest.mark.parametrize(("x", "index"), [(1.0, 0), (-1.0, 0), (-1.0, 1)])
@pytest.mark.parametrize("derive", [lambda f: f, jax.value_and_grad], ids=["value", "gradient"])
def test_as_in_equinox(derive, x, index):
    outcomes = []
    for library in (ec.runtime, eqx):
        jit = ec.filter_jit if library is ec.runtime else eqx.filter_jit

        def f(x, i, check=library.branched_error_if):
            return check(x, x < 0, i, ["it is low", "it is high"]) ** 2

        run = jit(derive(f))
        batch = jit(jax.vmap(derive(f), in_axes=(0, None)))
        outcomes.append(
            (
                _outcome(run, jnp.array(x), jnp.array(index)),
                _outcome(batch, jnp.array([2.0, x]), jnp.array(index)),
            )
        )
    assert outcomes[0] == outcomes[1]
