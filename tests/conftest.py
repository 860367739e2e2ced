"""What every test stands on: several CPU devices, a strict JAX, and fixed randomness.

The environment is set before JAX is imported for the first time; a process that a test starts
inherits it.
"""

import os

DEVICES = "--xla_force_host_platform_device_count=4"

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {DEVICES}".strip()
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"

import hypothesis
import jax
import pytest

hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


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
