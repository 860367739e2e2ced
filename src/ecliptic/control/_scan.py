"""`filter_scan`: `jax.lax.scan` over any PyTree."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import jax.numpy as jnp
from jax.tree_util import tree_flatten_with_path

from ecliptic.control._carry import Split, loop_wording, show, with_promotion
from ecliptic.control._eager import run
from ecliptic.control._kind import Lent, ScanKind, buffer_flags, without_buffers
from ecliptic.control._metered import Measured, measured, scan_in_parts
from ecliptic.control._progress import AbstractProgress
from ecliptic.control._steps import Steps, pack_step, unpack_steps
from ecliptic.errors import ArgumentError, ArgumentTypeError
from ecliptic.tree import format_path, is_array

_Carry = TypeVar("_Carry")
_X = TypeVar("_X")
_Y = TypeVar("_Y")


def filter_scan(
    f: Callable[[_Carry, _X], tuple[_Carry, _Y]],
    init: _Carry,
    xs: _X = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    kind: Literal["lax", "checkpointed"] = "lax",
    checkpoints: int | None = None,
    buffers: Callable[[_Carry], Any] | None = None,
    progress: AbstractProgress[Any] | None = None,
) -> tuple[_Carry, _Y]:
    """Runs a function over the steps of a loop, carrying a value along: `jax.lax.scan`.

    The carry, the inputs and the outputs may be any PyTrees. Arrays are traced; everything else
    is held, and the function sees each tree whole: a Module with an activation function in it can
    be the carry. The function is traced once.

    - In the carry, what is no array stays as it is. A Python number may change, and is an array
      from the first step on then.
    - Arrays in `xs` are scanned along their first axis; everything else is the same in each step.
    - Arrays in the outputs are stacked; everything else comes back as it is.

    Args:
        f: a function of the carry and of one step's part of `xs`, which returns the new carry
            and the output of the step.
        init: the carry before the first step.
        xs: what is scanned over; None if there is nothing but the carry.
        length: the number of steps. Default: the length of the arrays in `xs`.
        reverse: whether to go from the last step to the first.
        unroll: how many steps are written out in one iteration of the compiled loop; `True` for
            all of them.
        _split_transpose: as in `jax.lax.scan`.
        kind: how the gradient is computed. `"lax"`: what it needs of each step is kept, as in JAX.
            `"checkpointed"`: a bounded number of states is, and steps in between run again.
        checkpoints: how many states a checkpointed scan keeps at once. Default: about twice the
            square root of the length, with which no step runs more than twice.
        buffers: a function from the carry to a node of it, or several: arrays that `f` only writes
            to and reads from at an index, as in [`filter_while_loop`][].
        progress: shows how far the loop is, for instance `TqdmProgress()`. The steps are done
            in parts, with a report after each, so that the steps themselves take no longer. The
            call waits until the loop is done, unless it is part of a compiled function.

    Returns:
        The carry after the last step, and the outputs.

    Raises:
        CarryError: if the function changes the carry's structure, a shape, a dtype, or anything
            that is no array. Lists every such leaf by path.
        ArgumentError: if arrays in `xs` differ in length from one another or from `length`, or
            nothing gives a length; or if `kind`, `checkpoints` and `buffers` do not go together.
        ArgumentTypeError: if `f` does not return a pair.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> mlp = ec.nn.MLP(2, 2, 8, 1, key=jax.random.key(0))
        >>> def step(carry, _):
        ...     model, x = carry
        ...     return (model, model(x)), x
        >>> (_, last), xs = ec.filter_scan(step, (mlp, jnp.ones(2)), length=5)
        >>> last.shape, xs.shape
        ((2,), (5, 2))
    """
    size = scan_length(xs, length, "filter_scan")
    how = ScanKind(kind, checkpoints, reverse, unroll, _split_transpose)
    how.check()
    return measured(
        "filter_scan",
        progress,
        (init, xs),
        lambda meter: run(_scan, (f, buffers), (init, xs, meter), (size, how)),
    )


def _scan(
    functions: tuple[Any, ...],
    trees: tuple[Any, ...],
    options: Any,
    learn: Callable[[frozenset[int]], None],
) -> Any:
    (f, buffers), (init, xs, meter) = functions, trees
    how: ScanKind
    size, how = options
    steps = Steps(xs)
    say = loop_wording("filter_scan")
    lent = Lent(init)

    def attempt(promoted: frozenset[int]) -> Any:
        carry = Split(lent.tree, promoted)

        def step(arrays: list[Any], inputs: list[Any]) -> Any:
            out = f(carry.enter(lent.inside(arrays, carry)), steps.take(inputs))
            if not isinstance(out, tuple | list) or len(out) != 2:
                raise ArgumentTypeError(
                    f"`filter_scan`: the function must return a pair, the new carry and the "
                    f"output of the step (None if there is none); it returned {show(out)}."
                )
            return carry.accept(without_buffers(out[0]), say), pack_step(out[1])

        flags = lent.flags(buffer_flags("filter_scan", carry, buffers), carry)
        if meter is None:
            after = None
            last, outputs = how.run(step, carry.arrays, steps.arrays, size, flags)
        else:
            (last, outputs), after = scan_in_parts(
                how, step, carry.arrays, steps.arrays, size, flags, meter
            )
        carry.finish()
        steps.finish()
        return Measured((lent.back(carry.merge(last)), unpack_steps(outputs, size)), after)

    return with_promotion(attempt, learn)


def scan_length(xs: Any, length: int | None, construct: str) -> int:
    """The number of steps of a construct; checks that all agree on it."""
    lengths: dict[str, int] = {}
    for path, leaf in tree_flatten_with_path(xs)[0]:
        if not is_array(leaf):
            continue
        name = format_path(path, "xs")
        if jnp.ndim(leaf) == 0:
            raise ArgumentError(
                f"`{construct}` scans arrays in `xs` along their first axis, and {name} has none: "
                f"it is {show(leaf)}. Close over it, or give it the axis."
            )
        lengths[name] = leaf.shape[0]
    if length is not None:
        length = int(length)
        wrong = {name: n for name, n in lengths.items() if n != length}
        if wrong:
            raise ArgumentError(
                f"`{construct}` got length={length}, but in `xs` there are other lengths: "
                f"{_listed(wrong)}."
            )
        return length
    if not lengths:
        raise ArgumentError(
            f"`{construct}` needs to know how many steps to take: there is no array in `xs`. Put "
            f"one there, or pass `length=` to `filter_scan`."
        )
    if len(set(lengths.values())) > 1:
        raise ArgumentError(
            f"`{construct}` scans all arrays in `xs` together, and their first axes differ: "
            f"{_listed(lengths)}."
        )
    return next(iter(lengths.values()))


def _listed(lengths: dict[str, int]) -> str:
    return ", ".join(f"{name} has {n}" for name, n in lengths.items())
