"""What every test stands on: several CPU devices, a strict JAX, and fixed randomness."""

from tests.support import strict_jax  # noqa: F401  (before anything imports JAX)

# isort: split
import os
import re
from typing import Any

import hypothesis
import jax
import pytest

# These are read by a type checker, and never run.
collect_ignore = ["typing/cases"]

hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Take addresses out of names that `ids=repr` makes: all workers must collect the same."""
    parametrize = metafunc.parametrize

    def without_addresses(*args: Any, ids: Any = None, **kwargs: Any) -> None:
        named = ids

        def stable(value: Any) -> Any:
            name = named(value)
            return re.sub(r" at 0x[0-9a-f]+", "", name) if isinstance(name, str) else name

        parametrize(*args, ids=stable if callable(named) else named, **kwargs)

    metafunc.parametrize = without_addresses


@pytest.fixture
def getkey(request: pytest.FixtureRequest):
    """A function that returns a new PRNG key at each call, the same ones in each run.

    The seed is made from the test's name, so that no test depends on which ran before it.
    """
    seed = sum(ord(letter) * 31**i for i, letter in enumerate(request.node.name)) % 2**31
    key = jax.random.key(seed)
    count = 0

    def new_key() -> jax.Array:
        nonlocal count
        count += 1
        return jax.random.fold_in(key, count)

    return new_key
