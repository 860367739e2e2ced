import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
from ecliptic.control import scan_trick
from ecliptic.errors import CarryError

BETWEEN = [lambda x: x + 1.0, lambda x: x - 5.0]


def tripled(x):
    return x * 3.0


@pytest.mark.parametrize("between", [BETWEEN, BETWEEN[:1], []])
def test_it_is_what_equinox_computes(between):
    x = jnp.array(1.5)
    assert float(scan_trick(tripled, between, x)) == float(eqxi.scan_trick(tripled, between, x))


def test_it_is_the_calls_one_after_another_also_in_a_batch_and_in_a_gradient():
    def written_out(x):
        return tripled(BETWEEN[1](tripled(BETWEEN[0](tripled(x)))))

    def looped(x):
        return scan_trick(tripled, BETWEEN, x)

    xs = jnp.arange(3.0)
    for transform in (jax.vmap, lambda fn: jax.vmap(jax.grad(fn))):
        assert transform(looped)(xs).tolist() == transform(written_out)(xs).tolist()


def test_the_function_is_traced_once():
    traces = []

    def counted(x):
        traces.append(None)
        return x * 2.0

    jax.make_jaxpr(lambda x: scan_trick(counted, BETWEEN * 2, x))(1.0)
    assert len(traces) == 1


def test_the_value_may_hold_what_is_no_array():
    x, name = scan_trick(lambda c: (c[0] * 2.0, c[1]), [lambda c: c], (jnp.array(1.0), "name"))
    assert (float(x), name) == (4.0, "name")


def test_a_function_that_changes_the_structure_is_refused():
    with pytest.raises(CarryError, match="filter_switch"):
        ec.filter_jit(scan_trick)(tripled, [lambda x: (x, x)], jnp.array(1.0))
