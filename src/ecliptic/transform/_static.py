"""Static leaves: what makes two of them the same to a compiled program."""

from typing import Any

import jax

from ecliptic.errors import StaticError
from ecliptic.module import is_module
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


def explain(treedef: Any, leaves: list[Any], error: Exception) -> StaticError:
    """The error for arguments whose static part could not be looked up: names leaf or field.

    Leaves are looked up by hash. JAX leaves metadata, and with it static fields, out of the hash of
    a treedef, so these are compared with `==` only; arrays among them are what fails there.
    """
    args, kwargs = jax.tree_util.tree_unflatten(treedef, leaves)
    for path, leaf in jax.tree_util.tree_flatten_with_path((args, kwargs))[0]:
        problem = None if is_array(leaf) else _hash_problem(leaf)
        if problem is not None:
            return StaticError(
                f"The leaf {argument_path(path)} is no array, so it is static, and a static value "
                f"must be hashable; it is {leaf!r} of type `{type(leaf).__qualname__}` "
                f"({problem}). Pass a hashable value (a tuple, a frozenset, frozen dataclass), or "
                f"wrap it in `ecliptic.Static`."
            )
    found = _field_with_array((args, kwargs))
    if found is not None:
        where, cls, name, array = found
        return StaticError(
            f"The static field `{name}` of the `{cls}` at {where} holds an array of shape "
            f"{array.shape} and dtype {array.dtype}. Static values are compared with `==` at each "
            f"call, and arrays cannot be ({error}). Drop `static=True` from `{name}`."
        )
    return StaticError(
        f"The structure of the arguments cannot be compared with that of an earlier call "
        f"({type(error).__name__}: {error}): a PyTree among them keeps an array, or another value "
        f"that `==` does not compare, as metadata. The structure is {treedef}."
    )


def _hash_problem(value: Any) -> str | None:
    try:
        hash(value)
    except Exception as error:
        return str(error)
    return None


def argument_path(path: Any) -> str:
    """A path into `(args, kwargs)`, as a caller would write it."""
    head, *rest = path
    return format_path(tuple(rest), "args" if head.idx == 0 else "kwargs")


def _field_with_array(tree: Any) -> tuple[str, str, str, Any] | None:
    """The first static field of a Module in the tree that holds an array."""
    nodes: list[Any] = []

    def visit(node: Any) -> bool:
        if is_module(node):
            nodes.append(node)
        return False

    jax.tree_util.tree_leaves(tree, is_leaf=visit)
    for node in nodes:
        for name in type(node).__class_spec__.static:
            for value in jax.tree_util.tree_leaves(getattr(node, name)):
                if is_array(value):
                    return _where(tree, node), type(node).__qualname__, name, value
    return None


def _where(tree: Any, node: Any) -> str:
    found = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: x is node)[0]
    return next(argument_path(path) for path, leaf in found if leaf is node)
