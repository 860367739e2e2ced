"""What a checkpointed loop prints of its derivative while `typing.TESTING` is set.

Equinox's does, for its own tests: which parts of the carry have a tangent, and which of them are
known to have no cotangent on the way back. Here both are observed: each array of the carry goes
through an identity as it enters and leaves the loop, and as it enters and leaves each step, and JAX
calls the rules of these for what is really differentiated.
"""

import functools
import typing
from collections.abc import Callable, Sequence
from typing import Any, Literal

from jax.tree_util import tree_flatten

from ecliptic import _jax
from ecliptic._jax._define import define
from ecliptic.primitive._filtered import is_zero
from ecliptic.tree import is_array

Place = Literal["start", "step", "end"]


class Observed:
    """A loop whose carry is observed.

    Args:
        init: the carry at the start.
    """

    def __init__(self, init: Any) -> None:
        self._leaves, self._tree = tree_flatten(init)
        self._swept: set[int] = set()

    def passed(self, carry: Any, place: Place) -> Any:
        """The carry, observed from here on."""
        leaves, tree = tree_flatten(carry)
        positions = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
        # In a step each array on its own: none depends on the others.
        groups = [[i] for i in positions] if place == "step" else [positions]
        for group in groups:
            out = _bind(_value(), [leaves[i] for i in group], self, place, group)
            for i, leaf in zip(group, out, strict=True):
                leaves[i] = leaf
        return tree.unflatten(leaves)

    def perturbed(self, place: Place, positions: Sequence[int]) -> None:
        """Takes note of the tangents at a place."""
        if place == "end":
            self._print("perturb_val", False, positions, there=True)

    def reached(self, place: Place, positions: Sequence[int]) -> None:
        """Takes note of the cotangents at a place."""
        if place == "step":
            self._swept.update(positions)
        elif place == "start":
            self._print("symbolic_zero_gradient", True, self._swept, there=False)

    def _print(self, what: str, outside: bool, where: Any, *, there: bool) -> None:
        flags = [there if i in where else not there for i in range(len(self._leaves))]
        # Equinox's loops have three more parts, which carry no derivative.
        print(what, (outside, outside, outside, self._tree.unflatten(flags)))


def observed(run: Callable[[Callable[[Any], Any], Any], Any], body_fun: Any, init_val: Any) -> Any:
    """Runs a loop, observed if `typing.TESTING` is set.

    Args:
        run: the loop, as a function of its body and its first carry.
        body_fun: the body.
        init_val: the first carry.
    """
    if not getattr(typing, "TESTING", False):
        return run(body_fun, init_val)
    loop = Observed(init_val)
    step = lambda carry: loop.passed(body_fun(loop.passed(carry, "step")), "step")  # noqa: E731
    return loop.passed(run(step, loop.passed(init_val, "start")), "end")


def _bind(primitive: Any, arrays: Sequence[Any], loop: Observed, place: Place, at: Any) -> Any:
    return primitive.bind(*arrays, loop=loop, place=place, at=tuple(at)) if arrays else []


def _identity(name: str, jvp: Callable[..., Any], transpose: Callable[..., Any] | None) -> Any:
    primitive = _jax.Primitive(name)
    primitive.multiple_results = True
    same = lambda *args, **_: list(args)  # noqa: E731
    batch = lambda args, dims, **_: (list(args), dims)  # noqa: E731
    define(primitive, same, same, jvp=jvp, transpose=transpose, batch=batch)
    return primitive


@functools.cache
def _value() -> Any:
    def jvp(primals: Any, tangents: Any, *, loop: Observed, place: Place, at: Any) -> Any:
        known = [i for i, tangent in enumerate(tangents) if not is_zero(tangent)]
        where = [at[i] for i in known]
        loop.perturbed(place, where)
        moving = iter(_bind(_tangent(), [tangents[i] for i in known], loop, place, where))
        passed = [tangent if is_zero(tangent) else next(moving) for tangent in tangents]
        return _bind(_value(), primals, loop, place, at), passed

    return _identity("observed", jvp, None)


@functools.cache
def _tangent() -> Any:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        return _tangent().bind(*primals, **params), list(tangents)

    def transpose(cts: Any, *_: Any, loop: Observed, place: Place, at: Any) -> Any:
        loop.reached(place, [i for i, ct in zip(at, cts, strict=True) if not is_zero(ct)])
        return list(cts)

    return _identity("observed_tangent", jvp, transpose)
