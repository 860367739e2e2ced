import equinox.internal as eqxi
import jax
import pytest

from ecliptic.errors import ArgumentError
from ecliptic.testing import GetKey

VARIABLES = ["ECLIPTIC_GETKEY_SEED", "EQX_GETKEY_SEED"]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def test_each_call_gives_another_key():
    getkey = GetKey(seed=1)
    keys = {tuple(getkey().tolist()) for _ in range(5)}
    assert len(keys) == 5


def test_the_keys_are_those_of_equinox():
    ours, theirs = GetKey(seed=3), eqxi.GetKey(seed=3)
    assert [ours().tolist() for _ in range(3)] == [theirs().tolist() for _ in range(3)]


def test_a_key_draws_numbers():
    assert jax.random.normal(GetKey()(), (2,)).shape == (2,)


def test_seeds_are_random_unless_given():
    assert GetKey().seed != GetKey().seed


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_environment_gives_the_seed_where_the_argument_does_not(variable, monkeypatch):
    monkeypatch.setenv(variable, "17")
    assert GetKey().seed == 17
    assert GetKey(seed=4).seed == 4


def test_a_seed_that_is_no_integer_is_refused(monkeypatch):
    monkeypatch.setenv("ECLIPTIC_GETKEY_SEED", "many")
    with pytest.raises(ArgumentError, match="`ECLIPTIC_GETKEY_SEED` is the seed of `GetKey`"):
        GetKey()


def test_the_repr_shows_what_repeats_the_run():
    getkey = GetKey(seed=2)
    getkey()
    assert repr(getkey).startswith("GetKey(seed=2, call=1, key=")
