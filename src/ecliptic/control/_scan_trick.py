"""`scan_trick`: a function that is called several times, compiled once."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Int

from ecliptic.control._cond import filter_switch
from ecliptic.control._scan import filter_scan

_X = TypeVar("_X")


def scan_trick(fn: Callable[[_X], _X], intermediates: Sequence[Callable[[_X], _X]], init: _X) -> _X:
    """Calls a function several times, with other functions in between, and compiles it once.

    `fn(g(fn(f(fn(init)))))`, for `intermediates=[f, g]`, has three copies of `fn` in the compiled
    program, if written so. This is a loop of three steps, each of which calls `fn` and then one of
    the intermediates. It pays if `fn` is large and takes long to compile, and they are small.

    Args:
        fn: takes and returns a value of one structure, with the same shapes and dtypes.
        intermediates: what is called in between, in this order; each takes and returns such a
            value too. `fn` is called once more than there are of these.
        init: the first value: any PyTree.

    Returns:
        What the last call of `fn` returns.

    Raises:
        CarryError: if a function changes structure, shapes or dtypes.

    !!! Example

        >>> from ecliptic.control import scan_trick
        >>> print(scan_trick(lambda x: x * 2.0, [lambda x: x + 1.0], 3.0))  # (3 * 2 + 1) * 2
        14.0
    """
    if not intermediates:
        return fn(init)

    def step(x: _X, index: Int[Array, ""]) -> tuple[_X, None]:
        return filter_switch(index, [*intermediates, _unchanged], fn(x)), None

    out, _ = filter_scan(step, init, jnp.arange(len(intermediates) + 1))
    return out


def _unchanged(x: _X) -> _X:
    return x
