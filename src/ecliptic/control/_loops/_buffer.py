"""Arrays that a loop writes to, one index at a time.

A loop that has to be gone through backwards keeps states. If a large array in the state is written
to at an index in each step, to keep the whole of it over and over again would make the loop
quadratic. Since no part of it changes once it has been written, the array as it is at the end
serves for all steps. `Buffer` allows just the operations for which that is so.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from ecliptic import _jax
from ecliptic._jax._define import define, no_tangent
from ecliptic.errors import ArgumentTypeError


class Buffer:
    """An array of which a loop's body writes or reads one part at a time.

    Stands for the array wherever a loop's functions get a part of the carry that `buffers=`
    selects. Write with `buffer.at[i].set(value)`, read with `buffer[i]`.

    Each part is written once at most, and read only after that (or if it is never written). This
    is not checked; the gradient of a loop that breaks it is wrong.

    It is a PyTree, so it can go into a branch, a jitted function, or the carry of a loop inside of
    the loop, where it stays a buffer.

    Args:
        array: the array.
        active: where false, nothing is written.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> def step(carry):
        ...     i, x, seen = carry
        ...     return i + 1, x * x, seen.at[i].set(x)
        >>> def last(x):
        ...     _, _, seen = ec.filter_while_loop(
        ...         lambda carry: carry[0] < 3, step, (0, x, jnp.zeros(3)),
        ...         kind="checkpointed", max_steps=3, buffers=lambda carry: carry[2],
        ...     )
        ...     return seen[2]
        >>> float(last(jnp.array(2.0))), float(jax.grad(last)(jnp.array(2.0)))
        (16.0, 32.0)
    """

    __slots__ = ("_active", "_array")

    def __init__(self, array: Array, active: Bool[Array, ""] | bool = True) -> None:
        self._array = array
        self._active = active

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self._array.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the array."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, item: Any) -> Array:
        """The part at an index."""
        if not _is_index(item) or self.ndim == 0 or len(self) == 0:
            return self._array[item]
        # The array comes out of the reading as it went in. What reads or writes next takes it from
        # there, so that on the way back one gradient goes through all of them in turn.
        self._array, value = led_through(self._array, _wrapped(item, len(self)))
        return value

    @property
    def at(self) -> "_At":
        """`buffer.at[i].set(value)` is the buffer with that part replaced."""
        return _At(self)

    def unwrap(self) -> Array:
        """The array, for the loop itself: its functions have no use for it."""
        return self._array

    def within(self, outer: "Buffer") -> "Buffer":
        """The same, written only where a buffer of a loop around this one would be, too."""
        return Buffer(self._array, _both(self._active, outer._active))

    def holding(self, array: Array) -> "Buffer":
        """The same with another array."""
        return Buffer(array, self._active)

    def __repr__(self) -> str:
        return f"Buffer({self._array!r})"

    def __iter__(self) -> Any:
        raise ArgumentTypeError(_misuse("was iterated over"))


def _flatten(buffer: Buffer) -> tuple[tuple[Any, ...], bool]:
    always = buffer._active is True
    return (buffer._array,) if always else (buffer._array, buffer._active), always


def _unflatten(always: bool, children: Any) -> Buffer:
    array, active = (*children, True) if always else children
    return Buffer(array, active)


jax.tree_util.register_pytree_node(Buffer, _flatten, _unflatten)


def _both(one: Any, other: Any) -> Any:
    """Whether both are so; `True` itself is known beforehand."""
    if one is True:
        return other
    return one if other is True else one & other


def _misuse(what: str) -> str:
    return (
        f"A part of the carry that `buffers=` selects {what}. In a loop's functions it is a "
        "buffer: write a part of it with `buffer.at[i].set(value)`, read one with `buffer[i]`. If "
        "the functions need the whole array, do not select it with `buffers=`."
    )


class _At:
    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer

    def __getitem__(self, item: Any) -> "_Place":
        return _Place(self._buffer, item)


class _Place:
    def __init__(self, buffer: Buffer, item: Any) -> None:
        self._buffer = buffer
        self._item = item

    def set(self, value: Any, *, pred: Any = True, **options: Any) -> Buffer:
        """The buffer with this part replaced.

        Args:
            value: what to put there.
            pred: where false, nothing is written.
            **options: those of `jax.numpy.ndarray.at`'s `set`.
        """
        array, active = self._buffer._array, self._buffer._active
        goes = _both(active, pred)
        return Buffer(_write(array, self._item, value, goes, options), active)

    def __getattr__(self, name: str) -> Any:
        raise ArgumentTypeError(_misuse(f"was changed with `.at[...].{name}`"))


def buffer_at_set(
    buffer: Array | Buffer, item: Any, x: Any, *, pred: Bool[Array, ""] | bool = True, **kwargs: Any
) -> Array | Buffer:
    """`buffer.at[item].set(x)`, for arrays and for buffers of loops alike.

    Args:
        buffer: an array, or a part of the carry that a loop's `buffers=` selects.
        item: the index.
        x: what to put there.
        pred: where false, nothing is written.
        **kwargs: options of `jax.numpy.ndarray.at`'s `set`.

    Returns:
        The array or buffer with that part replaced.

    !!! Example

        >>> import jax.numpy as jnp
        >>> buffer_at_set(jnp.zeros(3), 1, 5.0).tolist()
        [0.0, 5.0, 0.0]
    """
    if isinstance(buffer, Buffer):
        return buffer.at[item].set(x, pred=pred, **kwargs)
    return _write(jnp.asarray(buffer), item, x, pred, kwargs)


def _write(array: Any, item: Any, value: Any, goes: Any, options: dict[str, Any]) -> Any:
    value = jnp.asarray(value)
    if goes is True:
        return array.at[item].set(value, **options)
    if _is_index(item) and options.get("mode", "drop") == "drop":
        # Out of bounds means nowhere: cheaper than to read the old value and to write it again.
        nowhere = jnp.asarray(array.shape[0], jnp.int32)
        item = jnp.where(goes, _wrapped(item, array.shape[0]), nowhere)
        return array.at[item].set(value, mode="drop", wrap_negative_indices=False)
    return array.at[item].set(jnp.where(goes, value, array[item]), **options)


def _is_index(item: Any) -> bool:
    """Whether an index picks one part along the first axis."""
    if isinstance(item, bool) or item is None or item is Ellipsis:
        return False
    if isinstance(item, int):
        return True
    dtype = getattr(item, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jnp.integer) and jnp.ndim(item) == 0


def _wrapped(item: Any, size: int) -> Int[Array, ""]:
    """An index from the start, as `int32`."""
    item = jnp.asarray(item).astype(jnp.int32)
    return jnp.where(item < 0, item + size, item)


def led_through(array: Any, index: Any) -> Sequence[Any]:
    """The array, and the part at an index: see `_read_primitive`."""
    return _read_primitive().bind(array, index, axis=0)


@functools.cache
def _read_primitive() -> Any:
    """The operation that takes an array and an index to the array, unchanged, and the part there.

    `array[i]` would do for the value. But its transpose makes an array of zeros with one part set,
    which is then added to the rest of the gradient: the work of a whole array in each step. With
    the array led through, the transpose adds the part in place.
    """
    read = _jax.Primitive("read_buffer")
    read.multiple_results = True

    def run(array: Any, index: Any, *, axis: int) -> list[Any]:
        return [array, jax.lax.dynamic_index_in_dim(array, index, axis, keepdims=False)]

    def abstract(array: Any, index: Any, *, axis: int) -> list[Any]:
        shape = (*array.shape[:axis], *array.shape[axis + 1 :])
        return [array, array.update(shape=shape)]

    def jvp(primals: Any, tangents: Any, *, axis: int) -> tuple[Any, Any]:
        out = read.bind(*primals, axis=axis)
        if type(tangents[0]) is _jax.Zero:
            return out, [no_tangent(x) for x in out]
        return out, read.bind(tangents[0], primals[1], axis=axis)

    def transpose(cotangents: Any, array: Any, index: Any, *, axis: int) -> tuple[Any, None]:
        whole, part = cotangents
        if type(part) is _jax.Zero:
            return whole, None
        whole = _jax.instantiate_zeros(whole)
        before = jax.lax.dynamic_index_in_dim(whole, index, axis, keepdims=False)
        return jax.lax.dynamic_update_index_in_dim(whole, before + part, index, axis), None

    def batch(args: Any, dims: Any, *, axis: int) -> tuple[Any, Any]:
        (array, index), (array_dim, index_dim) = args, dims
        if index_dim is None:
            array = jnp.moveaxis(array, array_dim, 0)
            return read.bind(array, index, axis=axis + 1), (0, 0)
        if array_dim is not None:
            array = jnp.moveaxis(array, array_dim, 0)
        take: Callable[..., Any] = jax.vmap(
            lambda a, i: jax.lax.dynamic_index_in_dim(a, i, axis, keepdims=False),
            in_axes=(None if array_dim is None else 0, index_dim),
        )
        return (array, take(array, index)), (None if array_dim is None else 0, 0)

    define(read, run, abstract, jvp=jvp, transpose=transpose, batch=batch)
    return read


def shown(state: Sequence[Any], buffers: Sequence[bool], active: Any = True) -> list[Any]:
    """A loop's arrays as its functions see them.

    Args:
        state: the arrays.
        buffers: which of them are buffers.
        active: where false, nothing is written.
    """
    pairs = zip(state, buffers, strict=True)
    return [Buffer(x, active) if is_buffer else x for x, is_buffer in pairs]


def unwrapped(state: Sequence[Any]) -> list[Any]:
    """The arrays that a loop's function returned."""
    return [x.unwrap() if isinstance(x, Buffer) else jnp.asarray(x) for x in state]
