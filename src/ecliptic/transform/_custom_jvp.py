"""`filter_custom_jvp`: a function over any PyTrees with its own rule for tangents."""

import warnings
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
from jax.custom_derivatives import zero_from_primal
from jax.tree_util import tree_leaves, tree_structure

from ecliptic.errors import RuleError
from ecliptic.module import looks_like_wrapped
from ecliptic.transform._returned import Held, Returned, hold
from ecliptic.transform._rules import (
    AbstractCustom,
    Rules,
    argument_paths,
    check_unperturbed,
    conform,
    returns_pair,
)
from ecliptic.transform._tangents import Naming, check, is_zero, match
from ecliptic.transform._wrapper import check_callable, name_of
from ecliptic.tree import is_array, is_inexact_array

_P = ParamSpec("_P")
_T = TypeVar("_T")

_NAMING = Naming("tangent", "tangent_out", "primal_out")

_WAY_OUT = (
    "The rule is given tangents of positional arguments only: pass it by position, or stop its "
    "derivative with `jax.lax.stop_gradient`."
)


class filter_custom_jvp(AbstractCustom, Generic[_P, _T]):
    """Gives a function of any PyTrees its own rule for Jacobian-vector products.

    As `jax.custom_jvp`. The rule is called as `rule(primals, tangents, **kwargs)`, where `primals`
    is the tuple of positional arguments and `tangents` has the same structure, with None for
    every leaf that does not change or is no floating-point or complex array. It returns
    `(primal_out, tangent_out)`: the output of the function and its tangent, which may have None
    as well, at a leaf or above.

    Keyword arguments are handed to function and rule, and must not be differentiated. Neither must
    arrays in the function itself, if it is a PyTree.

    Args:
        fn: the function.

    Raises:
        ArgumentTypeError: if `fn` cannot be called.
        RuleError: from a call, if there is no rule yet; if something is differentiated that the
            rule is not given; if the rule returns no pair, or another output than the function.
        StructureError: from a call, if the tangent of the output has another structure.
        ArgumentError: from a call, if a tangent of the output has another shape.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax
        >>> import jax.numpy as jnp
        >>> @ec.filter_custom_jvp
        ... def clipped(x, *, limit):
        ...     return jnp.clip(x, -limit, limit)
        >>> @clipped.def_jvp
        ... def _(primals, tangents, *, limit):
        ...     (x,), (tangent,) = primals, tangents
        ...     return clipped(x, limit=limit), tangent
        >>> float(jax.grad(lambda x: clipped(x, limit=1.0))(5.0))
        1.0
    """

    def __init__(self, fn: Callable[_P, _T]) -> None:
        check_callable(fn, "filter_custom_jvp")
        self._fun = fn
        self._rules = Rules()
        self.__post_init__()

    def def_jvp(self, fn_jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule.

        Args:
            fn_jvp: the rule, `fn_jvp(primals, tangents, **kwargs) -> (primal_out, tangent_out)`.

        Returns:
            The rule, so that this is a decorator.
        """
        check_callable(fn_jvp, "def_jvp")
        self._rules.jvp, self._rules.dense = fn_jvp, False
        return fn_jvp

    def defjvp(self, fn_jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Sets a rule that gets arrays of zeros for what does not change. Deprecated.

        Args:
            fn_jvp: the rule, as for `def_jvp`.

        Returns:
            The rule.

        Warns:
            DeprecationWarning: always.
        """
        warnings.warn(
            "`filter_custom_jvp.defjvp` is deprecated: use `def_jvp`, whose rules are given None, "
            "and not zeros, as the tangent of what does not change.",
            DeprecationWarning,
            stacklevel=2,
        )
        self.def_jvp(fn_jvp)
        self._rules.dense = True
        return fn_jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets one rule for each positional argument. The tangents that they return are added.

        Args:
            *jvps: for each argument its rule, `jvp(tangent, out, *primals, **kwargs)`, which
                returns a tangent of the output and is called if the argument changes; or None if
                the output does not depend on it.
        """
        for jvp in jvps:
            if jvp is not None:
                check_callable(jvp, "defjvps")
        fun = self

        def rule(primals: Any, tangents: Any, **kwargs: Any) -> Any:
            if len(primals) != len(jvps):
                raise RuleError(
                    f"`{name_of(fun)}` has rules for {len(jvps)} positional arguments by "
                    f"`defjvps`, and was called with {len(primals)}."
                )
            out = fun(*primals, **kwargs)
            total: list[Any] = [None] * tree_structure(out).num_leaves
            for jvp, tangent in zip(jvps, tangents, strict=True):
                if jvp is None or not tree_leaves(tangent):
                    continue
                slopes = match(out, jvp(tangent, out, *primals, **kwargs), _NAMING)
                total = [_add(a, b) for a, b in zip(total, slopes, strict=True)]
            return out, tree_structure(out).unflatten(total)

        self.def_jvp(rule)

    def __call__(self, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        fun, rules = self._fun, self._rules
        if rules.jvp is None:
            raise RuleError(
                f"`{name_of(fun)}` is decorated with `filter_custom_jvp`, but has no rule yet. Add "
                f"one with `@{name_of(fun)}.def_jvp`."
            )
        held, arrays = hold(fun, args, kwargs)
        returned = Returned()

        def run(*arrays: Any) -> Any:
            fun, args, kwargs = held.get(arrays)
            return returned.put(fun(*args, **kwargs), is_array)[0]

        def run_jvp(primals: Any, tangents: Any) -> Any:
            return _apply_rule(self, held, returned, primals, tangents)

        if not arrays:
            return fun(*args, **kwargs)
        custom = jax.custom_jvp(run)
        custom.defjvp(run_jvp, symbolic_zeros=True)
        return returned.get(custom(*arrays))


looks_like_wrapped(filter_custom_jvp)


def _apply_rule(
    custom: filter_custom_jvp, held: Held, returned: Returned, primals: Any, tangents: Any
) -> Any:
    """The rule between flat lists of arrays."""
    rules, fun = custom._rules, custom._fun
    slopes = held.spread([None if is_zero(t) else t for t in tangents], None)
    _check_perturbed(fun, held, slopes)
    _, args, kwargs = held.get(primals, numbers=True)
    before = held.sizes[0]
    of_args = slopes[before : before + held.sizes[1]]
    if rules.dense:
        of_args = [
            jnp.zeros_like(leaf) if slope is None and is_inexact_array(leaf) else slope
            for leaf, slope in zip(tree_leaves(args), of_args, strict=True)
        ]
    jvp: Any = rules.jvp
    out = jvp(args, held.treedef.children()[1].unflatten(of_args), **kwargs)
    primal_out, tangent_out = returns_pair(out, fun, "JVP rule", "(primal_out, tangent_out)")
    given = match(primal_out, tangent_out, _NAMING)
    arrays = conform(returned, primal_out, fun, "JVP rule", [t is not None for t in given])
    slots = returned.slots()
    out_slopes = check(primal_out, slots, tangent_out, _NAMING)
    return arrays, [
        zero_from_primal(array, symbolic_zeros=True) if slope is None else slope
        for array, slope in zip(
            arrays, [s for slot, s in zip(slots, out_slopes, strict=True) if slot.picked],
            strict=True,
        )
    ]  # fmt: skip


def _check_perturbed(fun: Any, held: Held, slopes: list[Any]) -> None:
    start, stop = held.sizes[0], held.sizes[0] + held.sizes[1]
    outside = [slope is not None and not start <= i < stop for i, slope in enumerate(slopes)]
    if any(outside):
        names = argument_paths(held.names(), fun, skip=0)
        check_unperturbed(fun, names, outside, _WAY_OUT)


def _add(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return jnp.add(one, other)
