"""The whole derivative between two lists of arrays, one block for each pair of them.

JAX's own Jacobians make one basis for all arrays, so these must have one dtype. Here each array
has its part of the basis in its own dtype.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ecliptic.transform._returned import Returned, Slot

# For each output, for each input: the derivative.
Blocks = list[list[Any]]


def rows_of(out: Returned, blocks: Blocks, inputs: list[Any]) -> list[list[Any] | None]:
    """The derivatives of each leaf of the output; None for what is no number."""
    rest = iter(blocks)
    rows: list[list[Any] | None] = []
    for slot in out.leaves or ():
        if type(slot) is not Slot or jnp.issubdtype(slot.dtype, jax.dtypes.prng_key):
            rows.append(None)
        elif slot.picked:
            rows.append(next(rest))
        else:
            rows.append([jnp.zeros((*slot.shape, *x.shape), slot.dtype) for x in inputs])
    return rows


def by_columns(fun: Callable[[list[Any]], Any], inputs: list[Any]) -> tuple[Blocks, Any]:
    """One column at a time, all of them by `jax.vmap`."""
    if not inputs:
        outs, aux = fun([])
        return [[] for _ in outs], aux

    def push(tangents: list[Any]) -> Any:
        _, slopes, aux = jax.jvp(fun, (inputs,), (tangents,), has_aux=True)
        return slopes, aux

    slopes, aux = jax.vmap(push, out_axes=(0, None))(_basis(inputs))
    return [
        [
            jnp.moveaxis(columns, 0, -1).reshape(*columns.shape[1:], *x.shape)
            for columns, x in zip(_split(slope, inputs), inputs, strict=True)
        ]
        for slope in slopes
    ], aux


def by_rows(fun: Callable[[list[Any]], Any], inputs: list[Any]) -> tuple[Blocks, Any]:
    """One row at a time, all of them by `jax.vmap`."""
    outs, pull, aux = jax.vjp(fun, inputs, has_aux=True)
    if not outs or not inputs:
        return [[] for _ in outs], aux
    (slopes,) = jax.vmap(pull)(_basis(outs))
    columns = [
        [
            rows.reshape(*out.shape, *x.shape)
            for rows, out in zip(_split(s, outs), outs, strict=True)
        ]
        for s, x in zip(slopes, inputs, strict=True)
    ]
    return [list(row) for row in zip(*columns, strict=True)], aux


def _basis(arrays: list[Any]) -> list[Any]:
    """The standard basis of the space of these arrays: its vectors lie along the first axis."""
    total = sum(math.prod(x.shape) for x in arrays)
    vectors, start = [], 0
    for x in arrays:
        size = math.prod(x.shape)
        block = jnp.eye(total, size, k=-start, dtype=jnp.result_type(x))
        vectors.append(block.reshape(total, *x.shape))
        start += size
    return vectors


def _split(stacked: Any, arrays: list[Any]) -> list[Any]:
    """What belongs to each of these arrays, along the first axis of what came of their basis."""
    if len(arrays) == 1:
        return [stacked]
    parts, start = [], 0
    for x in arrays:
        stop = start + math.prod(x.shape)
        parts.append(stacked[start:stop])
        start = stop
    return parts
