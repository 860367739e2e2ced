"""`announce_transform`: what is announced, in which order."""

import equinox
import jax
import jax.numpy as jnp
import pytest

from ecliptic import debug
from ecliptic.debug import announce_jaxpr_p, announce_transform

X = jnp.arange(3.0)


def _square(announce):
    return lambda x: announce(x) ** 2


WAYS = {
    "eager": lambda f: f(X),
    "jit": lambda f: jax.jit(f)(X),
    "jvp": lambda f: jax.jvp(f, (X,), (X,)),
    "vmap": lambda f: jax.jit(jax.vmap(f))(X),
    "vmap of grad": lambda f: jax.jit(jax.vmap(jax.grad(f)))(X),
    "grad of vmap": lambda f: jax.jit(jax.grad(lambda x: jax.vmap(f)(x).sum()))(X),
    "hessian": lambda f: jax.jit(jax.hessian(lambda x: f(x).sum()))(X),
}


@pytest.mark.parametrize("intermediates", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_it_announces_what_equinox_does(way, intermediates):
    texts = {}
    for module in (equinox.debug.announce_transform, announce_transform):
        said = texts[module] = []

        def announce(x, module=module, said=said):
            return module(x, "name", intermediates, said.append)

        WAYS[way](_square(announce))
    assert len({tuple(said) for said in texts.values()}) == 1
    assert texts[announce_transform]


def test_a_tree_is_announced_once_and_returned_as_it_is(capsys):
    tree = (X, 2, "text", None)
    out = announce_transform(tree)
    assert capsys.readouterr().out == "impl\n"
    assert out[0] is X
    assert out[1:] == tree[1:]


def test_the_program_shows_name_and_steps():
    program = jax.make_jaxpr(jax.vmap(lambda x: announce_transform(x, "here", announce=str)))(X)
    assert "announce_jaxpr" in str(program)
    assert "vmap" in str(program)
    assert "here" in str(program)


def test_the_primitive_is_made_at_its_first_use():
    assert announce_jaxpr_p is debug.announce_jaxpr_p
    assert announce_jaxpr_p.name == "announce_jaxpr"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        debug.nothing
