"""`GetKey`: a new key at each call."""

import dataclasses
import os
import random

import jax
from jaxtyping import PRNGKeyArray

from ecliptic.errors import ArgumentError

_VARIABLES = ("ECLIPTIC_GETKEY_SEED", "EQX_GETKEY_SEED")


@dataclasses.dataclass(init=False, eq=False)
class GetKey:
    """Returns a new PRNG key at each call. For tests, as a fixture.

    It is random at first, so that tests see other numbers in each run, and its `repr`, which
    pytest shows with a failure, holds the seed. Set the environment variable
    `ECLIPTIC_GETKEY_SEED` (or `EQX_GETKEY_SEED`) to that, to see the failure again.

    Args:
        seed: the seed. By default that of the environment variable, or else a random one.

    Raises:
        ArgumentError: if the environment variable holds no integer.

    !!! Example

        >>> from ecliptic.testing import GetKey
        >>> getkey = GetKey(seed=0)
        >>> bool((getkey() == getkey()).all())
        False
        >>> getkey
        GetKey(seed=0, call=2, key=Array([0, 0], dtype=uint32))
    """

    seed: int
    call: int
    key: PRNGKeyArray

    def __init__(self, seed: int | None = None) -> None:
        self.seed = _seed() if seed is None else seed
        self.call = 0
        # The old form of a key: functions of all ages take it.
        self.key = jax.random.PRNGKey(self.seed)

    def __call__(self) -> PRNGKeyArray:
        """The next key: the first one, with the number of the call folded in."""
        self.call += 1
        return jax.random.fold_in(self.key, self.call)


def _seed() -> int:
    for variable in _VARIABLES:
        value = os.environ.get(variable)
        if value is None:
            continue
        try:
            return int(value)
        except ValueError as error:
            raise ArgumentError(
                f"The environment variable `{variable}` is the seed of `GetKey`, an integer, and "
                f"it is {value!r}."
            ) from error
    return random.SystemRandom().randint(0, 2**31 - 1)
