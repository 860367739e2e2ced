"""error_if, branched_error_if, enumerations, debug."""

# ruff: noqa: D103 (the name of a program says what it is about)

import contextlib
import io

import jax
import jax.numpy as jnp

from conformance.parity._table import Table

TABLE = Table("runtime")
TRUE, FALSE = jnp.array(True), jnp.array(False)


def _jit_error(eqx, pred, **options):
    return eqx.filter_jit(lambda x, p: eqx.error_if(x, p, "no", **options))(jnp.ones(2), pred)


def _caught(eqx, call):
    """The class of the library that an error has."""
    try:
        call()
    except eqx.EquinoxTracetimeError:
        return "trace time"
    except eqx.EquinoxRuntimeError:
        return "run time"
    return "nothing"


TABLE.rows(
    no_error=lambda eqx: eqx.error_if(jnp.ones(2), False, "no"),
    an_error=lambda eqx: eqx.error_if(jnp.ones(2), True, "no"),
    an_error_of_an_array=lambda eqx: eqx.error_if(jnp.ones(2), TRUE, "no"),
    an_error_of_one_element=lambda eqx: eqx.error_if(
        [jnp.ones(1), "a"], jnp.array([False, True]), "no"
    ),
    an_error_under_jit=lambda eqx: _jit_error(eqx, TRUE),
    no_error_under_jit=lambda eqx: _jit_error(eqx, FALSE),
    class_under_jit=lambda eqx: _caught(eqx, lambda: _jit_error(eqx, TRUE)),
    class_when_traced=lambda eqx: _caught(
        eqx, lambda: eqx.filter_jit(lambda x: eqx.error_if(x, True, "no"))(jnp.ones(1))
    ),
    class_outside=lambda eqx: _caught(eqx, lambda: eqx.error_if(jnp.ones(1), TRUE, "no")),
    class_under_vmap=lambda eqx: _caught(
        eqx,
        lambda: eqx.filter_jit(jax.vmap(lambda x: eqx.error_if(x, x > 1, "no")))(jnp.arange(3.0)),
    ),
    both_are_runtime_errors=lambda eqx: (
        issubclass(eqx.EquinoxRuntimeError, RuntimeError),
        issubclass(eqx.EquinoxTracetimeError, RuntimeError),
        issubclass(eqx.EquinoxRuntimeError, eqx.EquinoxTracetimeError),
    ),
    nan=lambda eqx: _jit_error(eqx, TRUE, on_error="nan"),
    nan_without_an_error=lambda eqx: _jit_error(eqx, FALSE, on_error="nan"),
    off=lambda eqx: _jit_error(eqx, TRUE, on_error="off"),
    a_wrong_mode=lambda eqx: _jit_error(eqx, TRUE, on_error="what"),
    an_empty_tree=lambda eqx: eqx.filter_jit(lambda p: eqx.error_if((), p, "no"))(FALSE),
    no_arrays=lambda eqx: eqx.error_if("text", FALSE, "no"),
    a_number=lambda eqx: eqx.error_if(1.0, FALSE, "no"),
    a_predicate_of_numbers=lambda eqx: eqx.error_if(jnp.ones(1), jnp.array(1.0), "no"),
    under_grad=lambda eqx: jax.grad(lambda x: eqx.error_if(x, x < 0, "no") ** 2)(3.0),
    under_vmap=lambda eqx: jax.vmap(lambda x: eqx.error_if(x, x < 0, "no"))(jnp.arange(2.0)),
    under_scan=lambda eqx: jax.jit(
        lambda x: jax.lax.scan(lambda c, x: (eqx.error_if(c + x, c > 100, "no"), None), 0.0, x)[0]
    )(jnp.arange(2.0)),
    branched=lambda eqx: eqx.branched_error_if(jnp.ones(1), FALSE, 0, ["a", "b"]),
    branched_error=lambda eqx: eqx.branched_error_if(jnp.ones(1), TRUE, 1, ["a", "b"]),
    branched_under_jit=lambda eqx: _caught(
        eqx,
        lambda: eqx.filter_jit(lambda x, i: eqx.branched_error_if(x, TRUE, i, ["a", "b"]))(
            jnp.ones(1), jnp.array(1)
        ),
    ),
    branched_without_messages=lambda eqx: eqx.branched_error_if(jnp.ones(1), FALSE, 0, []),
    works_after_an_error=lambda eqx: (
        _caught(eqx, lambda: _jit_error(eqx, TRUE)),
        _jit_error(eqx, FALSE),
    ),
    message=lambda eqx: _message(eqx),
)


def _message(eqx):
    try:
        _jit_error(eqx, TRUE)
    except RuntimeError as error:
        return "no" in str(error)
    return None


def _colour(eqx):
    class Colour(eqx.Enumeration):
        red = "It is red."
        green = "It is green."

    return Colour


def _more(eqx):
    class More(_colour(eqx)):
        blue = "It is blue."

    return More


TABLE.rows(
    enumeration_message=lambda eqx: (lambda C: C[C.green])(_colour(eqx)),
    enumeration_equal=lambda eqx: (
        lambda C: (bool(C.red == C.red), bool(C.red == C.green), bool(C.red != C.green))
    )(_colour(eqx)),
    enumeration_of_two=lambda eqx: _colour(eqx).red == _more(eqx).red,
    enumeration_equal_to_a_number=lambda eqx: _colour(eqx).red == 0,
    enumeration_length=lambda eqx: (len(_colour(eqx)), len(_more(eqx))),
    enumeration_repr=lambda eqx: repr(_more(eqx).blue),
    enumeration_str=lambda eqx: str(_more(eqx).red),
    enumeration_leaves=lambda eqx: jax.tree.leaves(_colour(eqx).green),
    enumeration_promote=lambda eqx: (lambda C, M: M[M.promote(C.green)])(
        *(lambda C: (C, type("M", (C,), {"blue": "b"})))(_colour(eqx))
    ),
    enumeration_promote_what_is_none=lambda eqx: _colour(eqx).promote(3),
    enumeration_where=lambda eqx: (lambda C: C[C.where(TRUE, C.green, C.red)])(_colour(eqx)),
    enumeration_where_under_jit=lambda eqx: (
        lambda C: C[eqx.filter_jit(lambda p: C.where(p, C.green, C.red))(FALSE)]
    )(_colour(eqx)),
    enumeration_where_of_numbers=lambda eqx: _colour(eqx).where(TRUE, 1, 2),
    enumeration_is_traced=lambda eqx: (lambda C: jax.jit(lambda c: c == C.red)(C.red))(
        _colour(eqx)
    ),
    enumeration_under_vmap=lambda eqx: (
        lambda C: jax.vmap(lambda p: C.where(p, C.green, C.red) == C.green)(
            jnp.array([True, False])
        )
    )(_colour(eqx)),
    enumeration_instance=lambda eqx: (lambda C: (isinstance(C.red, C), isinstance(3, C)))(
        _colour(eqx)
    ),
    enumeration_is_not_called=lambda eqx: _colour(eqx)(),
    enumeration_unknown=lambda eqx: _colour(eqx).yellow,
    enumeration_by_number=lambda eqx: _colour(eqx)[0],
    enumeration_assignment=lambda eqx: setattr(_colour(eqx), "red", 3),
    enumeration_hash=lambda eqx: hash(_colour(eqx).red),
    enumeration_error_if=lambda eqx: (
        lambda C: eqx.filter_jit(lambda x, c: C.red.error_if(x, FALSE))(jnp.ones(1), C.red)
    )(_colour(eqx)),
    enumeration_error=lambda eqx: (lambda C: C.green.error_if(jnp.ones(1), TRUE))(_colour(eqx)),
    enumeration_iterates=lambda eqx: len(list(iter(_colour(eqx)))),
)


@TABLE
def announcements(eqx):
    said = []
    jax.grad(lambda x: eqx.debug.announce_transform(x, name="x", announce=said.append))(1.0)
    return len(said)


@TABLE
def announcements_are_printed(eqx):
    return jax.vmap(lambda x: eqx.debug.announce_transform(x, name="x"))(jnp.ones(2))


def _traced(eqx, limit, calls):
    f = eqx.debug.assert_max_traces(lambda x: x + 1, max_traces=limit)
    g = eqx.filter_jit(f)
    for n in calls:
        g(jnp.ones(n))
    return eqx.debug.get_num_traces(f)


TABLE.rows(
    max_traces=lambda eqx: _traced(eqx, 2, (1, 2, 1)),
    max_traces_is_passed=lambda eqx: _traced(eqx, 1, (1, 2)),
    max_traces_none=lambda eqx: _traced(eqx, None, (1, 2)),
    max_traces_of_a_plain_function=lambda eqx: eqx.debug.get_num_traces(lambda x: x),
    backward_nan=lambda eqx: jax.jit(
        jax.grad(lambda x: eqx.debug.backward_nan(x, terminate=False))
    )(jnp.array(1.0)),
    backward_nan_of_a_number=lambda eqx: jax.grad(
        lambda x: eqx.debug.backward_nan(x, terminate=False)
    )(1.0),
    dce=lambda eqx: _dce(eqx),
    breakpoint_if=lambda eqx: eqx.debug.breakpoint_if(FALSE),
)


def _dce(eqx):
    @jax.jit
    def f(x):
        a, _ = eqx.debug.store_dce((jnp.sin(x), jnp.cos(x)), name="parity")
        return a

    with contextlib.redirect_stdout(io.StringIO()):
        f(1.0)
        eqx.debug.inspect_dce("parity")
    return f(1.0)
