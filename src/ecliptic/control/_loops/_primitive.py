"""The loop as an operation of JAX, which every transformation has a rule for.

There are four operations:

- `loop` runs a loop, by `jax.lax.while_loop`. Its derivative is `save` and `tangent`.
- `save` runs the loop and keeps some states.
- `tangent` is linear in its last arguments: from tangents of constants and first state to those of
  the last state. Its transpose is `sweep`.
- `sweep` takes cotangents of the last state to those of constants and first state.

`save` and `sweep` are operations of their own for the sake of `jax.vmap`: a batch of loops goes
through them step by step together, so that counters and indices are the same for all its elements.
Everything else takes them for what they consist of, which is `loop` again. That is how derivatives
of any order come about, in any order of forward and reverse mode.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten, tree_leaves, tree_map, tree_structure

from ecliptic import _jax
from ecliptic._jax._define import define, no_tangent
from ecliptic.control._loops._dependence import spread
from ecliptic.control._loops._loop import Arrays, Axis, Loop
from ecliptic.control._loops._pullback import Pullback, pullback
from ecliptic.control._loops._schedule import Plan, Slots
from ecliptic.control._loops._sweep import Saved, save, sweep


def bind(loop: Loop, consts: Arrays, init: Arrays) -> Arrays:
    """Runs a loop, as an operation."""
    return _loop_primitive().bind(*consts, *init, loop=loop, split=len(consts))


@functools.cache
def _loop_primitive() -> Any:
    primitive = _primitive("checkpointed_loop")

    def run(*args: Any, loop: Loop, split: int) -> Arrays:
        return loop.run(list(args[:split]), list(args[split:]))

    def abstract(*args: Any, loop: Loop, split: int) -> Arrays:
        return list(args[split:])

    def batch(
        data: Any, args: Sequence[Any], dims: Sequence[Any], *, loop: Loop, split: int
    ) -> tuple[Any, Any]:
        axis = Axis.of(data)
        made, consts, init, mapped = _batched_loop(loop, axis, args, dims, split)
        return bind(made, consts, init), _dims(mapped)

    define(primitive, run, abstract, jvp=_loop_jvp, batch_axis=batch)
    return primitive


def _loop_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, loop: Loop, split: int
) -> tuple[Arrays, Arrays]:
    consts, init = list(primals[:split]), list(primals[split:])
    nonzero = {i for i, t in enumerate(tangents) if type(t) is not _jax.Zero}
    pc, ps, depends = loop.perturbed(consts, init, nonzero)
    if not ps:
        out = bind(loop, consts, init)
        return out, [no_tangent(x) for x in out]
    cut = loop.cut
    # Elements of a batch that was there before go together from here on: the body sees to them.
    loop = dataclasses.replace(loop, lanes=None)
    last, saved = _save(loop, cut, consts, init)
    held = [x for x, is_buffer in zip(last, loop.buffers, strict=True) if is_buffer]
    linear = (
        [_jax.instantiate_zeros(tangents[i]) for i in pc],
        [_jax.instantiate_zeros(tangents[i + split]) for i in ps],
    )
    known = (consts, init, held, saved)
    some = _tangent(loop, (tuple(pc), tuple(ps)), depends, cut, known, linear)
    out = [no_tangent(x) for x in last]
    for i, tangent in zip(ps, some, strict=True):
        out[i] = tangent
    return last, out


def _save(loop: Loop, cut: Plan, consts: Arrays, init: Arrays) -> tuple[Arrays, Saved]:
    tree = _save_tree(cut, loop, len(init))
    flat = _save_primitive().bind(*consts, *init, loop=loop, cut=cut, split=len(consts))
    return tree.unflatten(flat)


def _save_tree(cut: Plan, loop: Loop, n: int) -> Any:
    slots: Any = None if cut.covers else Slots(*[0] * 7)  # pyright: ignore
    states: list[Any] = [0] * loop.buffers.count(False)
    return tree_structure(([0] * n, Saved(0, states, slots)))  # pyright: ignore


@functools.cache
def _save_primitive() -> Any:
    def run(*args: Any, loop: Loop, cut: Plan, split: int) -> Arrays:
        return tree_leaves(save(bind, loop, cut, list(args[:split]), list(args[split:])))

    def batch(
        data: Any, args: Sequence[Any], dims: Sequence[Any], *, loop: Loop, cut: Plan, split: int
    ) -> tuple[Any, Any]:
        axis = Axis.of(data)
        made, consts, init, mapped = _batched_loop(loop, axis, args, dims, split)
        out, saved = _save(made, cut, consts, init)
        rest = [m for m, is_buffer in zip(mapped, loop.buffers, strict=True) if not is_buffer]
        own = made.lanes is not None
        none = [None] * len(tree_leaves(saved.slots))
        flat_dims = [
            *_dims(mapped), 0 if own else None, *(1 if m else None for m in rest), *none
        ]  # fmt: skip
        return tree_leaves((out, saved)), flat_dims

    return _inlined("checkpointed_loop_save", run, batch)


def _tangent(
    loop: Loop,
    perturbed: tuple[tuple[int, ...], tuple[int, ...]],
    depends: list[set[int]],
    cut: Plan,
    known: tuple[Arrays, Arrays, Arrays, Saved],
    linear: tuple[Arrays, Arrays],
) -> Arrays:
    flat, tree = tree_flatten((known, linear))
    return _tangent_primitive().bind(
        *flat, loop=loop, perturbed=perturbed, depends=tuple(map(frozenset, depends)), cut=cut,
        tree=tree,
    )  # fmt: skip


@functools.cache
def _tangent_primitive() -> Any:
    primitive = _primitive("checkpointed_loop_tangent")

    def run(*args: Any, loop: Loop, perturbed: Any, tree: Any, **_: Any) -> Arrays:
        (consts, init, _, _), (some_c, some_s) = tree.unflatten(args)
        pc, ps = perturbed
        n = (len(consts), len(init))
        both = loop.with_tangents(list(pc), list(ps), n)
        return bind(both, consts + some_c, init + some_s)[len(init) :]

    def abstract(*args: Any, tree: Any, **_: Any) -> Arrays:
        return tree.unflatten(args)[1][1]

    def transpose(
        cts: Any, *args: Any, loop: Loop, perturbed: Any, depends: Any, cut: Plan, tree: Any
    ) -> Sequence[Any]:
        (consts, init, held, saved), linear = tree.unflatten(args)
        pc, ps = perturbed
        swept = _reached_backwards(ps, cts, depends)
        cts = [_jax.instantiate_zeros(ct) for i, ct in zip(ps, cts, strict=True) if i in swept]
        pieces = pullback(loop, (pc, swept), consts, init)
        of_consts, of_state = _sweep(pieces, cut, (consts, held, saved, cts), pc)
        found = dict(zip(swept, of_state, strict=True))
        out = [
            ct if _jax.is_undefined_primal(x) else None
            for x, ct in zip(
                [*linear[0], *linear[1]], [*of_consts, *map(found.get, ps)], strict=True
            )
        ]
        return [*([None] * (len(args) - len(out))), *out]

    def batch(args: Any, dims: Any, **params: Any) -> tuple[Any, Any]:
        out = jax.vmap(lambda *args: run(*args, **params), in_axes=tuple(dims), out_axes=0)(*args)
        return out, [0] * len(out)

    define(
        primitive, run, abstract, jvp=_by_jvp_of(run), transpose=transpose, batch=batch
    )  # fmt: skip
    return primitive


def _reached_backwards(
    ps: Sequence[int], cts: Sequence[Any], depends: Sequence[Iterable[int]]
) -> list[int]:
    """The parts of the state that have a cotangent in some step, of those that have a tangent.

    Args:
        ps: the parts with a tangent.
        cts: their cotangents after the last step.
        depends: for each part of the state, which parts it depends on.
    """
    start = {i for i, ct in zip(ps, cts, strict=True) if type(ct) is not _jax.Zero}
    feeds: list[set[int]] = [set() for _ in depends]
    for i, on in enumerate(depends):
        for position in on:
            feeds[position].add(i)
    return sorted(spread(start, feeds, set()).intersection(ps))


def _sweep(
    pieces: Pullback,
    cut: Plan,
    operands: tuple[Arrays, Arrays, Saved, Arrays],
    perturbed: Sequence[int],
) -> tuple[Arrays, Arrays]:
    example = [jax.typeof(operands[0][i]) for i in perturbed]
    example = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in example)
    return _bind_sweep(pieces, cut, operands, example)


def _bind_sweep(
    pieces: Pullback, cut: Plan, operands: Any, example: tuple[Any, ...]
) -> tuple[Arrays, Arrays]:
    flat, tree = tree_flatten(operands)
    out = _sweep_primitive().bind(*flat, pieces=pieces, cut=cut, example=example, tree=tree)
    return out[: len(example)], out[len(example) :]


@functools.cache
def _sweep_primitive() -> Any:
    def run(*args: Any, pieces: Pullback, cut: Plan, example: Any, tree: Any) -> Arrays:
        of_consts, of_state = sweep(bind, pieces, cut, list(example), tree.unflatten(args))
        return [*of_consts, *of_state]

    def batch(
        data: Any,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        pieces: Pullback,
        cut: Plan,
        example: Any,
        tree: Any,
    ) -> tuple[Any, Any]:
        axis = Axis.of(data)
        consts, held, saved, cts = tree.unflatten(list(zip(args, dims, strict=True)))
        # A tree of pairs: each operand with its axis.
        masked = saved.taken[1] is not None
        made = pieces.batched(
            axis, [d is not None for _, d in consts], [d is not None for _, d in held],
            masked=masked,
        )  # fmt: skip
        operands = (
            [_to(x, d, 0) for x, d in consts],
            [_to(x, d, 0) for x, d in held],
            Saved(
                _to(saved.taken[0], saved.taken[1], 0),
                [_everywhere(x, d, 1, axis.size) for x, d in saved.states],
                _together(saved.slots),
            ),
            [_everywhere(x, d, 0, axis.size) for x, d in cts],
        )
        example = tuple(jax.ShapeDtypeStruct((axis.size, *x.shape), x.dtype) for x in example)
        of_consts, of_state = _bind_sweep(made, cut, operands, example)
        out = [*of_consts, *of_state]
        return out, [0] * len(out)

    return _inlined("checkpointed_loop_sweep", run, batch)


def _primitive(name: str) -> Any:
    primitive = _jax.Primitive(name)
    primitive.multiple_results = True
    return primitive


def _inlined(name: str, run: Callable[..., Any], batch: Callable[..., Any]) -> Any:
    """An operation that is what it consists of, except under `jax.vmap`."""
    primitive = _primitive(name)

    def abstract(*args: Any, **params: Any) -> Arrays:
        described = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args]
        return jax.make_jaxpr(lambda *args: run(*args, **params))(*described).out_avals

    define(primitive, run, abstract, jvp=_by_jvp_of(run), batch_axis=batch)
    return primitive


def _by_jvp_of(run: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative of an operation, as that of what it consists of."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        moving = [i for i, t in enumerate(tangents) if type(t) is not _jax.Zero]

        def function(*some: Any) -> Any:
            args = list(primals)
            for i, x in zip(moving, some, strict=True):
                args[i] = x
            return run(*args, **params)

        return jax.jvp(
            function, [primals[i] for i in moving], [tangents[i] for i in moving]
        )  # fmt: skip

    return jvp


def _batched_loop(
    loop: Loop, axis: Axis, args: Sequence[Any], dims: Sequence[Any], split: int
) -> tuple[Loop, Arrays, Arrays, list[bool]]:
    """The loop for a batch, its constants and state, and which parts of the state are mapped."""
    mapped = [d is not None for d in dims]
    elements = [_element(x, d) for x, d in zip(args, dims, strict=True)]
    made, reached = loop.batched(
        axis, elements[:split], elements[split:], (mapped[:split], mapped[split:])
    )
    moved = [_to(x, d, 0) for x, d in zip(args, dims, strict=True)]
    init = [
        _everywhere(x, 0 if is_mapped else None, 0, axis.size) if reach else x
        for x, is_mapped, reach in zip(moved[split:], mapped[split:], reached, strict=True)
    ]
    return made, moved[:split], init, reached


def _element(x: Any, dim: int | None) -> Any:
    aval = jax.typeof(x)
    shape = aval.shape
    if dim is not None:
        shape = (*shape[:dim], *shape[dim + 1 :])
    weak = getattr(aval, "weak_type", False)
    return jax.ShapeDtypeStruct(shape, aval.dtype, weak_type=weak)


def _dims(mapped: Sequence[bool]) -> list[int | None]:
    return [0 if is_mapped else None for is_mapped in mapped]


def _to(x: Any, dim: int | None, place: int) -> Any:
    return x if dim is None else jnp.moveaxis(x, dim, place)


def _everywhere(x: Any, dim: int | None, place: int, size: int) -> Any:
    """The array with the batch's axis in a place, made if it has none."""
    if dim is not None:
        return jnp.moveaxis(x, dim, place)
    x = jnp.expand_dims(x, place)
    return jnp.broadcast_to(x, (*x.shape[:place], size, *x.shape[place + 1 :]))


def _together(slots: Any) -> Any:
    """What is known of the slots, which is the same for all elements."""
    return tree_map(
        lambda pair: pair[0] if pair[1] is None else jnp.take(pair[0], 0, axis=pair[1]),
        slots,
        is_leaf=lambda x: type(x) is tuple,
    )
