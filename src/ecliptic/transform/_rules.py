"""What the two decorators for own derivatives share: rules, and what their outputs must be."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten

from ecliptic.errors import RuleError
from ecliptic.module import Partial, field
from ecliptic.transform._returned import Returned, Slot, dtype_of
from ecliptic.transform._tangents import describe
from ecliptic.transform._targets import positional_parameters
from ecliptic.transform._wrapper import AbstractWrapper, name_of
from ecliptic.tree import is_array, is_array_like, leaves_with_paths


class Rules:
    """The rules of one function. They are given after it, so this can be written to."""

    __slots__ = ("bwd", "dense", "fwd", "jvp")

    def __init__(self) -> None:
        self.jvp: Callable[..., Any] | None = None
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        # Whether the rules expect arrays of zeros, and not None.
        self.dense = False

    def __repr__(self) -> str:
        return "..."


class AbstractCustom(AbstractWrapper):
    """A function with rules of its own for its derivatives."""

    _rules: Rules = field(static=True, repr=False)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if isinstance(self._fun, classmethod | staticmethod):
            bound = self._fun.__get__(instance, owner)
            return jax.tree_util.tree_structure(self).unflatten([bound])
        return self if instance is None else Partial(self, instance)


def returns_pair(out: Any, fun: Any, rule: str, what: str) -> Any:
    """The two parts of what a rule returned."""
    if isinstance(out, tuple | list) and len(out) == 2:
        return out
    raise RuleError(
        f"The {rule} of `{name_of(fun)}` must return a pair, `{what}`; it returned {describe(out)}."
    )


def check_unperturbed(
    fun: Any, names: list[tuple[str, Any]], perturbed: list[bool], way_out: str
) -> None:
    """Refuses derivatives with respect to leaves that the rule knows nothing of.

    Args:
        fun: the function.
        names: the leaves that must not be perturbed, with their paths.
        perturbed: for each whether it is.
        way_out: the end of the message.
    """
    found = [path for (path, _), yes in zip(names, perturbed, strict=True) if yes]
    if found:
        raise RuleError(
            f"`{name_of(fun)}` has a rule of its own for its derivatives, which says nothing of "
            f"`{found[0]}`, and that is being differentiated. {way_out}"
        )


def conform(
    returned: Returned, out: Any, fun: Any, rule: str, wanted: list[bool] | None = None
) -> list[Any]:
    """The arrays of what a rule returned as the output of its function.

    Args:
        returned: what the function returned, or empty if the rule runs in its place.
        out: what the rule returned.
        fun: the function.
        rule: what messages call the rule.
        wanted: for each leaf of `out`, whether it needs to be an array. Default: those that are.

    Raises:
        RuleError: if the function returned something else.
    """
    leaves, treedef = tree_flatten(out)
    if returned.leaves is None:
        wants = iter(wanted or [False] * len(leaves))
        return returned.put(
            out, lambda leaf: (next(wants) and is_array_like(leaf)) or is_array(leaf)
        )[0]
    if treedef != returned.treedef:
        raise RuleError(
            f"The {rule} of `{name_of(fun)}` must return the output of the function, and returned "
            f"a tree of another structure: {treedef} where the function returns "
            f"{returned.treedef}."
        )
    return [
        _conform_leaf(slot, leaf, i, out, f"{rule} of `{name_of(fun)}`")
        for i, (slot, leaf) in enumerate(zip(returned.leaves, leaves, strict=True))
        if type(slot) is Slot
    ]


def _conform_leaf(slot: Slot, leaf: Any, index: int, out: Any, rule: str) -> Any:
    if is_array_like(leaf) and not is_array(leaf):
        leaf = jnp.asarray(leaf, slot.dtype)
    if is_array(leaf) and leaf.shape == slot.shape and dtype_of(leaf) == slot.dtype:
        return leaf
    path = leaves_with_paths(out, root="out")[index][0]
    raise RuleError(
        f"The {rule} must return the output of the function, and at `{path}` it returned "
        f"{describe(leaf)} where the function returns {describe(slot)}."
    )


def argument_paths(given: tuple[Any, ...], fun: Any, skip: int) -> list[tuple[str, Any]]:
    """The leaves of a function, its positional arguments and keywords, as messages name them.

    Args:
        given: the function as a tree, its positional arguments, its keyword arguments.
        fun: the function.
        skip: how many positional arguments are left out.
    """
    own, args, kwargs = given
    names = positional_parameters(fun)[skip:]
    paths = leaves_with_paths(own, root=name_of(fun))
    for i, arg in enumerate(args):
        root = names[i] if i < len(names) else f"args[{i + skip}]"
        paths += leaves_with_paths(arg, root=root)
    # (JAX sorts the keys of dictionaries.)
    for name in sorted(kwargs):
        paths += leaves_with_paths(kwargs[name], root=name)
    return paths
