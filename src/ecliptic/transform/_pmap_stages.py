"""Ahead of time: `filter_pmap(f).lower(...)`, and `.compile()` of that.

Each stage holds that of JAX and adds the static part, as those of `filter_jit` do.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.tree_util import tree_map

from ecliptic.errors import ArgumentError
from ecliptic.transform._failure import Watch, waiting, watching
from ecliptic.transform._stages import describe_difference

_Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Prepared(NamedTuple):
    """A call, as far as it is prepared.

    Args:
        key: what the program is looked up by.
        program: the program, as `jax.pmap` returns it.
        watch: whether there is a check in it.
        arrays: what it takes.
    """

    key: Any
    program: Any
    watch: Watch
    arrays: list[Any]

    def run(self) -> Any:
        """Calls the program, which may have to be traced and compiled for that."""
        with watching(self.watch):
            return waiting(self.program, self.watch)(self.arrays)


class Mapped(NamedTuple):
    """A function with how it is mapped.

    Args:
        name: what messages call it.
        prepare: prepares a call with given arguments.
        finish: makes the function's output of what a program returns.
        silent: whether JAX's warning of donated buffers that are of no use is to be left out.
    """

    name: str
    prepare: Callable[[tuple[Any, ...], dict[str, Any]], Prepared]
    finish: Callable[[Any], Any]
    silent: bool

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """A stretch of code in which the program is called or compiled."""
        if not self.silent:
            yield
            return
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Some donated buffers were not usable")
            yield


class _Stage:
    def __init__(
        self, inner: Any, mapped: Mapped, key: Any, watch: Watch, example: _Arguments
    ) -> None:
        self._inner = inner
        self._mapped = mapped
        self._key = key
        self._watch = watch
        self._example = example

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._mapped.name})"


class LoweredPmap(_Stage):
    """A mapped function that is lowered. Wraps `jax.stages.Lowered`."""

    def compile(self, compiler_options: dict[str, Any] | None = None) -> "CompiledPmap":
        """Compiles the program."""
        with self._mapped.quiet(), watching(self._watch):
            inner = self._inner.compile(compiler_options)
        return CompiledPmap(inner, self._mapped, self._key, self._watch, self._example)


class CompiledPmap(_Stage):
    """A mapped function that is compiled for given shapes, dtypes and static parts.

    Wraps `jax.stages.Compiled`. A call takes what the function takes.

    Raises:
        ArgumentError: at a call with another tree or other static leaves than those it was compiled
            for. Other shapes and dtypes are JAX's to refuse.
    """

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        mapped = self._mapped
        call = mapped.prepare(args, kwargs)
        if call.key != self._key:
            difference = describe_difference(self._example, (args, kwargs))
            if difference is not None:
                raise ArgumentError(
                    f"`{mapped.name}` was compiled for other arguments: {difference}. Static "
                    "values are part of a compiled program: compile another one for these."
                )
        return mapped.finish(waiting(self._inner, self._watch)(call.arrays))


def lower(mapped: Mapped, args: tuple[Any, ...], kwargs: dict[str, Any]) -> LoweredPmap:
    """Traces and lowers a mapped function, for arrays or for descriptions of them."""
    example = tree_map(_in_place, (args, kwargs))
    call = mapped.prepare(*example)
    with mapped.quiet(), watching(call.watch):
        inner = call.program.lower(call.arrays)
    return LoweredPmap(inner, mapped, call.key, call.watch, example)


def _in_place(leaf: Any) -> Any:
    """An array in place of a mere description of one. It takes no memory."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape)
    return leaf
