import copy
import pickle

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import pytest

from ecliptic.errors import LeafError
from ecliptic.tree import str2jax


def test_it_has_no_leaves_as_that_of_equinox():
    assert jax.tree.leaves(str2jax("a")) == jax.tree.leaves(eqxi.str2jax("a")) == []


def test_it_shows_itself_as_that_of_equinox():
    assert repr(str2jax("a b")) == repr(eqxi.str2jax("a b")) == str(str2jax("a b")) == "a b"


def test_it_is_the_string_to_comparison_and_hash():
    assert str2jax("a") == str2jax("a") == "a"
    assert str2jax("a") != str2jax("b")
    assert {"a": 1}[str2jax("a")] == 1


def test_equal_strings_are_one_structure():
    assert jax.tree.structure(str2jax("a")) == jax.tree.structure(str2jax("a"))
    assert jax.tree.structure(str2jax("a")) != jax.tree.structure(str2jax("b"))


def test_a_program_is_traced_once_for_each_string():
    traced = []

    @jax.jit
    def call(name, x):
        traced.append(str(name))
        return name, x + 1

    names = [call(str2jax(name), jnp.array(1))[0] for name in ("a", "a", "b")]
    assert traced == ["a", "b"]
    assert names == ["a", "a", "b"]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_it_is_copied_as_what_it_is(again):
    other = again(str2jax("a"))
    assert other == "a"
    assert jax.tree.leaves(other) == []


def test_what_is_no_string_is_refused():
    with pytest.raises(LeafError, match="`str2jax` takes a string, and got 3 of type `int`"):
        str2jax(3)
