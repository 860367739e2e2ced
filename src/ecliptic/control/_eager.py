"""Loops and branches outside of any trace.

`jax.lax.scan` traces its function once, however often it is called with it. The functions that are
handed to JAX here are made for each call, so JAX would trace each. Outside of a trace, a construct
therefore runs under `filter_jit`, which knows equal static parts again.

Programs are kept as long as the first of the user's functions lives.
"""

import types
import weakref
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten

from ecliptic import _jax
from ecliptic.control._carry import Promote
from ecliptic.errors import StaticError
from ecliptic.module import is_module
from ecliptic.transform import clear_caches, filter_jit, on_clear
from ecliptic.tree._passage import Passage

# What does the work of a construct: called with the user's functions, the trees that they are
# given, the options, and a function to call with the promoted positions of the first tree.
Construct = Callable[[tuple[Any, ...], tuple[Any, ...], Any, Callable[[frozenset[int]], None]], Any]


class _Compiled(NamedTuple):
    """A construct, compiled; and which Python numbers in its first tree have to be traced."""

    call: Callable[..., Any]
    promoted: dict[Any, frozenset[int]]


_of_function: "weakref.WeakKeyDictionary[Any, dict[Hashable, _Compiled]]" = (
    weakref.WeakKeyDictionary()
)
_of_trees: dict[Hashable, _Compiled] = {}


@on_clear
def _clear(function: Any) -> bool:
    """Drops the programs of loops and branches: those of a function, or all."""
    if function is None:
        tables: list[dict[Hashable, _Compiled]] = [*_of_function.values(), _of_trees]
    else:
        known = type(function) is types.FunctionType and function in _of_function
        tables = [_of_function[function]] if known else []
    for table in tables:
        for compiled in table.values():
            clear_caches(compiled.call)
        table.clear()
    return bool(tables)


def run(
    construct: Construct, functions: tuple[Any, ...], trees: tuple[Any, ...], options: Hashable
) -> Any:
    """Runs a construct: compiled if no trace is under way, else as a part of that trace."""
    if _jax.trace_state_clean() and not jax.config.jax_disable_jit:  # pyright: ignore
        first, *others = functions
        if type(first) is types.FunctionType:
            table = _of_function.setdefault(first, {})
            compiled = _compile(table, construct, options, weakref.ref(first))
            return _call(compiled, construct, functions, trees, options, tuple(others))
        if is_module(first):
            compiled = _compile(_of_trees, construct, options, None)
            return _call(compiled, construct, functions, trees, options, functions)
    return construct(functions, trees, options, lambda _: None)


def _compile(
    table: dict[Hashable, _Compiled], construct: Construct, options: Hashable, first: Any
) -> _Compiled:
    key = (construct, options)
    if key not in table:

        def program(functions: tuple[Any, ...], trees: tuple[Any, ...]) -> Any:
            if first is not None:
                functions = (first(), *functions)
            return construct(functions, trees, options, _start_anew)

        program.__name__ = program.__qualname__ = construct.__name__.strip("_")
        if first is not None:
            # Reports on traces are about the user's function.
            setattr(program, "__ecliptic_code__", first().__code__)  # noqa: B010
        table[key] = _Compiled(filter_jit(program), {})
    return table[key]


def _start_anew(positions: frozenset[int]) -> None:
    raise Promote(positions)


def _call(
    compiled: _Compiled,
    construct: Construct,
    functions: tuple[Any, ...],
    trees: tuple[Any, ...],
    options: Hashable,
    passed: tuple[Any, ...],
) -> Any:
    first, *others = trees
    leaves, treedef = tree_flatten(first)
    while True:
        for i in compiled.promoted.get(treedef, ()):
            leaves[i] = jnp.asarray(leaves[i])
        try:
            passage = Passage()
            out = compiled.call(passed, (passage.unflatten(treedef, leaves), *others))
            passage.finish()
            return out
        except Promote as more:
            # Numbers that change are arrays from the start, now and in later calls: so another
            # value in their place is no other program.
            known = compiled.promoted.get(treedef, frozenset())
            compiled.promoted[treedef] = known | more.positions
        except StaticError:
            # Something has no hash. It works uncompiled, or fails there by its own fault.
            return construct(functions, trees, options, lambda _: None)
