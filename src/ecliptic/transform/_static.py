"""Static leaves: what makes two of them the same to a compiled program."""

from typing import Any

import jax

from ecliptic.errors import StaticError
from ecliptic.module import Module
from ecliptic.tree import format_path, is_array

# Numbers whose `==` says less than a program can see: 0.0 == -0.0, and nan is not nan.
_BY_TEXT = frozenset({float, complex})


def static_key(leaf: Any) -> tuple[type, Any]:
    """What a static leaf is looked up by: its exact type and its value."""
    cls = type(leaf)
    return cls, repr(leaf) if cls in _BY_TEXT else leaf


def same_static(one: Any, other: Any) -> bool:
    """Whether two static leaves of the same type are the same to a program."""
    if one is other:
        return True
    if type(one) in _BY_TEXT:
        return repr(one) == repr(other)
    try:
        return bool(one == other)
    except Exception:
        # Compared for the first time: their hashes will tell, or say what is wrong with them.
        return False


def explain_unhashable(treedef: Any, leaves: list[Any], error: Exception) -> StaticError:
    """The error for arguments whose static part has no hash: names the leaf, or the field."""
    args, kwargs = jax.tree_util.tree_unflatten(treedef, leaves)
    for path, leaf in jax.tree_util.tree_flatten_with_path((args, kwargs))[0]:
        if is_array(leaf):
            continue
        problem = _hash_problem(leaf)
        if problem is not None:
            return StaticError(
                f"The leaf {_argument(path)} is no array, so it is static, and a static value must "
                f"be hashable; it is {leaf!r} of type `{type(leaf).__qualname__}` ({problem}). "
                f"Pass a hashable value (a tuple, a frozenset, a frozen dataclass), or wrap it in "
                f"`ecliptic.Static`."
            )
    found = _find_field((args, kwargs))
    if found is None:
        return StaticError(
            f"The structure of the arguments has no hash ({error}): a PyTree among them keeps an "
            f"unhashable value, such as a list or an array, as metadata. The structure is {treedef}."
        )
    where, cls, name, value, problem = found
    return StaticError(
        f"The static field `{name}` of the `{cls}` at {where} must be hashable; it holds "
        f"a `{type(value).__qualname__}` ({problem}). Use a tuple in place of a list, or drop "
        f"`static=True` if it holds arrays."
    )


def _hash_problem(value: Any) -> str | None:
    try:
        hash(value)
    except Exception as error:
        return str(error)
    return None


def _argument(path: Any) -> str:
    """A path into `(args, kwargs)`, as a caller would write it."""
    head, *rest = path
    return format_path(tuple(rest), "args" if head.idx == 0 else "kwargs")


def _find_field(tree: Any) -> tuple[str, str, str, Any, str] | None:
    """The first static field of a Module in the tree that has no hash."""
    nodes: list[Any] = []

    def visit(node: Any) -> bool:
        if isinstance(node, Module):
            nodes.append(node)
        return False

    paths = jax.tree_util.tree_flatten_with_path(tree, is_leaf=visit)[0]
    del paths
    for node in nodes:
        for name in type(node).__class_spec__.static:
            value = getattr(node, name)
            problem = _hash_problem(value)
            if problem is not None:
                return _where(tree, node), type(node).__qualname__, name, value, problem
    return None


def _where(tree: Any, node: Any) -> str:
    found = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: x is node)[0]
    return next(_argument(path) for path, leaf in found if leaf is node)
