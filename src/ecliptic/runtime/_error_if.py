"""`error_if` and `branched_error_if`: a program that fails where something is wrong with its data.

What is checked goes through the check: the result of the check decides, in a way that the compiler
cannot see through, whether the values are used. So the check is done if they are, and derivatives
go through it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_flatten, tree_leaves, tree_map
from jaxtyping import ArrayLike, Bool, Int, PyTree

from ecliptic import _jax
from ecliptic._jax._check import tell
from ecliptic._jax._varying import vary_alike
from ecliptic.errors import (
    ArgumentError,
    ArgumentTypeError,
    EclipticWarning,
    RuntimeCheckError,
    TracetimeCheckError,
)
from ecliptic.module._warning import warn
from ecliptic.primitive import unvmap_any
from ecliptic.runtime._active import where_it_counts
from ecliptic.runtime._mode import Mode, OnError, breakpoint_frames, mode_of
from ecliptic.runtime._report import CheckReport, user_places
from ecliptic.transform import tell_failure
from ecliptic.tree import is_array

_T = TypeVar("_T", bound=PyTree)


def error_if(x: _T, pred: Bool[ArrayLike, "..."], msg: str, *, on_error: OnError = "default") -> _T:
    """Returns `x`, and fails if `pred` is true.

    The check is a part of the program: use what is returned in place of `x`. Where the result is
    not used, the check is left out, as JAX leaves out whatever is not used.

    Args:
        x: what must not be used if the check fails: any PyTree with an array in it.
        pred: what must not be: a boolean, or an array of them of any shape, none of which may be
            true. Under `jax.vmap` there may be another one for each element. In a loop or branch of
            Ecliptic's it counts only for the elements for which that is run, though JAX computes it
            for all of them.
        msg: what to say.
        on_error: what to do. `"raise"` raises an error; `"breakpoint"` opens a debugger
            ([`jax.debug.breakpoint`](https://docs.jax.dev/en/latest/debugging/index.html)) and
            then raises it; `"nan"` makes NaN of all floating-point arrays in `x`, for the failed
            elements of a `jax.vmap`, and goes on; `"off"` does nothing, and costs nothing.
            `"default"`: what [`on_error`][ecliptic.runtime.on_error] says, or else the environment
            variable `ECLIPTIC_ON_ERROR` at the time of tracing, or else `"raise"`.

    Returns:
        `x`.

    Raises:
        RuntimeCheckError: if `pred` is true; from a call of a function that `filter_jit` compiled,
            and outside of any program. Under a plain `jax.jit` as well, there or where the result
            is waited for; but on Python 3.11 JAX raises an error of its own with the same text in
            it, if it runs the program in another thread: see
            [`converted_errors`][ecliptic.runtime.converted_errors].
        TracetimeCheckError: a subclass of it, if `pred` is known to be true while the program is
            traced.
        ArgumentTypeError: if `pred` holds no booleans, or `msg` is no string.
        ArgumentError: if there is no array in `x`, or no such mode.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> from ecliptic.runtime import error_if
        >>> @ec.filter_jit
        ... def root(x):
        ...     x = error_if(x, x < 0, "there is no real root of a negative number")
        ...     return jnp.sqrt(x)
        >>> print(root(jnp.array(4.0)))
        2.0
        >>> try:
        ...     root(jnp.array(-4.0))
        ... except ec.errors.RuntimeCheckError as error:
        ...     print(str(error).splitlines()[0])
        there is no real root of a negative number
    """
    mode = mode_of(on_error)
    if mode == "off":
        return x
    return _checked(x, pred, 0, (msg,), mode)


def branched_error_if(
    x: _T,
    pred: Bool[ArrayLike, "..."],
    index: Int[ArrayLike, "..."],
    msgs: Sequence[str],
    *,
    on_error: OnError = "default",
) -> _T:
    """Returns `x`, and fails if `pred` is true, with one of several messages.

    As [`error_if`][]; which message it is may depend on values in the program.

    Args:
        x: what must not be used if the check fails.
        pred: what must not be: booleans.
        index: the number of the message: an integer, or an array of them that fits the shape of
            `pred`, a message for each.
        msgs: the messages, at least one.
        on_error: what to do, see `error_if`.

    Returns:
        `x`.

    Raises:
        RuntimeCheckError: if `pred` is true.
        ArgumentTypeError: if `pred`, `index` or `msgs` hold something else than booleans, integers
            and strings.
        ArgumentError: if there is no message, or no array in `x`, or no such mode, or if the shape
            of `index` does not fit.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> from ecliptic.runtime import branched_error_if
        >>> @ec.filter_jit
        ... def inside(x):
        ...     far = jnp.abs(x) > 1
        ...     return branched_error_if(x, far, (x > 0).astype(int), ["too low", "too high"])
        >>> try:
        ...     inside(jnp.array(3.0))
        ... except ec.errors.RuntimeCheckError as error:
        ...     print(str(error).splitlines()[0])
        too high
    """
    mode = mode_of(on_error)
    if mode == "off":
        return x
    return _checked(x, pred, index, tuple(msgs), mode)


def _checked(x: Any, pred: Any, index: Any, messages: tuple[str, ...], mode: Mode) -> Any:
    pred, index = _booleans(pred), _integers(index)
    if not messages:
        raise ArgumentError("A check needs a message to fail with; got none.")
    for message in messages:
        if not isinstance(message, str):
            raise ArgumentTypeError(
                f"The message of a check is a string; got {message!r} of type "
                f"`{type(message).__qualname__}`."
            )
    _check_shapes(pred, index)
    known = not isinstance(pred, _jax.Tracer)
    if known and not np.asarray(pred).any():
        return x
    report = CheckReport(messages, user_places())
    if known and mode == "nan" and not _jax.trace_state_clean():
        warn(
            f"A check fails whatever the data are, for its condition is true where the program is "
            f'traced. By the mode "nan", its result is NaN. The check says: {" / ".join(messages)}',
            EclipticWarning,
        )
    elif known and not isinstance(index, _jax.Tracer) and mode != "nan":
        _fail_now(report, pred, index, mode)
    return stop_if(x, where_it_counts(pred), index, report, mode)


def _fail_now(report: CheckReport, pred: Any, index: Any, mode: Mode) -> None:
    # Where a program is traced, an operation on an array gives no value.
    running = isinstance(pred, jax.Array) and not isinstance(pred | False, _jax.Tracer)
    kind = RuntimeCheckError if running else TracetimeCheckError
    # (Its traceback tells the calls that led here.)
    report = dataclasses.replace(report, places=report.places[-1:])
    error = report.error(np.asarray(pred), np.asarray(index), 0, kind)
    tell_failure()
    if mode == "breakpoint" and running:
        jax.debug.breakpoint(num_frames=breakpoint_frames())
    raise error


def stop_if(x: Any, pred: Any, index: Any, report: CheckReport, mode: Mode) -> Any:
    """Returns `x`, and fails or makes NaN of it where an element of `pred` is true."""
    if mode == "nan":
        bad = jnp.any(pred)
        return tree_map(lambda leaf: _poison(leaf, bad) if is_array(leaf) else leaf, x)
    if not any(map(is_array, tree_leaves(x))):
        raise ArgumentError(
            "The first argument of a check holds what must not be used if it fails, so there has "
            f"to be an array in it; got {x!r}. Give it an array that the program goes on to use."
        )
    if mode == "breakpoint":
        pred = _with_breakpoint(pred)
    leaves, treedef = tree_flatten(x)
    traced = [
        i for i, leaf in enumerate(leaves) if is_array(leaf) and leaf.dtype != jax.dtypes.float0
    ]
    guarded = _guarded([jnp.asarray(leaves[i]) for i in traced], pred, index, report)
    for i, array in zip(traced, guarded, strict=True):
        leaves[i] = array
    return treedef.unflatten(leaves)


def _guarded(arrays: list[Any], pred: Any, index: Any, report: CheckReport) -> list[Any]:
    """The arrays, such that they cannot be had if an element of `pred` is true."""
    pred, *arrays = vary_alike([jnp.asarray(pred), *arrays])
    any_bad = unvmap_any(pred)
    if not isinstance(any_bad, _jax.Tracer):
        # Under a `jax.vmap` that is not compiled: everything is known here.
        if np.asarray(any_bad):
            tell(pred, jnp.asarray(index), report)
        return arrays

    def stop(arrays: list[Any]) -> list[Any]:
        fine = tell(pred, jnp.asarray(index), report)
        return [_only_if(fine, array) for array in arrays]

    # All goes through the branch: on a CPU that is much faster than to choose behind it.
    return jax.lax.cond(any_bad, stop, lambda arrays: arrays, arrays)


def _with_breakpoint(pred: Any) -> Any:
    frames = breakpoint_frames()

    def stop(bad: Any) -> Any:
        return jax.debug.breakpoint(num_frames=frames, token=bad)

    any_bad = unvmap_any(pred)
    # After the debugger: what is checked next needs the result.
    return jnp.logical_and(pred, jax.lax.cond(any_bad, stop, lambda bad: bad, any_bad))


def _only_if(fine: Any, array: Any) -> Any:
    """An array that cannot be had without the boolean."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        data = _only_if(fine, jax.random.key_data(array))
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(array))
    return jax.lax.select(fine, array, jnp.zeros_like(array))


@jax.custom_jvp
def _or_nan(x: Any, bad: Any) -> Any:
    return jnp.where(bad, jnp.full_like(x, jnp.nan), x)


@_or_nan.defjvp
def _(primals: Any, tangents: Any) -> Any:
    x, bad = primals
    # Of a `where` the derivative were zero for what failed, and look like one.
    factor = jnp.where(bad, jnp.nan, 1).astype(tangents[0].dtype)
    return _or_nan(x, bad), tangents[0] * factor


def _poison(leaf: Any, bad: Any) -> Any:
    return _or_nan(jnp.asarray(leaf), bad) if jnp.issubdtype(leaf.dtype, jnp.inexact) else leaf


def _booleans(pred: Any) -> Any:
    pred = pred if isinstance(pred, jax.Array) else np.asarray(pred)
    if pred.dtype == bool:
        return pred
    if jnp.issubdtype(pred.dtype, jnp.integer):
        return pred != 0
    raise ArgumentTypeError(
        f"The condition of a check is a boolean, or an array of them; got one of dtype "
        f"{pred.dtype}. Compare it with something, such as `x < 0`."
    )


def _integers(index: Any) -> Any:
    index = index if isinstance(index, jax.Array) else np.asarray(index)
    if not jnp.issubdtype(index.dtype, jnp.integer) and index.dtype != bool:
        raise ArgumentTypeError(
            f"The index of a message is an integer, or an array of them; got one of dtype "
            f"{index.dtype}."
        )
    return index.astype(np.int32)


def _check_shapes(pred: Any, index: Any) -> None:
    try:
        fits = np.broadcast_shapes(pred.shape, index.shape) == pred.shape
    except ValueError:
        fits = False
    if not fits:
        raise ArgumentError(
            f"There is one index for all of the condition, or one for each of its elements; the "
            f"shape of the condition is {pred.shape} and that of the index {index.shape}."
        )
