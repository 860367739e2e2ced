"""What every loop and branch does with its trees.

A tree is split into *traced* leaves, which go through JAX as a flat list, and *held* ones, which
wait here and are put back before the user's function sees the tree. What the function returns is
compared with what it was given: a held leaf may not change, since there is one program for all
steps, and a traced one keeps shape and dtype. All that differs is told in one error.

A Python number is held as long as the function returns it unchanged. If it changes, the tree is
split anew with that number traced, as `jax.lax` would have it, and the function traced once more.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
from jax.tree_util import tree_flatten, tree_flatten_with_path

from ecliptic.errors import CarryError
from ecliptic.transform import same_static
from ecliptic.tree import first_difference, format_path, is_array, tree_pformat
from ecliptic.tree._passage import Passage

# Python's own numbers, of which JAX makes weakly typed arrays.
_NUMBERS = frozenset({bool, int, float, complex})

NOTHING: Any = object()


class Promote(Exception):
    """Raised out of a trace: these numbers changed, so they have to be traced.

    Args:
        positions: which leaves, in the order of flattening.
    """

    def __init__(self, positions: Iterable[int]) -> None:
        super().__init__(positions)
        self.positions = frozenset(positions)


def with_promotion(
    attempt: Callable[[frozenset[int]], Any], learn: Callable[[frozenset[int]], None]
) -> Any:
    """Runs `attempt` with the numbers to trace, anew each time it finds that there are more.

    `learn` is told of them.
    """
    promoted: frozenset[int] = frozenset()
    while True:
        try:
            return attempt(promoted)
        except Promote as more:
            promoted = promoted | more.positions
            learn(promoted)


def is_number(leaf: Any) -> bool:
    """Whether a leaf is a Python number, which can become an array."""
    return type(leaf) in _NUMBERS


class Split:
    """A tree, split into traced and held leaves.

    Args:
        tree: any PyTree.
        promoted: positions of Python numbers that are traced all the same.
    """

    def __init__(self, tree: Any, promoted: frozenset[int] = frozenset()) -> None:
        self.leaves, self.treedef = tree_flatten(tree)
        self.traced = [i for i, leaf in enumerate(self.leaves) if i in promoted or is_array(leaf)]
        self.arrays = [self.leaves[i] for i in self.traced]
        self._passage = Passage()

    def merge(self, arrays: Sequence[Any]) -> Any:
        """The tree with these in place of its traced leaves."""
        return self.treedef.unflatten(self._filled(arrays))

    def enter(self, arrays: Sequence[Any]) -> Any:
        """The same, for the user's function: what is used up in there is in the tree, after all."""
        return self._passage.unflatten(self.treedef, self._filled(arrays))

    def finish(self) -> None:
        """Use up in the tree what was used up in the user's function."""
        self._passage.finish()

    def _filled(self, arrays: Sequence[Any]) -> list[Any]:
        leaves = self.leaves.copy()
        for i, array in zip(self.traced, arrays, strict=True):
            leaves[i] = array
        return leaves

    def described(self) -> "Split":
        """The same, with a mere description in place of each array: it may outlive a trace."""
        for i in self.traced:
            old = jax.typeof(self.leaves[i])
            weak = getattr(old, "weak_type", False)
            self.leaves[i] = jax.ShapeDtypeStruct(old.shape, old.dtype, weak_type=weak)
        self.arrays = []
        return self

    def accept(self, returned: Any, say: "Wording") -> list[Any]:
        """The traced leaves of a tree that has to be like this one.

        Raises:
            Promote: if nothing but Python numbers changed.
            CarryError: if anything else did.
        """
        leaves, treedef = tree_flatten(returned)
        if treedef != self.treedef:
            raise CarryError(say.error(_structural(self.tree, returned, say)))
        traced = set(self.traced)
        promote = []
        changes: dict[int, str] = {}
        for i, (before, after) in enumerate(zip(self.leaves, leaves, strict=True)):
            if i in traced:
                changes[i] = _array_change(before, after, say)
            elif not _unchanged(before, after):
                if is_number(before) and (is_number(after) or is_array(after)):
                    promote.append(i)
                else:
                    changes[i] = _held_change(before, after, say)
        wrong = {i: text for i, text in changes.items() if text}
        if wrong:
            paths = [path for path, _ in tree_flatten_with_path(self.tree)[0]]
            raise CarryError(say.error([(paths[i], text) for i, text in wrong.items()]))
        if promote:
            raise Promote(promote)
        return [leaves[i] for i in self.traced]

    @property
    def tree(self) -> Any:
        """The tree that was split."""
        return self.treedef.unflatten(self.leaves)


def _unchanged(before: Any, after: Any) -> bool:
    return before is after or (type(before) is type(after) and same_static(before, after))


def show(leaf: Any) -> str:
    """A leaf in an error message, in one line; of anything else, its type."""
    if not jax.tree_util.all_leaves([leaf]):
        return "None" if leaf is None else f"a `{type(leaf).__qualname__}`"
    text = tree_pformat(leaf, struct_as_array=True)
    return text if len(text) <= 80 and "\n" not in text else f"a `{type(leaf).__qualname__}`"


def _held_change(before: Any, after: Any, say: "Wording") -> str:
    becomes = f"a `{type(before).__qualname__}` cannot become an array"
    return f"{say.pair(before, after)}; {becomes if is_array(after) else say.held}"


def _array_change(before: Any, after: Any, say: "Wording") -> str:
    """What is wrong with `after` in the place of the array `before`; empty if nothing is."""
    if not (is_array(after) or is_number(after)):
        return f"{say.pair(before, after)}, which is no array"
    old, new = jax.typeof(before), jax.typeof(after)
    if old.shape != new.shape:
        return f"{say.pair(before, after)}: the shapes differ"
    # A weakly typed carry takes the dtype of what replaces it; JAX traces the loop anew then.
    lenient = say.weak_gives_way and getattr(old, "weak_type", False)
    if old.dtype != new.dtype and not lenient:
        return f"{say.pair(before, after)}: the dtypes differ"
    return ""


def _structural(before: Any, after: Any, say: "Wording") -> list[tuple[Any, str]]:
    """Where two trees of different structure differ: every leaf that only one of them has."""
    old = dict(tree_flatten_with_path(before, is_leaf=lambda x: x is None)[0])
    new = dict(tree_flatten_with_path(after, is_leaf=lambda x: x is None)[0])
    changes = []
    for path in [*old, *(path for path in new if path not in old)]:
        one, other = old.get(path, NOTHING), new.get(path, NOTHING)
        if one is NOTHING or other is NOTHING or (one is None) != (other is None):
            changes.append((path, say.pair(one, other)))
    return changes or [(None, first_difference(before, after, None))]


@dataclasses.dataclass(frozen=True)
class Wording:
    """How one construct tells of trees that differ where they must not.

    Args:
        construct: its public name.
        root: what the tree is, for instance `"carry"`; the root of all paths.
        happened: what went wrong, as a sentence that ends in a colon.
        one: what to say after a leaf of the first tree.
        other: what to say after a leaf of the second.
        held: why a leaf that is no array may not differ.
        rule: what has to hold, and the ways out.
        weak_gives_way: whether a weakly typed array takes the dtype of its counterpart.
    """

    construct: str
    root: str
    happened: str
    one: str
    other: str
    held: str
    rule: str
    weak_gives_way: bool

    def pair(self, one: Any, other: Any) -> str:
        """Two counterparts side by side."""
        texts = ["nothing" if x is NOTHING else show(x) for x in (one, other)]
        return f"{texts[0]} {self.one}, {texts[1]} {self.other}"

    def error(self, changes: Sequence[tuple[Any, str]]) -> str:
        """The message: one line for each leaf, by path."""
        lines = [
            f"  {self.root if path is None else format_path(path, self.root)}: {text}"
            for path, text in changes
        ]
        return "\n".join([f"`{self.construct}`: {self.happened}", *lines, self.rule])


def loop_wording(construct: str) -> Wording:
    """The wording of a loop over a carry."""
    return Wording(
        construct=construct,
        root="carry",
        happened="the function returned a carry that differs from the one that it was given:",
        one="before",
        other="after",
        held="it is no array, so it is the same in every step",
        rule="A carry keeps its structure, its shapes and dtypes, and everything in it that is no "
        "array. Convert an array with `.astype(...)` or `.reshape(...)`; start with the dtype "
        "that the loop produces; to choose between functions in a loop, carry an integer and use "
        "`ecliptic.filter_switch`; return what is new in each step as an output of a scan.",
        weak_gives_way=True,
    )


def branch_wording(construct: str, one: str, other: str) -> Wording:
    """The wording of two branches whose outputs differ."""
    return Wording(
        construct=construct,
        root="output",
        happened=f"{one} and {other} returned outputs that differ:",
        one=f"from {one}",
        other=f"from {other}",
        held="it is no array, so it cannot depend on which branch is taken",
        rule="All branches return the same structure, shapes and dtypes, and the same values where "
        "these are no arrays. Convert an array with `.astype(...)` or `.reshape(...)`; decide what "
        "is no array outside, with Python's own `if`.",
        weak_gives_way=False,
    )
