"""Vectorised primitives: operations of JAX that need no rule of their own for `jax.vmap`.

A batch of such an operation is an operation too. Each of its rules is the rule for one element,
under `jax.vmap`; a batch of batches comes about in the same way.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ecliptic import _jax
from ecliptic._jax._define import define, of_batch, of_element
from ecliptic.primitive._filtered import is_zero
from ecliptic.primitive._registry import primitive_finalisations, register_impl_finalisation

Rule = Callable[..., Any]


def create_vprim(
    name: str, impl: Rule, abstract_eval: Rule, jvp: Rule | None, transpose: Rule | None
) -> Any:
    """Makes a primitive with several results that can be batched in any way.

    A batch of it is an operation too, so that derivatives of batches and batches of derivatives are
    what the rules say, and never derivatives of what the implementation consists of.

    Args:
        name: what programs call it.
        impl: what it does, in terms of other operations: takes arrays, and the parameters by name,
            and returns a list of arrays.
        abstract_eval: takes and returns a `jax.core.ShapedArray` in place of each.
        jvp: takes a list of arrays and one of their tangents, which are
            `jax.interpreters.ad.Zero` where they are zero, and returns results and their tangents.
            `None` if it has no derivative.
        transpose: takes cotangents of the results, then the arguments, with a
            `jax.interpreters.ad.UndefinedPrimal` in place of each that it is to be transposed with
            respect to; returns a cotangent for each argument, or `None`. `None` if it is not
            linear. The adapters for filtered primitives make all four of rules for trees.

    Returns:
        The primitive, a `jax.extend.core.Primitive`. It lowers to its implementation, which is also
        what it becomes when a program is finalised.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import ecliptic.primitive as exp
        >>> def sort(x):
        ...     return [jnp.sort(x)]
        >>> def sorted_like(x):
        ...     return [x]
        >>> def tangents(primals, tangents):
        ...     order = jnp.argsort(primals[0])
        ...     return sort_p.bind(*primals), [tangents[0][order]]
        >>> sort_p = exp.create_vprim("my_sort", sort, sorted_like, tangents, None)
        >>> x = jnp.array([[3.0, 1.0], [2.0, 4.0]])
        >>> print(jax.vmap(sort_p.bind)(x)[0])
        [[1. 3.]
         [2. 4.]]
        >>> print(jax.jvp(jax.vmap(sort_p.bind), (x,), (x,))[1][0])
        [[1. 3.]
         [2. 4.]]
    """
    primitive = _make(_Rules(name, impl, abstract_eval, jvp, transpose))
    register_impl_finalisation(primitive)
    return primitive


class _Rules(NamedTuple):
    """All that there is to say of an operation; see `create_vprim`."""

    name: str
    impl: Rule
    abstract: Rule
    jvp: Rule | None
    transpose: Rule | None


class _Batch(NamedTuple):
    """How an operation is batched.

    Args:
        mapped: for each argument, whether it has another value for each element.
        axis_name: the name of the axis.
        spmd_axis_name: the axes of a mesh that it is spread over.
    """

    mapped: tuple[bool, ...]
    axis_name: Any
    spmd_axis_name: Any

    def vmap(self, function: Rule, *mapped: Sequence[bool]) -> Rule:
        """The function for all elements, given for each argument which of its items are mapped."""
        return jax.vmap(
            function,
            in_axes=tuple([0 if m else None for m in items] for items in mapped),
            axis_name=self.axis_name,
            spmd_axis_name=self.spmd_axis_name,
        )


def _make(rules: _Rules) -> Any:
    primitive = _jax.Primitive(rules.name)
    primitive.multiple_results = True
    # An operation for each way of batching that was met. The size of a batch is not part of that.
    batched: dict[_Batch, Any] = {}

    def run(*args: Any, **params: Any) -> list[Any]:
        return list(rules.impl(*args, **params))

    def batch(data: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        if all(d is None for d in dims):
            # JAX asks here for what is the same for all elements, too.
            out = primitive.bind(*args, **params)
            return out, [None] * len(out)
        way = _Batch(tuple(d is not None for d in dims), data.name, data.spmd_name)
        if way not in batched:
            batched[way] = _make(_batched(rules, way))
            primitive_finalisations[batched[way]] = _batched_finalisation(primitive, way)
        args = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
        out = batched[way].bind(*args, **params)
        return out, [0] * len(out)

    define(
        primitive, run, rules.abstract, eager=run,
        jvp=rules.jvp, transpose=rules.transpose, batch_axis=batch,
    )  # fmt: skip
    return primitive


def _batched_finalisation(primitive: Any, way: _Batch) -> Rule:
    def rule(*args: Any, **params: Any) -> Any:
        one = primitive_finalisations[primitive]
        return way.vmap(lambda args: list(one(*args, **params)), way.mapped)(list(args))

    return rule


def _batched(rules: _Rules, way: _Batch) -> _Rules:
    def impl(*args: Any, **params: Any) -> list[Any]:
        return way.vmap(lambda args: list(rules.impl(*args, **params)), way.mapped)(list(args))

    def abstract(*args: Any, **params: Any) -> list[Any]:
        size = next(x.shape[0] for x, m in zip(args, way.mapped, strict=True) if m)
        out = rules.abstract(*_elements(args, way), **params)
        return [of_batch(size, x) for x in out]

    return _Rules(
        rules.name,
        impl,
        abstract,
        None if rules.jvp is None else _batched_jvp(rules.jvp, way),
        None if rules.transpose is None else _batched_transpose(rules.transpose, way),
    )


def _elements(avals: Sequence[Any], way: _Batch) -> list[Any]:
    return [of_element(x) if m else x for x, m in zip(avals, way.mapped, strict=True)]


def _batched_jvp(jvp: Rule, way: _Batch) -> Rule:
    def batched(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        some = _Some(tangents)
        zeros: list[_Some] = []

        def one(primals: list[Any], arrays: list[Any]) -> Any:
            zero = [_jax.Zero(jax.typeof(x).to_tangent_aval()) for x in primals]
            out, t_out = jvp(primals, some.fill(arrays, zero), **params)
            zeros.append(_Some(t_out))
            return list(out), zeros[-1].arrays

        call = way.vmap(one, way.mapped, some.pick(way.mapped))
        out, arrays = call(list(primals), some.arrays)
        zero = [_jax.Zero(jax.typeof(x).to_tangent_aval()) for x in out]
        return out, zeros[-1].fill(arrays, zero)

    return batched


def _batched_transpose(transpose: Rule, way: _Batch) -> Rule:
    def batched(cotangents: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
        some = _Some(cotangents)
        absent = [of_element(ct.aval) if is_zero(ct) else None for ct in cotangents]
        linear = [_jax.is_undefined_primal(x) for x in args]
        undefined = [
            _jax.UndefinedPrimal(of_element(x.aval) if m else x.aval) if yes else None
            for x, m, yes in zip(args, way.mapped, linear, strict=True)
        ]
        zeros: list[_Some] = []

        def one(arrays: list[Any], known: list[Any]) -> Any:
            rest = iter(known)
            inputs = [next(rest) if x is None else x for x in undefined]
            cts = some.fill(arrays, [None if x is None else _jax.Zero(x) for x in absent])
            found = transpose(cts, *inputs, **params)
            # What is known has no cotangent, whatever the rule says.
            zeros.append(_Some([ct if x else None for ct, x in zip(found, linear, strict=True)]))
            return zeros[-1].arrays

        known = [(x, m) for x, m, yes in zip(args, way.mapped, linear, strict=True) if not yes]
        call = way.vmap(one, [True] * len(some.arrays), [m for _, m in known])
        arrays = call(some.arrays, [x for x, _ in known])
        # An argument that all elements share gets the sum of what they say.
        mapped = zeros[-1].pick(way.mapped)
        arrays = [x if m else jnp.sum(x, 0) for x, m in zip(arrays, mapped, strict=True)]
        return zeros[-1].fill(arrays, [None] * len(args))

    return batched


class _Some:
    """A list in which some items are not there, or known to be zero.

    Args:
        items: the list.
    """

    def __init__(self, items: Sequence[Any]) -> None:
        self.there = [not (x is None or is_zero(x)) for x in items]
        self.arrays = self.pick(items)

    def pick(self, items: Sequence[Any]) -> list[Any]:
        """Those of another list in the places of what is there."""
        return [x for x, yes in zip(items, self.there, strict=True) if yes]

    def fill(self, arrays: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """The list with these arrays, and others in place of what is not there."""
        rest = iter(arrays)
        return [next(rest) if yes else x for x, yes in zip(others, self.there, strict=True)]
