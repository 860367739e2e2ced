"""Donation: which of the arrays in the arguments a compiled function may write over."""

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

from ecliptic.errors import ArgumentError

DonateMode = Literal["all", "all-except-first", "warn", "warn-except-first", "none"]

MODES: tuple[str, ...] = get_args(DonateMode)

_KINDS = inspect.Parameter


@dataclasses.dataclass(frozen=True, slots=True)
class Donation:
    """What is donated.

    Args:
        mode: one of `MODES`; `"names"` if arguments are named.
        names: the names of the donated arguments.
        parameters: name and kind of each parameter of the function, if arguments are named.
        bound: how many arguments come before those of a call: one if the function is a PyTree.
    """

    mode: str
    names: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Any], ...] = ()
    bound: int = 0

    @property
    def silent(self) -> bool:
        """Whether donations that JAX cannot use go without a warning."""
        return self.mode.startswith("all")

    def leaves(self, traced: list[int], treedef: Any) -> set[int]:
        """Which of the traced leaves are donated.

        Args:
            traced: positions of the traced leaves.
            treedef: that of `(args, kwargs)`.
        """
        if self.mode == "none":
            return set()
        if self.mode in ("all", "warn"):
            return set(traced)
        wanted: set[int] = set()
        start = 0
        args, kwargs = treedef.children()
        keys = kwargs.node_data()[1] if kwargs.num_leaves else []
        owners = [*range(len(args.children())), *keys]
        for owner, child in zip(owners, [*args.children(), *kwargs.children()], strict=False):
            if self._gives(owner):
                wanted.update(range(start, start + child.num_leaves))
            start += child.num_leaves
        return wanted.intersection(traced)

    def _gives(self, owner: int | str) -> bool:
        """Whether the argument at this position, or of this name, is donated."""
        if self.mode.endswith("except-first"):
            return owner != 0
        return self._parameter(owner) in self.names

    def _parameter(self, owner: int | str) -> str | None:
        """The parameter that an argument goes to."""
        if isinstance(owner, str):
            if owner in (name for name, _ in self.parameters):
                return owner
            return next((n for n, kind in self.parameters if kind is _KINDS.VAR_KEYWORD), None)
        position = owner - self.bound
        if position < 0:
            return None
        by_position = [
            name
            for name, kind in self.parameters
            if kind in (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)
        ]
        if position < len(by_position):
            return by_position[position]
        return next((n for n, kind in self.parameters if kind is _KINDS.VAR_POSITIONAL), None)


def as_donation(donate: str | Sequence[str], fun: Callable[..., Any], *, bound: int) -> Donation:
    """What `donate=` says.

    Raises:
        ArgumentError: if it is neither a mode nor names of parameters.
    """
    if isinstance(donate, str) and donate in MODES:
        return Donation(donate, bound=bound)
    names = (donate,) if isinstance(donate, str) else tuple(donate)
    try:
        parameters = inspect.signature(fun).parameters
    except (TypeError, ValueError):
        parameters = {}
    unknown = [name for name in names if name not in parameters]
    if unknown:
        raise ArgumentError(
            f"`filter_jit(donate=...)` is one of {', '.join(map(repr, MODES))}, or names "
            f"parameters of the function; got {donate!r}, and the parameters are "
            f"{', '.join(map(repr, parameters)) or 'unknown'}."
        )
    kinds = tuple((name, parameter.kind) for name, parameter in parameters.items())
    return Donation("names", names, kinds, bound)
