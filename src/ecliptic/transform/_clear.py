"""`clear_caches`: drops compiled programs, and whatever else is remembered between calls."""

from collections.abc import Callable
from typing import Any

from ecliptic.errors import ArgumentError
from ecliptic.transform._code import unwrapped
from ecliptic.transform._history import lineage_of, lineages
from ecliptic.transform._jit import JitFunction
from ecliptic.transform._memo import clear_memos
from ecliptic.transform._table import every_table, tables_of

# Each drops what a higher layer remembers for a function, or for all if it is given None, and
# returns whether there was anything.
_others: list[Callable[[Any], bool]] = []


def on_clear(clear: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Adds a cache to those that [`clear_caches`][] clears.

    Args:
        clear: drops what is remembered for a function, or everything if it is given None; returns
            whether that function is known.
    """
    _others.append(clear)
    return clear


def clear_caches(fn: Any = None, /) -> None:
    """Drops compiled programs: those of one function, or all that Ecliptic remembers.

    What is dropped is traced and compiled again when it is called next. This gives back memory in
    a process that compiles very many functions, and starts anew after a change that JAX cannot see.
    What JAX remembers of functions that it was given otherwise stays; `jax.clear_caches()` drops
    that.

    Args:
        fn: what `filter_jit` returned, or the function that it was given, or the step of a
            filtered loop. Programs that equal callable PyTrees share are lost to all of them.
            Default: everything.

    Raises:
        ArgumentError: if nothing was ever compiled of `fn`.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> @ec.filter_jit
        ... def f(x):
        ...     print("traced")
        ...     return 2 * x
        >>> _ = f(jnp.ones(2)), f(jnp.ones(2))
        traced
        >>> clear_caches(f)
        >>> _ = f(jnp.ones(2))
        traced
    """
    if fn is None:
        _clear_everything()
        return
    layers = list(unwrapped(fn))
    tables = [layer._dispatch.table for layer in layers if isinstance(layer, JitFunction)]
    tables += [table for layer in layers for table in tables_of(layer)]
    for table in tables:
        table.clear()
        for layer in layers:
            lineage_of(layer, table.options.name).forget(None)
    known = [clear(fn) for clear in _others]
    if not tables and not any(known):
        raise ArgumentError(
            f"`clear_caches` has nothing to clear for {fn!r}: it was given to no `filter_jit` and "
            f"no filtered loop. Without an argument, it clears everything."
        )


def _clear_everything() -> None:
    for table in every_table():
        table.clear()
    for lineage in lineages():
        lineage.forget(None)
    clear_memos()
    for clear in _others:
        clear(None)
