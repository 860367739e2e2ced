"""`filter_map` and `filter_associative_scan`: those of `jax.lax`, over any PyTree."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten, tree_flatten_with_path, tree_leaves, tree_map

from ecliptic import _jax
from ecliptic.control._carry import Split, loop_wording
from ecliptic.control._eager import run
from ecliptic.control._scan import filter_scan, scan_length
from ecliptic.errors import ArgumentError, LeafError
from ecliptic.transform import filter_vmap, if_array
from ecliptic.tree import format_path, is_array

_X = TypeVar("_X")
_Y = TypeVar("_Y")


def filter_map(f: Callable[[_X], _Y], xs: _X, *, batch_size: int | None = None) -> _Y:
    """Applies a function to each element along the first axis, one after the other: `jax.lax.map`.

    Inputs and outputs may be any PyTrees. Arrays in `xs` are taken apart and arrays in the outputs
    are stacked; everything else is the same for each element, and comes back as it is.

    Args:
        f: a function of one element of `xs`.
        xs: any PyTree with at least one array.
        batch_size: how many elements are done at a time, by `filter_vmap`. Default: one.

    Returns:
        The outputs.

    Raises:
        ArgumentError: if arrays in `xs` differ in length, or there are none; if `batch_size` is not
            positive.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> ec.filter_map(lambda x: (x["f"](x["a"]), "s"), {"a": jnp.arange(3), "f": jnp.square})
        (Array([0, 1, 4], dtype=int32), 's')
    """
    scan_length(xs, None, "filter_map")
    if batch_size is not None:
        if batch_size < 1:
            raise ArgumentError(f"`filter_map(batch_size=...)` must be positive; got {batch_size}.")
        _refuse_vmappable(xs)
    return run(_map, (f,), (xs,), batch_size)


def _map(functions: tuple[Any, ...], trees: tuple[Any, ...], batch_size: Any, learn: Any) -> Any:
    (f,), (xs,) = functions, trees
    if batch_size is None:
        return filter_scan(lambda _, x: (None, f(x)), None, xs)[1]
    size = scan_length(xs, None, "filter_map")
    many = filter_vmap(f, in_axes=(if_array(0),))
    full = size // batch_size * batch_size
    outputs = []
    if full:
        batched = _each_array(
            xs, lambda x: x[:full].reshape(full // batch_size, batch_size, *x.shape[1:])
        )
        _, out = filter_scan(lambda _, x: (None, many(x)), None, batched)
        outputs.append(_each_array(out, lambda x: x.reshape(full, *x.shape[2:])))
    if full < size or not size:
        outputs.append(many(_each_array(xs, lambda x: x[full:])))
    if len(outputs) == 1:
        return outputs[0]
    leaves = [tree_leaves(out) for out in outputs]
    joined = [
        jnp.concatenate([one, other]) if is_array(one) else one
        for one, other in zip(*leaves, strict=True)
    ]
    return tree_flatten(outputs[0])[1].unflatten(joined)


def _refuse_vmappable(xs: Any) -> None:
    for path, leaf in tree_flatten_with_path(xs, is_leaf=_jax.is_vmappable)[0]:
        if _jax.is_vmappable(leaf):
            raise LeafError(
                f"`filter_map(batch_size=...)` cuts arrays into batches, which the "
                f"`{type(leaf).__qualname__}` at {format_path(path, 'xs')} does not allow: its "
                f"type is registered with JAX as vmappable and has rules of its own. Leave out "
                f"`batch_size`, or use `filter_vmap`."
            )


def _each_array(tree: Any, change: Callable[[Any], Any]) -> Any:
    return tree_map(lambda x: change(jnp.asarray(x)) if is_array(x) else x, tree)


def filter_associative_scan(
    fn: Callable[[_X, _X], _X], elems: _X, reverse: bool = False, axis: int = 0
) -> _X:
    """Scans with an associative operation, in parallel: `jax.lax.associative_scan`.

    The elements may be any PyTrees. Arrays are combined along `axis`; everything else is held, and
    `fn` has to return it unchanged.

    Args:
        fn: an associative function of two elements; both have the batch axis that it works along.
        elems: any PyTree; its arrays have the same length along `axis`.
        reverse: whether to combine from the end.
        axis: along which axis of the arrays.

    Returns:
        A tree like `elems` with the partial results.

    Raises:
        ArgumentError: if there is no array in `elems`.
        CarryError: if `fn` changes the structure, a dtype, or anything that is no array.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> sums = ec.filter_associative_scan(
        ...     lambda a, b: {"x": a["x"] + b["x"], "name": a["name"]},
        ...     {"x": jnp.arange(4), "name": "sums"},
        ... )
        >>> sums["x"].tolist(), sums["name"]
        ([0, 1, 3, 6], 'sums')
    """
    if not Split(elems).arrays:
        raise ArgumentError("`filter_associative_scan` needs at least one array in `elems`.")
    return run(_associative_scan, (fn,), (elems,), (reverse, axis))


def _associative_scan(
    functions: tuple[Any, ...], trees: tuple[Any, ...], options: Any, learn: Any
) -> Any:
    (fn,), (elems,), (reverse, axis) = functions, trees, options
    split = Split(elems)
    say = loop_wording("filter_associative_scan")

    arrays = [jnp.asarray(array) for array in split.arrays]
    impls = [jax.random.key_impl(x) if _is_key(x) else None for x in arrays]
    # Seen as numbers, keys have an axis more at their end.
    last = axis if axis < 0 and any(impls) else None

    def numbers(arrays: list[Any]) -> list[Any]:
        moved = arrays if last is None else [jnp.moveaxis(x, last, 0) for x in arrays]
        return [jax.random.key_data(x) if _is_key(x) else x for x in moved]

    def keys(arrays: list[Any]) -> list[Any]:
        made = [
            x if impl is None else jax.random.wrap_key_data(x, impl=impl)
            for x, impl in zip(arrays, impls, strict=True)
        ]
        return made if last is None else [jnp.moveaxis(x, 0, last) for x in made]

    def combine(one: list[Any], other: list[Any]) -> list[Any]:
        left = split.merge(keys(one))
        return numbers(Split(left).accept(fn(left, split.merge(keys(other))), say))

    # `jax.lax.associative_scan` cannot put keys together.
    along = axis if last is None else 0
    out = jax.lax.associative_scan(combine, numbers(arrays), reverse=reverse, axis=along)
    return split.merge(keys(out))


def _is_key(array: Any) -> bool:
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
