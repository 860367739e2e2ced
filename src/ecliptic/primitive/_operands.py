"""What goes into a primitive and comes out of it, split into arrays and the rest.

A primitive of JAX takes and gives flat lists of arrays. What is no array goes in as a parameter,
and comes out through an `Output`: a parameter too, into which the rules of the primitive put it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten

from ecliptic import _jax
from ecliptic.errors import RuleError
from ecliptic.tree import is_array


class _Array:
    """Stands where an array is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<array>"


ARRAY: Any = _Array()


def is_traced(leaf: Any) -> bool:
    """Whether a leaf is an array, or the type of one, or what an operation is transposed by."""
    return is_array(leaf) or isinstance(leaf, _jax.ShapedArray) or _jax.is_undefined_primal(leaf)


def as_arrays(values: Sequence[Any]) -> list[Any]:
    """What JAX hands to a rule, as arrays: a number that `jax.grad` was given comes as one."""
    return [x if is_traced(x) else jnp.asarray(x) for x in values]


def fill(static: Sequence[Any], treedef: Any, arrays: Sequence[Any], other: Any = ARRAY) -> Any:
    """The tree of these arrays.

    Args:
        static: its other leaves, with a mark in place of each array.
        treedef: its structure.
        arrays: its arrays.
        other: what to put in place of the other leaves. Default: themselves.
    """
    rest = iter(arrays)
    return treedef.unflatten([
        next(rest) if leaf is ARRAY else leaf if other is ARRAY else other for leaf in static
    ])  # fmt: skip


class Given(NamedTuple):
    """A tree as a primitive is given it.

    Args:
        arrays: its arrays.
        static: its leaves, with a mark in place of each array. Programs of JAX among them can be
            found, and replaced, by whoever rewrites the parameters of operations.
        treedef: its structure.
    """

    arrays: list[Any]
    static: tuple[Any, ...]
    treedef: Any


def split(tree: Any, which: Callable[[Any], bool] = is_traced) -> Given:
    """Splits a tree.

    Args:
        tree: any tree.
        which: what counts as an array.
    """
    leaves, treedef = tree_flatten(tree)
    marked = tuple(ARRAY if which(leaf) else leaf for leaf in leaves)
    arrays = [leaf for leaf, mark in zip(leaves, marked, strict=True) if mark is ARRAY]
    return Given(arrays, marked, treedef)


class Output:
    """What is no array in the output of one operation."""

    __slots__ = ("static", "treedef")

    def __init__(self) -> None:
        self.static: tuple[Any, ...] | None = None
        self.treedef: Any = None

    def __repr__(self) -> str:
        return "..."

    def put(self, tree: Any) -> list[Any]:
        """Keeps what is no array, and returns the rest."""
        given = split(tree)
        self.static, self.treedef = given.static, given.treedef
        return given.arrays

    def tree(self, arrays: Sequence[Any], primitive: Any) -> Any:
        """The output with these arrays."""
        if self.static is None:
            raise RuleError(
                f"The primitive `{primitive}` was bound by `filter_primitive_bind`, and none of "
                "the rules that ran was made by `filter_primitive_def`, `filter_primitive_jvp` or "
                "`filter_primitive_batching`, so it is not known which tree its output is. Make "
                "all of its rules with these."
            )
        return fill(self.static, self.treedef, arrays)


def spread(tree: Any, like: Given | Output, what: str) -> list[Any]:
    """What a rule returned for a tree, for each leaf of that.

    Args:
        tree: what it returned: of the same structure, where `None` can stand for any part, and one
            value for all of a part.
        like: the tree that it is for.
        what: what messages call that which was returned.

    Raises:
        RuleError: if it does not fit, or says something of a leaf that is no array.
    """
    treedef = like.treedef
    try:
        try:
            leaves = treedef.flatten_up_to(tree)
        except ValueError:
            full = treedef.unflatten(range(treedef.num_leaves))
            leaves = treedef.flatten_up_to(
                jax.tree.broadcast(tree, full, is_leaf=lambda x: x is None)
            )
    except ValueError as error:
        got = jax.tree_util.tree_structure(tree)
        raise RuleError(
            f"{what} need to have the structure {treedef}, or be `None` for parts of it; they have "
            f"the structure {got}."
        ) from error
    return leaves
