"""Tangents and cotangents: trees that have the structure of what they belong to.

In them None stands for zero. It may stand at a leaf, and at a node for all leaves below.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.tree_util import tree_flatten, tree_structure
from jaxtyping import PyTree

from ecliptic.errors import ArgumentError, ArgumentTypeError, StructureError
from ecliptic.transform._returned import Slot, dtype_of
from ecliptic.tree import is_array, is_array_like, is_inexact_array_like, leaves_with_paths


class Naming(NamedTuple):
    """How messages speak of a tree of derivatives and of the tree that it belongs to.

    Args:
        kind: `tangent` or `cotangent`.
        root: where the derivatives are, such as `tangents`.
        of: what they belong to, such as `primals`.
    """

    kind: str
    root: str
    of: str


def is_zero(tangent: Any) -> bool:
    """Whether a tangent that JAX hands to a rule says that nothing changes."""
    # (A tangent may be a Python number, which has no dtype.)
    return type(tangent) is SymbolicZero or getattr(tangent, "dtype", None) == jax.dtypes.float0


def match(tree: PyTree, derivatives: PyTree, naming: Naming) -> list[Any]:
    """One derivative for each leaf of `tree`, None where it is zero.

    Raises:
        StructureError: if `derivatives` has another structure.
    """
    try:
        return tree_structure(tree).flatten_up_to(derivatives)
    except ValueError:
        pass
    # Slower, and allows None above the leaves.
    given, prefix = tree_flatten(derivatives, is_leaf=lambda node: node is None)
    try:
        parts = prefix.flatten_up_to(tree)
    except ValueError:
        raise _misfit(tree, derivatives, naming) from None
    matched: list[Any] = []
    for derivative, part in zip(given, parts, strict=True):
        structure = tree_structure(part)
        if derivative is not None and structure.num_nodes + structure.num_leaves != 2:
            raise _misfit(tree, derivatives, naming)
        matched += [derivative] * structure.num_leaves
    return matched


def _misfit(tree: PyTree, derivatives: PyTree, naming: Naming) -> StructureError:
    expected = [path for path, _ in leaves_with_paths(tree, root=naming.root)]
    given = leaves_with_paths(derivatives, root=naming.root, is_leaf=lambda node: node is None)
    missing = [p for p in expected if not any(_is_at_or_below(p, path) for path, _ in given)]
    extra = [path for path, value in given if value is not None and path not in set(expected)]
    if extra:
        below = [p for p in expected if any(_is_at_or_below(p, path) for path in extra)]
        where = f"`{naming.of}` has no leaf at {_listed(extra)}"
        where += f"; it has leaves at {_listed(below or missing)}" if below or missing else ""
    elif missing:
        where = f"nothing is given at {_listed(missing)}"
    else:
        where = (
            f"some nodes differ in their type or in their static part: "
            f"{tree_structure(derivatives)} where {tree_structure(tree)} is expected"
        )
    return StructureError(
        f"`{naming.root}` must have the structure of `{naming.of}`, with None for what has no "
        f"{naming.kind}: {where}."
    )


def _is_at_or_below(path: str, node: str) -> bool:
    return path == node or path.startswith((f"{node}[", f"{node}."))


def _listed(paths: Sequence[str], shown: int = 3) -> str:
    more = f" and {len(paths) - shown} more" if len(paths) > shown else ""
    return ", ".join(f"`{path}`" for path in paths[:shown]) + more


def check(tree: PyTree, slots: Sequence[Any], derivatives: PyTree, naming: Naming) -> list[Any]:
    """The derivatives as arrays that JAX accepts for these leaves, None where they are zero.

    Args:
        tree: what the derivatives belong to.
        slots: its leaves, or slots in their places.
        derivatives: a tree of the same structure, with None for what has no derivative.
        naming: names for messages.

    Raises:
        StructureError: if `derivatives` has another structure.
        ArgumentTypeError: if there is one where none can be, or of another dtype.
        ArgumentError: if one has another shape.
    """
    checked = []
    for i, (slot, value) in enumerate(zip(slots, match(tree, derivatives, naming), strict=True)):
        if value is None or type(value) is SymbolicZero:
            checked.append(None)
            continue
        slot = slot if type(slot) is Slot else Slot(slot, is_inexact_array_like(slot))
        try:
            checked.append(_check_leaf(slot, value, naming.kind))
        except (ArgumentError, ArgumentTypeError) as error:
            path = leaves_with_paths(tree, root=naming.root)[i][0]
            raise type(error)(f"The {naming.kind} at `{path}` {error}") from None
    return checked


def _check_leaf(slot: Slot, value: Any, kind: str) -> Any:
    if not slot.differentiable:
        if is_array(value) and value.dtype == jax.dtypes.float0:
            return None
        raise ArgumentTypeError(
            f"must be None, because what it belongs to has no derivative: that is "
            f"{describe(slot)}; got {describe(value)}."
        )
    if not is_array_like(value):
        raise ArgumentTypeError(f"must be an array, or None for zero; got {describe(value)}.")
    if jnp.shape(value) != slot.shape:
        raise ArgumentError(
            f"has shape {jnp.shape(value)}, but what it belongs to has shape {slot.shape}. A "
            f"{kind} has the shape of what it belongs to."
        )
    if not is_array(value):
        # A Python number has no dtype to disagree.
        return value if slot.type is type(value) else jnp.asarray(value, slot.dtype)
    if value.dtype == jax.dtypes.float0 or dtype_of(value) != slot.dtype:
        raise ArgumentTypeError(
            f"has dtype {value.dtype}, but what it belongs to has dtype {slot.dtype}. Cast it, "
            f"for instance with `.astype({str(slot.dtype)!r})`."
        )
    return value


def describe(value: Any) -> str:
    """A value in words."""
    if is_array(value) or (type(value) is Slot and value.dtype is not None):
        return f"an array of shape {tuple(value.shape)} and dtype {value.dtype}"
    if type(value) is Slot:
        return f"an object of type `{value.type.__qualname__}`"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of length {len(value)}"
    return "None" if value is None else f"{value!r} of type `{type(value).__qualname__}`"
