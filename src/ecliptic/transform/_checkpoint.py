"""`filter_checkpoint`: `jax.checkpoint` over any PyTree."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

import jax
from jax.tree_util import tree_leaves

from ecliptic.errors import ArgumentError, ArgumentTypeError
from ecliptic.module import field, looks_like_wrapped
from ecliptic.transform._flat import flatten_call_with_function, unpack
from ecliptic.transform._wrapper import AbstractWrapper, check_callable, name_of
from ecliptic.tree import is_array

_P = ParamSpec("_P")
_T = TypeVar("_T")

_unset: Any = object()

_jax_options = frozenset(inspect.signature(jax.checkpoint).parameters) - {"fun"}

# Options of `jax.checkpoint` that filtering replaces.
_REPLACED = ("static_argnums", "static_argnames")


class _Options(NamedTuple):
    """What is stored, and how recomputation is kept from being optimised away."""

    prevent_cse: bool | tuple[bool, ...]
    jaxkwargs: tuple[tuple[str, Any], ...]


class _Checkpoint(AbstractWrapper):
    _options: _Options = field(static=True)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        options, fun = self._options, self._fun
        flat = flatten_call_with_function(fun, args, kwargs)

        def function(*arrays: Any) -> Any:
            return flat.function(list(arrays))

        function.__name__ = function.__qualname__ = flat.function.__name__
        prevent_cse: Any = options.prevent_cse
        if type(prevent_cse) is tuple:
            prevent_cse = _of_arrays(prevent_cse, fun, args, kwargs)
        recomputed = jax.checkpoint(function, prevent_cse=prevent_cse, **dict(options.jaxkwargs))
        out = recomputed(*flat.arrays)
        flat.passage.finish()
        return unpack(out)


looks_like_wrapped(_Checkpoint)


def _of_arrays(
    flags: tuple[bool, ...], fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[bool, ...]:
    """The flag of each array, given those of the positional arguments."""
    if len(flags) != len(args):
        raise ArgumentError(
            f"`prevent_cse` has {len(flags)} entries, but `{name_of(fun)}` was called with "
            f"{len(args)} positional arguments. Give one for each of them, or one bool for all."
        )
    found = []
    for flag, value in [(True, fun), *zip(flags, args, strict=True), (True, kwargs)]:
        found += [flag for leaf in tree_leaves(value) if is_array(leaf)]
    return tuple(found)


@overload
def filter_checkpoint(
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., bool] | None = None,
    **checkpointkwargs: Any,
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]: ...


@overload
def filter_checkpoint(
    fun: Callable[_P, _T],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., bool] | None = None,
    **checkpointkwargs: Any,
) -> Callable[_P, _T]: ...


def filter_checkpoint(
    fun: Any = _unset,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., bool] | None = None,
    **checkpointkwargs: Any,
) -> Any:
    """Makes a function compute its intermediate values again when it is differentiated.

    As `jax.checkpoint`, for any PyTree: memory is saved by storing the inputs of the function only,
    and time is spent in the backward pass. Arrays of the arguments, and of `fun` if it is a PyTree,
    are the inputs; everything else is held as it is.

    Args:
        fun: the function. Without it, the result is a decorator.
        prevent_cse: whether to keep the compiler from finding out that the values were computed
            before, which would bring them back to memory. Default: true, which is needed under
            `jax.jit`, and is not needed in the body of a `jax.lax.scan`. JAX also takes a
            sequence with an entry for each positional argument, from version 0.10 on.
        policy: which intermediate values are stored all the same, one of
            `jax.checkpoint_policies`. Default: none.
        **checkpointkwargs: whatever else `jax.checkpoint` takes.

    Returns:
        A function, which is a Module, of the same arguments. It returns what `fun` does.

    Raises:
        ArgumentTypeError: if `fun` cannot be called, or an option does not exist.
        ArgumentError: if an option is given that filtering replaces, or `prevent_cse` has the
            wrong length.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax
        >>> import jax.numpy as jnp
        >>> @filter_checkpoint
        ... def layer(function, x):
        ...     return function(jnp.sin(x))
        >>> print(jax.grad(lambda x: layer(jnp.square, x))(0.0))
        0.0
    """
    for name in checkpointkwargs:
        if name in _REPLACED:
            raise ArgumentError(
                f"`filter_checkpoint` does not take `{name}`: every leaf that is no array is "
                f"static already."
            )
        if name not in _jax_options:
            raise ArgumentTypeError(
                f"`filter_checkpoint` got the option `{name}`, which neither it nor "
                f"`jax.checkpoint` has. Arguments of the function go to the result: "
                f"`filter_checkpoint(fun)(...)`."
            )
    options = _Options(
        prevent_cse if isinstance(prevent_cse, bool) else tuple(prevent_cse),
        (("policy", policy), *checkpointkwargs.items()),
    )

    def wrap(fun: Any) -> Any:
        check_callable(fun, "filter_checkpoint")
        return _Checkpoint(fun, options)

    return wrap if fun is _unset else wrap(fun)
