"""`store_dce` and `inspect_dce`: which values a compiled program really computes."""

import threading
from collections.abc import Hashable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_flatten
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic.errors import DebugError
from ecliptic.tree import is_array, tree_pformat


class _Eliminated:
    def __repr__(self) -> str:
        return "<DCE'd>"


_ELIMINATED = _Eliminated()


class _Entry:
    """One call of `store_dce`, in one trace."""

    def __init__(self, x: PyTree) -> None:
        leaves, self.treedef = tree_flatten(x)
        self.leaves = [
            jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if is_array(leaf) else leaf
            for leaf in leaves
        ]
        self.alive: set[int] = set()

    def seen(self) -> PyTree:
        """The values, with a mark in place of each that was not computed."""
        return self.treedef.unflatten(
            _ELIMINATED if isinstance(leaf, jax.ShapeDtypeStruct) and i not in self.alive else leaf
            for i, leaf in enumerate(self.leaves)
        )


_entries: dict[Hashable, list[_Entry]] = {}
_lock = threading.Lock()


def _marked(entry: _Entry, position: int, array: Any) -> Any:
    """The array, out of an operation that tells when it is computed."""

    def tell(value: Any) -> np.ndarray:
        entry.alive.add(position)
        return np.asarray(value)

    @jax.custom_jvp
    def mark(array: Any) -> Any:
        struct = jax.ShapeDtypeStruct(array.shape, array.dtype)
        return jax.pure_callback(tell, struct, array, vmap_method="expand_dims")

    # What is asked is whether the value is needed; a derivative has its own computation.
    mark.defjvp(lambda primals, tangents: (mark(*primals), tangents[0]))
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(
            mark(jax.random.key_data(array)), impl=jax.random.key_impl(array)
        )
    return mark(array)


def store_dce(x: PyTree, name: Hashable = None) -> PyTree:
    """Returns `x`, and notes which of its arrays the compiled program computes.

    A compiler leaves out what nothing depends on ("dead code elimination", DCE). After the program
    has run, [`inspect_dce`][] says what became of the arrays. Each goes through the host on its
    way, so this is for debugging alone.

    Args:
        x: any PyTree. Inside of a compiled function.
        name: what to ask [`inspect_dce`][] for; any hashable value.

    Returns:
        `x`, unchanged.

    Raises:
        DebugError: outside of any trace, where nothing is eliminated.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> @jax.jit
        ... def f(x):
        ...     kept, dropped = ec.debug.store_dce((x + 1, x - 1), name="pair")
        ...     return kept
        >>> _ = f(jnp.ones(3)).block_until_ready()
        >>> ec.debug.inspect_dce("pair")
        Found 1 call to `ecliptic.debug.store_dce`.
        Entry 0:
        (f32[3], <DCE'd>)
    """
    if _jax.trace_state_clean():
        raise DebugError(
            "`ecliptic.debug.store_dce` should be used inside of JIT: outside, every value is "
            "computed, and there is nothing to see. Call the function that uses it through "
            "`filter_jit` or `jax.jit`."
        )
    entry = _Entry(x)
    with _lock:
        _entries.setdefault(name, []).append(entry)
    leaves, treedef = tree_flatten(x)
    return treedef.unflatten(
        _marked(entry, i, leaf) if is_array(leaf) else leaf for i, leaf in enumerate(leaves)
    )


def inspect_dce(name: Hashable = None) -> None:
    """Prints which arrays that went through [`store_dce`][] were computed so far.

    There is an entry for each call of [`store_dce`][] in each trace of the function around it.
    Wait for the result of the program first, with `jax.block_until_ready`.

    Args:
        name: the name that was given to [`store_dce`][].

    !!! Example

        >>> import ecliptic as ec
        >>> ec.debug.inspect_dce("a name that nothing has")
        Found 0 calls to `ecliptic.debug.store_dce`.
    """
    jax.effects_barrier()
    with _lock:
        entries = list(_entries.get(name, ()))
    calls = "call" if len(entries) == 1 else "calls"
    print(f"Found {len(entries)} {calls} to `ecliptic.debug.store_dce`.")
    for i, entry in enumerate(entries):
        print(f"Entry {i}:")
        print(tree_pformat(entry.seen(), struct_as_array=True))
