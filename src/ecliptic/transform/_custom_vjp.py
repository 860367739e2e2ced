"""`filter_custom_vjp`: a function over any PyTrees with its own rule for cotangents."""

import warnings
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
from jax.tree_util import tree_leaves

from ecliptic.errors import ArgumentError, ArgumentTypeError, RuleError
from ecliptic.module import looks_like_wrapped
from ecliptic.transform._returned import Held, Returned, Slot, dtype_of, hold
from ecliptic.transform._rules import (
    AbstractCustom,
    Rules,
    argument_paths,
    check_unperturbed,
    conform,
    returns_pair,
)
from ecliptic.transform._tangents import Naming, describe, is_zero, match
from ecliptic.transform._targets import positional_parameters
from ecliptic.transform._wrapper import check_callable, name_of
from ecliptic.tree import (
    is_array,
    is_array_like,
    is_inexact_array,
    is_inexact_array_like,
    leaves_with_paths,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")

_NAMING = Naming("cotangent", "grad", "vjp_arg")

_WAY_OUT = (
    "The rule is for the first argument only: make it a part of that one (a tuple, for instance), "
    "or stop its derivative with `jax.lax.stop_gradient`."
)


class filter_custom_vjp(AbstractCustom, Generic[_P, _T]):
    """Gives a function of any PyTrees its own rule for vector-Jacobian products.

    As `jax.custom_vjp`. Only the first argument is differentiated; all others, and arrays in the
    function itself, if it is a PyTree, must not be. There are two rules:

    - `fwd(perturbed, vjp_arg, *args, **kwargs)` returns `(out, residuals)`: the output of the
      function, and any PyTree. `perturbed` has the structure of `vjp_arg` and says of each leaf
      whether it is being differentiated.
    - `bwd(residuals, grad_out, perturbed, vjp_arg, *args, **kwargs)` returns the cotangent of
      `vjp_arg`, with None for zero and for what is no floating-point or complex array. `grad_out`
      has the structure of the output, with None for what has no cotangent, because it is no such
      array or because nothing depends on it.

    Args:
        fn: the function.

    Raises:
        ArgumentTypeError: if `fn` cannot be called.
        RuleError: from a call, if there are no rules yet; if something but the first argument is
            differentiated; if `fwd` returns no pair, or another output than the function.
        StructureError: from a call, if `bwd` returns a tree of another structure.
        ArgumentError: from a call, if a cotangent that `bwd` returns has another shape.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax
        >>> import jax.numpy as jnp
        >>> @ec.filter_custom_vjp
        ... def identity(x, limit):
        ...     "Its gradient is clipped."
        ...     return x
        >>> @identity.def_fwd
        ... def _(perturbed, x, limit):
        ...     return x, None
        >>> @identity.def_bwd
        ... def _(residuals, grad_out, perturbed, x, limit):
        ...     return jnp.clip(grad_out, -limit, limit)
        >>> float(jax.grad(lambda x: 100.0 * identity(x, limit=1.0))(5.0))
        1.0
    """

    def __init__(self, fn: Callable[_P, _T]) -> None:
        check_callable(fn, "filter_custom_vjp")
        self._fun = fn
        self._rules = Rules()
        self.__post_init__()

    def def_fwd(self, fn_fwd: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule for the way forward.

        Args:
            fn_fwd: `fn_fwd(perturbed, vjp_arg, *args, **kwargs) -> (out, residuals)`.

        Returns:
            The rule, so that this is a decorator.
        """
        check_callable(fn_fwd, "def_fwd")
        self._rules.fwd, self._rules.dense = fn_fwd, False
        return fn_fwd

    def def_bwd(self, fn_bwd: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule for the way back.

        Args:
            fn_bwd: `fn_bwd(residuals, grad_out, perturbed, vjp_arg, *args, **kwargs)`, which
                returns the cotangent of `vjp_arg`.

        Returns:
            The rule, so that this is a decorator.
        """
        check_callable(fn_bwd, "def_bwd")
        self._rules.bwd, self._rules.dense = fn_bwd, False
        return fn_bwd

    def defvjp(self, fn_fwd: Callable[..., Any], fn_bwd: Callable[..., Any]) -> None:
        """Sets both rules, without `perturbed` and with zeros in `grad_out`. Deprecated.

        Args:
            fn_fwd: `fn_fwd(vjp_arg, *args, **kwargs) -> (out, residuals)`.
            fn_bwd: `fn_bwd(residuals, grad_out, vjp_arg, *args, **kwargs)`, which returns the
                cotangent of `vjp_arg`.

        Warns:
            DeprecationWarning: always.
        """
        warnings.warn(
            "`filter_custom_vjp.defvjp` is deprecated: use `def_fwd` and `def_bwd`, whose rules "
            "are also given `perturbed`, and None, not zeros, for a cotangent that is zero.",
            DeprecationWarning,
            stacklevel=2,
        )

        def fwd(perturbed: Any, /, *args: Any, **kwargs: Any) -> Any:
            return fn_fwd(*args, **kwargs)

        def bwd(residuals: Any, grad_out: Any, perturbed: Any, /, *args: Any, **kwargs: Any) -> Any:
            return fn_bwd(residuals, grad_out, *args, **kwargs)

        self.def_fwd(fwd)
        self.def_bwd(bwd)
        self._rules.dense = True

    def __call__(self, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        fun, rules = self._fun, self._rules
        if rules.fwd is None or rules.bwd is None:
            missing = "def_fwd" if rules.fwd is None else "def_bwd"
            raise RuleError(
                f"`{name_of(fun)}` is decorated with `filter_custom_vjp`, but `{missing}` was not "
                f"called yet. Add the rule with `@{name_of(fun)}.{missing}`."
            )
        (first, *rest), kwargs = _first_by_position(fun, args, kwargs)
        held, arrays = hold(first, fun, tuple(rest), kwargs)
        if not arrays:
            return fun(first, *rest, **kwargs)
        call = _Call(self, held)
        custom = jax.custom_vjp(call.run)
        custom.defvjp(call.fwd, call.bwd, symbolic_zeros=True)
        return call.returned.get(custom(*arrays))


looks_like_wrapped(filter_custom_vjp)


def _first_by_position(fun: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Rules take the first argument by position, so it goes there if it was given by name."""
    if args:
        return args, kwargs
    names = positional_parameters(fun)
    if not names or names[0] not in kwargs:
        raise ArgumentTypeError(
            f"The first argument of `{name_of(fun)}` is missing: it is the one that "
            f"`filter_custom_vjp` differentiates."
        )
    rest = {name: value for name, value in kwargs.items() if name != names[0]}
    return (kwargs[names[0]],), rest


class _Call:
    """One call: the function and its rules between flat lists of arrays.

    JAX may run each of them several times, or some of them never. What they leave here for each
    other holds no array.
    """

    def __init__(self, custom: filter_custom_vjp, held: Held) -> None:
        self.rules = custom._rules
        self.fun = custom._fun
        self.held = held
        self.returned = Returned()
        self.residuals = Returned()
        self.perturbed: list[bool] = []

    def run(self, *arrays: Any) -> Any:
        """The function."""
        first, fun, rest, kwargs = self.held.get(arrays)
        return self.returned.put(fun(first, *rest, **kwargs), is_array)[0]

    def fwd(self, *primals: Any) -> Any:
        """The rule for the way forward."""
        held, rules = self.held, self.rules
        perturbed = held.spread(
            [bool(p.perturbed) and is_inexact_array_like(p.value) for p in primals], False
        )
        self._check_perturbed(perturbed)
        self.perturbed = perturbed[: held.sizes[0]]
        first, _, rest, kwargs = held.get([p.value for p in primals])
        assert rules.fwd is not None
        answer = rules.fwd(self._perturbed_tree(), first, *rest, **kwargs)
        out, residuals = returns_pair(answer, self.fun, "forward rule", "(out, residuals)")
        outs = conform(self.returned, out, self.fun, "forward rule")
        kept, _ = self.residuals.put(residuals, is_array)
        return outs, ([p.value for p in primals], kept)

    def bwd(self, stored: Any, cotangents: Any) -> Any:
        """The rule for the way back."""
        primals, kept = stored
        first, _, rest, kwargs = self.held.get(primals)
        assert self.rules.bwd is not None
        grad = self.rules.bwd(
            self.residuals.get(kept), self._grad_out(cotangents), self._perturbed_tree(),
            first, *rest, **kwargs,
        )  # fmt: skip
        leaves = tree_leaves(first)
        slopes = match(first, grad, _NAMING)
        checked = [
            _as_cotangent(leaf, slope, first, i, self.fun)
            for i, (leaf, slope) in enumerate(zip(leaves, slopes, strict=True))
        ]
        checked += [None] * (len(self.held.leaves) - len(leaves))
        return tuple(checked[i] for i in self.held.positions)

    def _grad_out(self, cotangents: list[Any]) -> Any:
        values = [None if is_zero(c) else c for c in cotangents]
        if self.rules.dense:
            slots = [slot for slot in self.returned.slots() if slot.picked]
            values = [
                slot.zeros() if value is None and slot.differentiable else value
                for slot, value in zip(slots, values, strict=True)
            ]
        return self.returned.derivative(values)

    def _perturbed_tree(self) -> Any:
        return self.held.treedef.children()[0].unflatten(self.perturbed)

    def _check_perturbed(self, perturbed: list[bool]) -> None:
        count = self.held.sizes[0]
        if any(perturbed[count:]):
            paths = argument_paths(self.held.names()[1:], self.fun, skip=1)
            check_unperturbed(self.fun, paths, perturbed[count:], _WAY_OUT)


def _as_cotangent(leaf: Any, slope: Any, first: Any, index: int, fun: Any) -> Any:
    """What the backward rule returned for a leaf, as JAX accepts it."""
    if slope is None or not is_inexact_array(leaf):
        return None
    dtype = dtype_of(leaf)
    fits = is_array_like(slope) and (
        jnp.issubdtype(dtype, jnp.complexfloating) or not jnp.iscomplexobj(slope)
    )
    if fits and jnp.shape(slope) == jnp.shape(leaf):
        # A cotangent of another precision is cast, and not an error as a tangent is: JAX takes
        # it, and rules are written that rely on it.
        same = is_array(slope) and dtype_of(slope) == dtype
        return slope if same else jnp.asarray(slope, dtype)
    path = leaves_with_paths(first, root=_NAMING.root)[index][0]
    kind = ArgumentError if fits else ArgumentTypeError
    raise kind(
        f"The backward rule of `{name_of(fun)}` returned {describe(slope)} as the cotangent at "
        f"`{path}`, where the argument is {describe(Slot(leaf, True))}."
    )
