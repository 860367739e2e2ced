"""A warning where the arrays that a function captures become constants of its program.

An array in a closure, in a default, or in a `functools.partial` is no argument. It is written into
the compiled program: compiling takes longer, the array is held twice, a gradient does not see it,
and another one is another program.
"""

import contextlib
import contextvars
import functools
import os
import types
from collections.abc import Iterator
from typing import Any

from jax.tree_util import tree_leaves

from ecliptic import _jax
from ecliptic.errors import LargeConstantWarning
from ecliptic.module._warning import warn
from ecliptic.transform._code import captured_by, unwrapped
from ecliptic.tree import is_array

# Below four megabytes a constant adds less to a compilation than any compilation takes: models that
# small may be closed over, and tables and masks are meant to be constants.
DEFAULT_LIMIT = 2**22


def _from_environment() -> int | None:
    text = os.environ.get("ECLIPTIC_LARGE_CONSTANT", "")
    if text.lower() == "off":
        return None
    return int(text) if text.isdigit() else DEFAULT_LIMIT


_everywhere = _from_environment()
_limit: contextvars.ContextVar[int | None] = contextvars.ContextVar("large_constant")


@contextlib.contextmanager
def large_constants(size: int | None) -> Iterator[None]:
    """Sets from which size on captured arrays make `filter_jit` warn.

    A function that is compiled writes the arrays that it closes over, or that a `functools.partial`
    fills in, into its program as constants. From four megabytes on, `filter_jit` warns of it,
    once for each function. The environment variable `ECLIPTIC_LARGE_CONSTANT` sets the size for a
    whole process, in bytes, or `off`.

    Args:
        size: the size in bytes from which on there is a warning; None for no warnings.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> table = jnp.zeros((1024, 2048))
        >>> with ec.debug.large_constants(None):
        ...     _ = ec.filter_jit(lambda i, table=table: table[i])(3)
    """
    token = _limit.set(size)
    try:
        yield
    finally:
        _limit.reset(token)


def captured_arrays(fun: Any) -> dict[str, tuple[int, str]]:
    """The arrays that a callable captures: for each captured variable, their bytes and a text.

    What a captured function captures in turn counts for the variable that holds that function.
    What has leaves of its own (a Module, a bound method of one) captures nothing: these are seen.
    """
    found = {}
    for layer in unwrapped(fun):
        for name, value in captured_by(layer).items():
            size, text = _measure(value, {id(fun), id(layer)})
            if size:
                found.setdefault(name, (size, text))
    return found


def _measure(value: Any, seen: set[int]) -> tuple[int, str]:
    """How many bytes of arrays a captured value holds, and what it is."""
    if id(value) in seen:
        return 0, ""
    seen.add(id(value))
    total = 0
    for leaf in _leaves_and_wrappers(value):
        if is_array(leaf):
            # A traced array belongs to a trace around this one, and is an argument there.
            total += 0 if isinstance(leaf, _jax.Tracer) else nbytes(leaf)
        else:
            total += _of_function(leaf, seen)
    return total, f"a `{type(value).__name__}`"


def _leaves_and_wrappers(value: Any) -> list[Any]:
    """Leaves that may capture or be arrays; and nodes that wrap a function which is no leaf."""
    wrappers: list[Any] = []

    def visit(node: Any) -> bool:
        if hasattr(type(node), "__wrapped__"):
            wrappers.append(node)
        return False

    leaves = tree_leaves(value, is_leaf=visit)
    return [*leaves, *(node for node in wrappers if not any(node is leaf for leaf in leaves))]


def _of_function(fun: Any, seen: set[int]) -> int:
    return sum(
        _measure(value, seen)[0]
        for layer in unwrapped(fun)
        for value in captured_by(layer).values()
    )


def nbytes(array: Any) -> int:
    """The size of an array in bytes."""
    return int(array.nbytes)


def show_bytes(size: int) -> str:
    """A size in words."""
    return f"{size / 2**20:.1f} MB" if size >= 2**20 else f"{size} bytes"


def warn_of_constants(fun: Any, name: str) -> bool:
    """Warns if a function that is traced writes large arrays into its program.

    Args:
        fun: what is compiled, or a static argument that can be called.
        name: how the message calls it.

    Returns:
        Whether there was something to warn of.
    """
    limit = _limit.get(_everywhere)
    if limit is None or not isinstance(fun, types.FunctionType | functools.partial):
        return False
    large = {var: found for var, found in captured_arrays(fun).items() if found[0] >= limit}
    for variable, (size, what) in large.items():
        warn(
            f"`filter_jit` writes {show_bytes(size)} of arrays into the program of {name} as "
            f"constants: they are in the captured variable `{variable}`, {what}. Constants are "
            f"compiled in, which is slow, are held twice, and have no gradient. Pass `{variable}` "
            f"as an argument, or hold it in a PyTree: `ecliptic.Partial(function, {variable})` in "
            f"place of a closure or of `functools.partial`. If it is meant to be a constant: "
            f"`with ecliptic.debug.large_constants(None): ...` around the first call.",
            LargeConstantWarning,
        )
    return bool(large)
