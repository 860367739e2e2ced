"""The kinds of loops: which derivatives they have, and what these cost."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from jax.tree_util import tree_flatten, tree_flatten_with_path, tree_leaves, tree_map

from ecliptic.control._carry import Split, show
from ecliptic.control._loops import (
    Buffer,
    bounded_while_loop,
    checkpointed_scan,
    checkpointed_while_loop,
    lax_scan,
    lax_while_loop,
)
from ecliptic.errors import ArgumentError
from ecliptic.runtime._active import only_where
from ecliptic.tree import format_path

# How many steps a segment of a bounded loop has at least.
_BASE = 16


@dataclasses.dataclass(frozen=True)
class WhileKind:
    """How a while loop runs.

    Args:
        name: `"lax"`, `"checkpointed"` or `"bounded"`.
        max_steps: the largest number of steps.
        checkpoints: how many states a checkpointed loop keeps.
        base: how many steps are a segment: of a bounded loop at least.
    """

    name: str
    max_steps: int | None
    checkpoints: int | None
    base: int | None

    def check(self) -> None:
        """Raises an error if these do not go together."""
        _check_kind("filter_while_loop", self.name, ("lax", "checkpointed", "bounded"))
        _check_checkpoints("filter_while_loop", self.name, self.checkpoints)
        if self.max_steps is not None and self.max_steps < 0:
            raise ArgumentError(
                f"`filter_while_loop(max_steps=...)` must not be negative; got {self.max_steps}."
            )
        if self.name == "bounded" and self.max_steps is None:
            raise ArgumentError(
                '`filter_while_loop(kind="bounded")` needs `max_steps=`, the largest number of '
                'steps. If that is not known, use `kind="checkpointed"`.'
            )
        if self.base is not None and self.name == "lax":
            raise ArgumentError(
                '`filter_while_loop(base=...)` is for `kind="checkpointed"` and `kind="bounded"`; '
                'got kind="lax".'
            )
        if self.base is not None and self.base < 1:
            raise ArgumentError(
                f"`filter_while_loop(base=...)` is a number of steps, at least 1; got {self.base}."
            )

    def run(
        self,
        cond: Callable[[list[Any]], Any],
        body: Callable[[list[Any]], list[Any]],
        init: list[Any],
        buffers: Sequence[bool],
    ) -> list[Any]:
        """Runs a loop over a list of arrays; whatever comes after `buffers` is none."""
        flags = [*buffers, *([False] * (len(init) - len(buffers)))]
        body = only_where(body, cond)
        if self.name == "checkpointed":
            return checkpointed_while_loop(
                cond, body, init,
                max_steps=self.max_steps, checkpoints=self.checkpoints, stride=self.base,
                buffers=flags,
            )  # fmt: skip
        if self.name == "bounded":
            assert self.max_steps is not None
            base = _BASE if self.base is None else self.base
            return bounded_while_loop(
                cond, body, init, max_steps=self.max_steps, base=base, buffers=flags
            )
        return lax_while_loop(cond, body, init, max_steps=self.max_steps, buffers=flags)


@dataclasses.dataclass(frozen=True)
class ScanKind:
    """How a scan runs.

    Args:
        name: `"lax"` or `"checkpointed"`.
        checkpoints: how many states a checkpointed scan keeps.
        reverse: whether to go from the last step to the first.
        unroll: how many steps are written out.
        split_transpose: as in `jax.lax.scan`.
    """

    name: str
    checkpoints: int | None
    reverse: bool
    unroll: int | bool
    split_transpose: bool

    def check(self) -> None:
        """Raises an error if these do not go together."""
        _check_kind("filter_scan", self.name, ("lax", "checkpointed"))
        _check_checkpoints("filter_scan", self.name, self.checkpoints)

    def run(
        self,
        step: Callable[[list[Any], list[Any]], tuple[list[Any], Any]],
        init: list[Any],
        xs: list[Any],
        length: int,
        buffers: Sequence[bool],
    ) -> tuple[list[Any], Any]:
        """Runs a scan over lists of arrays."""
        step = only_where(step, None)
        if self.name == "checkpointed":
            return checkpointed_scan(
                step, init, xs, length,
                reverse=self.reverse, unroll=self.unroll, checkpoints=self.checkpoints,
                buffers=buffers,
            )  # fmt: skip
        return lax_scan(
            step, init, xs, length,
            reverse=self.reverse, unroll=self.unroll, split_transpose=self.split_transpose,
            buffers=buffers,
        )  # fmt: skip


def _check_kind(construct: str, kind: str, known: Sequence[str]) -> None:
    if kind not in known:
        choices = ", ".join(f'"{name}"' for name in known)
        raise ArgumentError(f"`{construct}(kind=...)` is one of {choices}; got {kind!r}.")


def _check_checkpoints(construct: str, kind: str, checkpoints: int | None) -> None:
    if checkpoints is None:
        return
    if kind != "checkpointed":
        raise ArgumentError(
            f'`{construct}(checkpoints=...)` is for `kind="checkpointed"`; got kind="{kind}".'
        )
    if checkpoints < 1:
        raise ArgumentError(
            f"`{construct}(checkpoints=...)` is how many states are kept, at least 1; got "
            f"{checkpoints}."
        )


def buffer_flags(construct: str, carry: Split, buffers: Any) -> list[bool]:
    """Which arrays of a carry the user has selected as buffers.

    Args:
        construct: the loop's public name.
        carry: the carry.
        buffers: the user's function from the carry to one of its nodes or a sequence of them.
    """
    if buffers is None:
        return [False] * len(carry.traced)
    selected = tree_leaves(buffers(carry.treedef.unflatten(range(len(carry.leaves)))))
    foreign = [x for x in selected if type(x) is not int]
    if foreign:
        raise ArgumentError(
            f"`{construct}(buffers=...)` returns nodes of the carry, as in "
            f"`buffers=lambda carry: carry.history`; it returned something else: "
            f"{show(foreign[0])}."
        )
    held = sorted(set(selected).difference(carry.traced))
    if held:
        paths = [path for path, _ in tree_flatten_with_path(carry.tree)[0]]
        raise ArgumentError(
            f"`{construct}(buffers=...)` selects arrays of the carry; "
            f"{format_path(paths[held[0]], 'carry')} is {show(carry.leaves[held[0]])}."
        )
    return [i in selected for i in carry.traced]


def without_buffers(tree: Any) -> Any:
    """What a loop's function returned, with arrays in the place of buffers."""
    return tree_map(lambda x: x.unwrap() if _is_buffer(x) else x, tree, is_leaf=_is_buffer)


def _is_buffer(node: Any) -> bool:
    return isinstance(node, Buffer)


class Lent:
    """The buffers of a loop around this one that are in the carry of this one.

    They are buffers in this one too, whether or not it selects them, and are written only where
    both loops would.

    Args:
        carry: the carry of this loop. `tree` is the same with arrays in the place of buffers.
    """

    def __init__(self, carry: Any) -> None:
        leaves, treedef = tree_flatten(carry, is_leaf=_is_buffer)
        self._buffers = {i: leaf for i, leaf in enumerate(leaves) if _is_buffer(leaf)}
        for i, buffer in self._buffers.items():
            leaves[i] = buffer.unwrap()
        self.tree = treedef.unflatten(leaves) if self._buffers else carry

    def flags(self, selected: Sequence[bool], carry: Split) -> list[bool]:
        """Which arrays of the carry are buffers, given which of them this loop selects."""
        return [x or i in self._buffers for i, x in zip(carry.traced, selected, strict=True)]

    def inside(self, arrays: Sequence[Any], carry: Split) -> list[Any]:
        """The arrays as the functions of this loop see them."""
        pairs = zip(carry.traced, arrays, strict=True)
        return [x.within(self._buffers[i]) if i in self._buffers else x for i, x in pairs]

    def back(self, carry: Any) -> Any:
        """The carry at the end of this loop, for the one around it."""
        if not self._buffers:
            return carry
        leaves, treedef = tree_flatten(carry)
        for i, buffer in self._buffers.items():
            leaves[i] = buffer.holding(leaves[i])
        return treedef.unflatten(leaves)
