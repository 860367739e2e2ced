"""A function that is called through a boundary, and what is derived from it behind that."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from ecliptic import _jax
from ecliptic._jax._define import of_batch, of_element
from ecliptic.errors import RuleError, StaticError
from ecliptic.primitive._operands import ARRAY, fill, split
from ecliptic.tree import is_array

# A function of a list of arrays that returns a list of arrays.
Flat = Callable[[list[Any]], list[Any]]


class Output(NamedTuple):
    """The output of a function: structure, and leaves with a mark in place of each array."""

    treedef: Any
    static: tuple[Any, ...]

    def tree(self, arrays: Sequence[Any]) -> Any:
        """The output with these arrays."""
        return fill(self.static, self.treedef, arrays)


class Signature(NamedTuple):
    """What a function returns: types of arrays, and the tree that they are in."""

    avals: tuple[Any, ...]
    output: Output


@runtime_checkable
class Derivation(Protocol):
    """One step from a function to another."""

    def function(self, inner: Flat) -> Flat:
        """The other function."""
        ...

    def avals(self, inner: Callable[[list[Any]], Sequence[Any]], avals: list[Any]) -> list[Any]:
        """What it returns, given what the first one does."""
        ...


@dataclasses.dataclass(frozen=True)
class Pushed:
    """From a function to its tangents: of all results that are floating or complex.

    Args:
        there: for each argument whether it has a tangent. These tangents follow the arguments.
    """

    there: tuple[bool, ...]

    def function(self, inner: Flat) -> Flat:
        """The tangents, given arguments and their tangents."""
        n = len(self.there)

        def tangents(args: list[Any]) -> list[Any]:
            def of_some(*some: Any) -> list[Any]:
                rest = iter(some)
                full = [
                    next(rest) if yes else x for x, yes in zip(args[:n], self.there, strict=True)
                ]
                return [x for x in inner(full) if jnp.issubdtype(x.dtype, jnp.inexact)]

            some = [x for x, yes in zip(args[:n], self.there, strict=True) if yes]
            return jax.jvp(of_some, some, args[n:])[1]

        return tangents

    def avals(self, inner: Callable[[list[Any]], Sequence[Any]], avals: list[Any]) -> list[Any]:
        """Tangents have the types of what they belong to."""
        out = inner(avals[: len(self.there)])
        return [x.to_tangent_aval() for x in out if jnp.issubdtype(x.dtype, jnp.inexact)]


@dataclasses.dataclass(frozen=True)
class Batched:
    """From a function to that of a batch, along the first axes.

    Args:
        mapped: for each argument whether it has another value for each element.
        size: the size of the batch.
        axis_name: the name of the axis.
        spmd_axis_name: the axes of a mesh that it is spread over.
    """

    mapped: tuple[bool, ...]
    size: int
    axis_name: Any
    spmd_axis_name: Any

    def function(self, inner: Flat) -> Flat:
        """The function for all elements."""
        return jax.vmap(
            inner,
            in_axes=([0 if m else None for m in self.mapped],),
            axis_size=self.size,
            axis_name=self.axis_name,
            spmd_axis_name=self.spmd_axis_name,
        )

    def avals(self, inner: Callable[[list[Any]], Sequence[Any]], avals: list[Any]) -> list[Any]:
        """All results are batched."""
        elements = [of_element(x) if m else x for x, m in zip(avals, self.mapped, strict=True)]
        return [of_batch(self.size, x) for x in inner(elements)]


@dataclasses.dataclass(frozen=True)
class Transposed:
    """From a function that is linear in some arguments to that from cotangents to cotangents.

    Args:
        linear: for each argument whether the function is linear in it. Cotangents of the results
            follow the others.
        types: the types of the linear arguments.
    """

    linear: tuple[bool, ...]
    types: tuple[Any, ...]

    def function(self, inner: Flat) -> Flat:
        """The cotangents of the linear arguments."""
        n = self.linear.count(False)

        def transposed(args: list[Any]) -> list[Any]:
            def of_linear(*values: Any) -> list[Any]:
                known, rest = iter(args[:n]), iter(values)
                return inner([next(rest) if yes else next(known) for yes in self.linear])

            types = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in self.types]
            return list(jax.linear_transpose(of_linear, *types)(args[n:]))

        return transposed

    def avals(self, inner: Callable[[list[Any]], Sequence[Any]], avals: list[Any]) -> list[Any]:
        """Cotangents have the types of what they belong to."""
        return list(self.types)


@dataclasses.dataclass(frozen=True)
class Program:
    """A call through the boundary, without its arrays; two that are equal do the same.

    Args:
        key: what its static leaves are compared by.
        static: the leaves of function, arguments, keyword arguments, with a mark for each array.
        treedef: the structure of these.
        abstract: what says what the function returns; `None` if the function itself does. Then
            it is among the leaves, and otherwise its leaves are.
        steps: what to derive from the function.
    """

    key: tuple[Any, ...]
    static: tuple[Any, ...] = dataclasses.field(compare=False)
    treedef: Any
    abstract: Any
    steps: tuple[Derivation, ...]

    def __repr__(self) -> str:
        return "..."

    def then(self, step: Derivation) -> "Program":
        """The program with another step."""
        return dataclasses.replace(self, steps=(*self.steps, step))

    def base(self, call: Callable[..., Any], outputs: list[Output] | None = None) -> Flat:
        """The function that everything is derived from.

        Args:
            call: how the function is called: takes the three trees.
            outputs: where to put what its output is.
        """

        def function(arrays: list[Any]) -> list[Any]:
            returned = split(call(*fill(self.static, self.treedef, arrays)), is_array)
            if outputs is not None:
                outputs.append(Output(returned.treedef, returned.static))
            return returned.arrays

        return function

    def function(self, call: Callable[..., Any]) -> Flat:
        """The function of arrays."""
        return functools.reduce(lambda f, step: step.function(f), self.steps, self.base(call))

    def signature(self, avals: list[Any]) -> Signature:
        """What it returns for arguments of these types.

        Raises:
            StaticError: if there is a leaf without a hash.
        """
        try:
            hash(self)
        except TypeError as error:
            raise StaticError(
                "A function that `noinline` made is compiled for the leaves of its arguments that "
                f"are no arrays, and these have to be hashable: {error}. The leaves are "
                f"{[x for x in self.static if x is not ARRAY]}."
            ) from error
        weak = [getattr(x, "weak_type", False) for x in avals]
        avals = [x.update(weak_type=False) if w else x for x, w in zip(avals, weak, strict=True)]
        return _signature(self, tuple(avals), _jax.trace_context())


@functools.lru_cache(2048)
def _signature(program: Program, avals: tuple[Any, ...], context: Any) -> Signature:
    if program.steps:
        inner = dataclasses.replace(program, steps=program.steps[:-1])
        outputs: list[Output] = []

        def of_inner(avals: list[Any]) -> Sequence[Any]:
            found = inner.signature(avals)
            outputs.append(found.output)
            return found.avals

        found = program.steps[-1].avals(of_inner, list(avals))
        return Signature(tuple(found), outputs[0] if outputs else Output(None, ()))
    if program.abstract is None:
        call = lambda fn, args, kwargs: fn(*args, **kwargs)  # noqa: E731
    else:
        call = lambda leaves, args, kwargs: program.abstract(leaves, *args, **kwargs)  # noqa: E731
    outputs = []
    traced = jax.make_jaxpr(lambda *args: program.base(call, outputs)(list(args)))(*avals)
    if any(isinstance(x, _jax.Tracer) for x in traced.consts):
        raise RuleError(
            "A function that `noinline` made uses a traced value that is none of its arguments: it "
            "closes over a value of the function around it, which is being transformed. Make that "
            "an argument."
        )
    strong = [x.update(weak_type=False) for x in traced.out_avals]
    return Signature(tuple(strong), outputs[-1])
