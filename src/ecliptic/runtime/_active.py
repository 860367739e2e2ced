"""Where in a batch a loop or branch is really run.

Under `jax.vmap`, both branches are computed for all elements, and a loop goes on for all of them
until the last is done. JAX throws away what is computed in vain; a check in there must not fail.
So loops and branches say, with `only_where`, when their functions count, and checks ask for it.

Nothing is asked where there is no check, and outside of a batch the compiler leaves it out.
"""

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from ecliptic import _jax
from ecliptic._jax._trace import current_trace, is_part_of
from ecliptic.primitive._conditional import select_if_vmap
from ecliptic.runtime._mode import on_error

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclasses.dataclass
class _Scope:
    """A function of a loop or branch while it is traced.

    Args:
        trace: its trace.
        conditions: each gives a boolean scalar; it counts where all are true.
        decided: whether it counts, once that was asked.
    """

    trace: Any
    conditions: tuple[Callable[[], Any], ...]
    decided: dict[Any, Any] = dataclasses.field(default_factory=dict)


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.scope: _Scope | None = None


_scopes = _Scopes()


def only_where(function: _Function, condition: Callable[..., Any] | None) -> _Function:
    """Makes checks in a function of a loop or branch fail only for what it is run for.

    Args:
        function: what JAX is about to trace. It is returned as it is if there is nothing to say.
        condition: called with the same arguments: whether they are meant for it, as a boolean
            scalar. `None`: always; it may be part of a loop or branch that has a condition.

    Returns:
        A function that does the same.
    """
    outer = _reached()
    around = () if outer is None else outer.conditions
    if condition is None and not around:
        return function

    def inside(*args: Any) -> Any:
        own = () if condition is None else (functools.partial(condition, *args),)
        with _enter(_Scope(current_trace(), (*own, *around))):
            return function(*args)

    result: Any = inside
    return result


def where_it_counts(pred: Any) -> Any:
    """A condition of a check, made false where the check does not count."""
    scope = _reached()
    if scope is None:
        return pred
    here = current_trace()
    if here not in scope.decided:
        # (What is asked meanwhile, in a condition with a check, must not ask again.)
        scope.decided[here] = None
        scope.decided[here] = _all(scope.conditions)
    active = scope.decided[here]
    if active is None:
        return pred
    pred = jnp.asarray(pred)
    return select_if_vmap(active, pred, jnp.zeros_like(pred))


def _reached() -> _Scope | None:
    """The scope that is being traced, if what is computed now is a part of it."""
    scope = _scopes.scope
    return scope if scope is not None and is_part_of(scope.trace) else None


@contextlib.contextmanager
def _enter(scope: _Scope) -> Iterator[None]:
    before = _scopes.scope
    _scopes.scope = scope
    try:
        yield
    finally:
        _scopes.scope = before


def _all(conditions: tuple[Callable[[], Any], ...]) -> Any:
    """Whether all hold; None if one of them does more than to compute that."""
    active = None
    for condition in conditions:
        with on_error("off"):
            # (JAX keeps traces by function. This one belongs here.)
            program = jax.make_jaxpr(lambda condition=condition: condition())()
        if program.effects:
            return None
        (value,) = _jax.eval_jaxpr(program.jaxpr, program.consts)
        active = value if active is None else jnp.logical_and(active, value)
    return active
