"""`noinline`: a function that is compiled once, and called from programs.

XLA compiles a function anew at each place where it is called. Here the program calls back to the
host instead, which runs the one program of the function. Derivatives, batches and transposes of
such a call are calls too, of a function that is derived from the first on the host.
"""

import threading
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.tree_util import tree_leaves

from ecliptic import _jax
from ecliptic._jax._define import define, no_tangent
from ecliptic.barrier._derived import Batched, Program, Pushed, Transposed
from ecliptic.barrier._host import call_on_host
from ecliptic.errors import ArgumentTypeError, RuleError
from ecliptic.module import Module, Partial, field, looks_like_wrapped
from ecliptic.primitive import primitive_finalisations
from ecliptic.primitive._filtered import is_zero
from ecliptic.primitive._operands import ARRAY, split
from ecliptic.transform._static import static_key
from ecliptic.tree import is_array


def noinline(fn: Callable[..., Any], abstract_fn: Callable[..., Any] | None = None) -> Any:
    """Wraps a function so that it is compiled once, and not at each place that it is called from.

    That makes programs quick to compile that call a large function many times. It makes them slower
    to run: each call goes through the host. A batch is one call.

    Args:
        fn: the function: any PyTree that can be called, of any PyTrees. It is compiled once for
            each structure, shapes and dtypes of its arguments, and must not use traced values that
            are not among these.
        abstract_fn: a function that says what `fn` returns, so that `fn` need not be traced for
            that. It is called with the leaves of `fn` (`None` for each that is no array) and then
            the arguments. The results of several calls of `noinline` with the same `abstract_fn`
            can replace each other in a compiled function that takes one of them as an argument.
            Such an `fn` is kept for as long as Python runs. Default: `fn` itself.

    Returns:
        A Module to be called as `fn`. Outside of any trace, that calls `fn`.

    Raises:
        ArgumentTypeError: if `fn` cannot be called.
        RuleError: once it is called, if `fn` uses a traced value that is no argument; once it runs,
            if it returns something else than `abstract_fn`.
        StaticError: once it is called, if what is no array among its arguments has no hash.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.barrier as exb
        >>> @exb.noinline
        ... def f(x):
        ...     print("tracing")
        ...     return jnp.sin(x)
        >>> four_times = jax.jit(lambda x: f(f(f(f(x)))))
        >>> print(four_times(1.0))
        tracing
        tracing
        0.62757...
    """
    if not callable(fn):
        raise ArgumentTypeError(
            f"`noinline` needs a callable as its first argument; got {fn!r} of type "
            f"`{type(fn).__qualname__}`."
        )
    return _NoInline(fn) if abstract_fn is None else _Interchangeable.of(fn, abstract_fn)


class _NoInline(Module):
    """A function that is not inlined."""

    _fun: Any

    @property
    def __wrapped__(self) -> Any:
        return self._fun

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _call((self._fun, args, kwargs), None, None)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else Partial(self, instance)


looks_like_wrapped(_NoInline)


class _Interchangeable(Module):
    """A function that is not inlined, and that others can replace."""

    _index: Any
    _leaves: tuple[Any, ...]
    _abstract: Any = field(static=True)

    # Which function it calls may be known only when a program runs, so it looks like the other one.
    # That has one argument more, so it is not what this wraps.
    @property
    def __name__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._abstract.__name__

    @classmethod
    def of(cls, fn: Any, abstract: Any) -> "_Interchangeable":
        """Gives the function a number."""
        leaves = tuple(leaf if is_array(leaf) else None for leaf in tree_leaves(fn))
        _, static, treedef = split(fn, is_array)
        return cls(np.asarray(_numbers.of(static, treedef), np.int32), leaves, abstract)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _call((self._leaves, args, kwargs), self._index, self._abstract)


looks_like_wrapped(_Interchangeable, "_abstract")


class _Numbers:
    """The functions that have a number. A compiled program knows them by that."""

    def __init__(self) -> None:
        self.functions: list[tuple[Any, Any]] = []
        self.known: dict[Any, int] = {}
        self.lock = threading.Lock()

    def of(self, static: tuple[Any, ...], treedef: Any) -> int:
        """The number of a function: the same for the same one."""
        key = treedef, tuple(map(static_key, static))
        with self.lock:
            try:
                if key in self.known:
                    return self.known[key]
                self.known[key] = len(self.functions)
            except TypeError:
                pass  # It has no hash: it gets a number each time.
            self.functions.append((static, treedef))
            return len(self.functions) - 1

    def function(self, number: int, leaves: tuple[Any, ...]) -> Any:
        """The function of a number, with the arrays among these leaves."""
        static, treedef = self.functions[number]
        return treedef.unflatten([
            leaf if mark is ARRAY else mark for leaf, mark in zip(leaves, static, strict=True)
        ])  # fmt: skip


_numbers = _Numbers()


def _known(index: Any) -> Callable[..., Any]:
    """How the function with a number is called; without a number it is among the arguments."""
    if index is None:
        return lambda fn, args, kwargs: fn(*args, **kwargs)
    number = int(index)
    return lambda leaves, args, kwargs: _numbers.function(number, leaves)(*args, **kwargs)


def _call(tree: Any, index: Any, abstract: Any) -> Any:
    arrays, static, treedef = split(tree, is_array)
    traced = any(isinstance(x, _jax.Tracer) for x in [*arrays, index])
    if not traced and _jax.trace_state_clean():
        return _known(index)(*tree)
    program = Program(tuple(map(static_key, static)), static, treedef, abstract, ())
    output = program.signature([jax.typeof(x) for x in arrays]).output
    return output.tree(_bind(program, index, arrays))


def _bind(program: Program, index: Any, arrays: list[Any]) -> list[Any]:
    number = [] if index is None else [index]
    # Found now, since there may be another mesh or the like around when the program is compiled.
    out = program.signature([jax.typeof(x) for x in arrays]).avals
    return noinline_p.bind(*number, *arrays, program=program, out=out)


def _index(args: Any, program: Program) -> tuple[Any, list[Any]]:
    return (None, list(args)) if program.abstract is None else (args[0], list(args[1:]))


def _directly(*args: Any, program: Program, out: Any) -> list[Any]:
    index, arrays = _index(args, program)
    # Under `jax.grad(f)(3.0)` the primal is the Python number, which has become an array by now.
    arrays = [x if is_array(x) else jax.numpy.asarray(x) for x in arrays]
    return program.function(_known(index))(arrays)


def _run(*args: Any, program: Program, out: Any) -> list[Any]:
    index, arrays = _index(args, program)
    return call_on_host(program, _known, index, arrays, out)


def _abstract(*args: Any, program: Program, out: Any) -> list[Any]:
    return list(out)


def _finalised(*args: Any, program: Program, out: Any) -> list[Any]:
    index, _ = _index(args, program)
    call = _run if isinstance(index, _jax.Tracer) else _directly
    return call(*args, program=program, out=out)


def _jvp(primals: Any, tangents: Any, *, program: Program, out: Any) -> Any:
    index, arrays = _index(primals, program)
    tangents = tangents[len(primals) - len(arrays) :]
    there = tuple(not is_zero(t) for t in tangents)
    results = _bind(program, index, arrays)
    t_out = [no_tangent(x) for x in results]
    moved = [i for i, x in enumerate(out) if jax.numpy.issubdtype(x.dtype, jax.numpy.inexact)]
    if any(there) and moved:
        some = [t for t, yes in zip(tangents, there, strict=True) if yes]
        found = _bind(program.then(Pushed(there)), index, arrays + some)
        for i, t in zip(moved, found, strict=True):
            t_out[i] = t
    return results, t_out


def _transpose(cotangents: Any, *args: Any, program: Program, out: Any) -> list[Any]:
    index, arrays = _index(args, program)
    linear = tuple(_jax.is_undefined_primal(x) for x in arrays)
    avals = tuple(x.aval for x in arrays if _jax.is_undefined_primal(x))
    known = [x for x in arrays if not _jax.is_undefined_primal(x)]
    cotangents = [_jax.instantiate_zeros(ct) for ct in cotangents]
    found = iter(_bind(program.then(Transposed(linear, avals)), index, known + cotangents))
    cts = [next(found) if yes else None for yes in linear]
    return cts if index is None else [None, *cts]


def _batch(data: Any, args: Any, dims: Any, *, program: Program, out: Any) -> Any:
    index, arrays = _index(args, program)
    if index is not None and dims[0] is not None:
        raise RuleError(
            "`jax.vmap` was given a batch of functions that `noinline` made with an `abstract_fn`. "
            "They are called one after the other in a loop: use `jax.lax.map`."
        )
    dims = dims[len(args) - len(arrays) :]
    if all(d is None for d in dims):
        # JAX asks here for what is the same for all elements, too.
        return _bind(program, index, arrays), [None] * len(out)
    arrays = [
        x if d is None else jax.numpy.moveaxis(x, d, 0) for x, d in zip(arrays, dims, strict=True)
    ]
    way = Batched(tuple(d is not None for d in dims), data.size, data.name, data.spmd_name)
    return _bind(program.then(way), index, arrays), [0] * len(out)


noinline_p: Any = _jax.Primitive("noinline")
"""The primitive of `noinline`."""

noinline_p.multiple_results = True
define(
    noinline_p, _run, _abstract, eager=_directly, jvp=_jvp, transpose=_transpose, batch_axis=_batch
)
primitive_finalisations[noinline_p] = _finalised
