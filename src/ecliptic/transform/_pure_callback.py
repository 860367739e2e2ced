"""`filter_pure_callback`: `jax.pure_callback` over any PyTree."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Sharding
from jax.tree_util import tree_flatten, tree_flatten_with_path
from jaxtyping import PyTree

from ecliptic.errors import ArgumentError, StructureError
from ecliptic.transform._static import same_static
from ecliptic.transform._wrapper import check_callable, name_of
from ecliptic.tree import first_difference, format_path, is_array
from ecliptic.tree._predicates import has_shape

# Python numbers fit arrays of their own kind and of the kinds after it.
_NUMBERS = {
    bool: (np.bool_, np.number),
    int: (np.number,),
    float: (np.inexact,),
    complex: (np.complexfloating,),
}


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


class _Keys:
    """A conversion of typed PRNG keys to plain arrays, which is what leaves a program, and back."""

    def __init__(self, key: Any) -> None:
        # (Within a trace also the description of a key can be asked for its generator.)
        self.implementation: Any = None
        self.struct = jax.eval_shape(self.data, key)

    def data(self, key: Any) -> Any:
        """The plain array of a key."""
        self.implementation = jax.random.key_impl(key)
        return jax.random.key_data(key)

    def wrap(self, data: Any) -> Any:
        """The key of a plain array."""
        return jax.random.wrap_key_data(data, impl=self.implementation)


class _Arguments:
    """What the callback is called with, and the callback itself, which may be a PyTree."""

    def __init__(self, callback: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.leaves, self.treedef = tree_flatten((callback, args, kwargs))
        self.keys = {
            i: _Keys(leaf) for i, leaf in enumerate(self.leaves) if is_array(leaf) and _is_key(leaf)
        }
        self.positions = [i for i, leaf in enumerate(self.leaves) if is_array(leaf)]
        self.arrays = [
            self.keys[i].data(self.leaves[i]) if i in self.keys else self.leaves[i]
            for i in self.positions
        ]
        for i in self.positions:
            self.leaves[i] = None

    def call(self, arrays: tuple[Any, ...]) -> Any:
        """Calls the callback with these arrays."""
        leaves = self.leaves.copy()
        for i, array in zip(self.positions, arrays, strict=True):
            leaves[i] = self.keys[i].wrap(array) if i in self.keys else array
        callback, args, kwargs = self.treedef.unflatten(leaves)
        return callback(*args, **kwargs)


class _Results:
    """What the callback has to return."""

    def __init__(self, announced: PyTree, name: str) -> None:
        self.leaves, self.treedef = tree_flatten(announced)
        self.name = name
        self.keys: dict[int, _Keys] = {}
        self.structs = []
        for i, leaf in enumerate(self.leaves):
            if not has_shape(leaf):
                continue
            struct = jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
            self.leaves[i] = struct
            if _is_key(struct):
                self.keys[i] = _Keys(struct)
                struct = self.keys[i].struct
            self.structs.append(struct)

    def take(self, out: PyTree) -> list[Any]:
        """The arrays of what the callback returned.

        Raises:
            StructureError, ArgumentError: if it is not what was announced.
        """
        found, treedef = tree_flatten_with_path(out)
        if treedef != self.treedef:
            difference = first_difference(self.treedef.unflatten(self.leaves), out, None)
            raise StructureError(
                f"The callback `{self.name}` did not return what `result_shape_dtypes` says. Of "
                f"the announced result and the returned one, {difference}."
            )
        arrays = []
        for known, (path, leaf) in zip(self.leaves, found, strict=True):
            if isinstance(known, jax.ShapeDtypeStruct):
                arrays.append(self._take_array(known, leaf, path))
            elif type(known) is not type(leaf) or not same_static(known, leaf):
                raise self._wrong(path, repr(known), repr(leaf))
        return arrays

    def _take_array(self, known: jax.ShapeDtypeStruct, leaf: Any, path: Any) -> Any:
        if _takes_number(known, leaf):
            leaf = np.asarray(leaf, known.dtype)
        wanted = f"an array of shape {known.shape} and dtype {known.dtype}"
        if not is_array(leaf):
            raise self._wrong(path, wanted, f"{leaf!r} of type `{type(leaf).__qualname__}`")
        # Mapped, it has more axes in front.
        shape = leaf.shape[max(0, leaf.ndim - len(known.shape)) :]
        if shape != known.shape or _dtype(leaf) != known.dtype:
            got = f"one of shape {leaf.shape} and dtype {leaf.dtype}"
            raise self._wrong(path, wanted, got)
        return jax.random.key_data(leaf) if _is_key(known) else leaf

    def _wrong(self, path: Any, wanted: str, got: str) -> ArgumentError:
        return ArgumentError(
            f"The callback `{self.name}` did not return what `result_shape_dtypes` says: it says "
            f"{wanted} at `{format_path(path, root='result')}`, and the callback returned {got}."
        )

    def rebuild(self, arrays: list[Any]) -> Any:
        """The result, with these arrays."""
        rest = iter(arrays)
        leaves = self.leaves.copy()
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, jax.ShapeDtypeStruct):
                array = next(rest)
                leaves[i] = self.keys[i].wrap(array) if i in self.keys else array
        return self.treedef.unflatten(leaves)


def _takes_number(known: jax.ShapeDtypeStruct, leaf: Any) -> bool:
    return any(jnp.issubdtype(known.dtype, k) for k in _NUMBERS.get(type(leaf), ()))


def _dtype(array: Any) -> Any:
    if isinstance(array, jax.Array):
        return array.dtype
    return jax.dtypes.canonicalize_dtype(array.dtype)


def _vmap_method(vmap_method: str | None, vectorized: bool | None) -> str | None:
    if vectorized is None:
        return vmap_method
    if vmap_method is not None:
        raise ArgumentError(
            f"Give `vmap_method` only: `vectorized` is an old form of it; got "
            f"vmap_method={vmap_method!r} and vectorized={vectorized!r}."
        )
    return "legacy_vectorized" if vectorized else "sequential"


def filter_pure_callback(
    callback: Callable[..., Any],
    *args: Any,
    result_shape_dtypes: PyTree[Any],
    sharding: Sharding | None = None,
    vmap_method: str | None = None,
    vectorized: bool | None = None,
    **kwargs: Any,
) -> PyTree[Any]:
    """Calls a Python function from a compiled program.

    As `jax.pure_callback`, for any PyTree. JAX may call the function any number of times, so it
    must do nothing else than compute its result from its arguments.

    Args:
        callback: the function. It gets its arguments as they are given here, with the values of
            traced arrays. If it is a PyTree itself, its arrays have values then, too.
        *args: its arguments.
        result_shape_dtypes: what it returns: a PyTree with a `jax.ShapeDtypeStruct` (or anything
            else with shape and dtype) for each array. Leaves that are no arrays must be those
            that the function will return.
        sharding: where the function is called, see `jax.pure_callback`. Default: JAX chooses.
        vmap_method: how to map the call by `jax.vmap`: `"sequential"`, `"expand_dims"`,
            `"broadcast_all"`, …, see `jax.pure_callback`. Default: it can't be mapped.
        vectorized: an old form of `vmap_method`: true for `"legacy_vectorized"`, false for
            `"sequential"`. Default: not given.
        **kwargs: its keyword arguments.

    Returns:
        What the function returned.

    Raises:
        ArgumentTypeError: if `callback` cannot be called.
        ArgumentError: if both forms of `vmap_method` are given; and, as the text of an error of
            JAX, if the function returned something else than `result_shape_dtypes` says.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> def count(text, x):
        ...     return np.int32(text.count("a")) * np.asarray(x)
        >>> struct = jax.ShapeDtypeStruct((2,), jnp.int32)
        >>> @jax.jit
        ... def program(x):
        ...     return filter_pure_callback(count, "banana", x, result_shape_dtypes=struct)
        >>> print(program(jnp.arange(2)))
        [0 3]
    """
    check_callable(callback, "filter_pure_callback")
    arguments = _Arguments(callback, args, kwargs)
    results = _Results(result_shape_dtypes, name_of(callback))

    def on_arrays(*arrays: Any) -> list[Any]:
        return results.take(arguments.call(arrays))

    arrays = jax.pure_callback(
        on_arrays,
        results.structs,
        *arguments.arrays,
        sharding=sharding,
        vmap_method=_vmap_method(vmap_method, vectorized),
    )
    return results.rebuild(arrays)
