"""How a program calls a function of JAX on the host."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ecliptic.barrier._derived import Program
from ecliptic.errors import RuleError


class _Plain:
    """An array type as the host sees it: typed PRNG keys are plain arrays there.

    Args:
        aval: the type.
    """

    def __init__(self, aval: Any) -> None:
        self.aval = aval
        self.struct = jax.ShapeDtypeStruct(aval.shape, aval.dtype)
        self.generator: Any = None
        if jnp.issubdtype(aval.dtype, jax.dtypes.prng_key):
            self.struct = jax.eval_shape(self._learn, self.struct)

    def _learn(self, key: Any) -> Any:
        self.generator = jax.random.key_impl(key)
        return jax.random.key_data(key)

    def plain(self, array: Any) -> Any:
        """The plain array."""
        return array if self.generator is None else jax.random.key_data(array)

    def typed(self, array: Any) -> Any:
        """The array, or key, of a plain array."""
        if self.generator is None:
            return array
        return jax.random.wrap_key_data(array, impl=self.generator)


@functools.lru_cache(1024)
def _compiled(program: Program, known: Any, number: int | None) -> Callable[..., Any]:
    return jax.jit(program.function(known(number)))


def call_on_host(
    program: Program, known: Any, index: Any, arrays: list[Any], out: Sequence[Any]
) -> list[Any]:
    """Calls back to the host, which runs the compiled function.

    Args:
        program: what to run.
        known: finds how the function with a number is called.
        index: the number of the function, or `None`.
        arrays: the arguments.
        out: the types of the results.
    """
    given = [_Plain(jax.typeof(x)) for x in arrays]
    results = [_Plain(x) for x in out]

    def host(index: Any, arrays: list[Any]) -> list[Any]:
        run = _compiled(program, known, None if index is None else int(index))
        found = run([kind.typed(x) for kind, x in zip(given, arrays, strict=True)])
        _check(found, results)
        return [np.asarray(kind.plain(x)) for kind, x in zip(results, found, strict=True)]

    plain = [kind.plain(x) for kind, x in zip(given, arrays, strict=True)]
    found = jax.pure_callback(host, [kind.struct for kind in results], index, plain)
    return [kind.typed(x) for kind, x in zip(results, found, strict=True)]


def _check(found: list[Any], results: list[_Plain]) -> None:
    got = [(x.shape, x.dtype) for x in found]
    wanted = [(kind.aval.shape, kind.aval.dtype) for kind in results]
    if got != wanted:
        raise RuleError(
            f"A function that `noinline` made returned arrays {_show(got)}, and its `abstract_fn` "
            f"says {_show(wanted)}."
        )


def _show(arrays: list[Any]) -> str:
    return str([f"{dtype}{list(shape)}" for shape, dtype in arrays])
