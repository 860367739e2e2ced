"""Are these trees equal?"""

import operator
from functools import reduce
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from ecliptic import _jax
from ecliptic.errors import LeafError, StructureError
from ecliptic.tree._one_level import PyTreeDef, children_with_keys
from ecliptic.tree._paths import KeyPath, format_path
from ecliptic.tree._predicates import is_array, is_inexact_dtype, is_key_dtype

Tolerance: TypeAlias = Float[Array, ""] | Float[np.ndarray, ""] | np.number | float


def tree_equal(
    *pytrees: PyTree,
    typematch: bool = False,
    rtol: Tolerance = 0.0,
    atol: Tolerance = 0.0,
) -> bool | Bool[Array, ""]:
    """Return whether PyTrees are equal: in structure, in static parts, and in each leaf.

    Arrays are equal if shape, dtype and every element are; a NaN is unequal to everything. An
    array of JAX equals one of NumPy unless `typematch`, and neither equals a Python number. Other
    leaves are compared with `==`.

    Args:
        *pytrees: the PyTrees, at least one.
        typematch: whether the types of leaves have to match too: then `1` and `1.0` differ, and
            so do arrays of JAX and of NumPy.
        rtol: relative tolerance for elements of inexact arrays, as in `numpy.isclose`.
        atol: absolute tolerance for them.

    Returns:
        A `bool`; or, if arrays of JAX have to be compared element by element, a boolean array
        of JAX, traced if one of them is.

    Raises:
        StructureError: no PyTree was given, or static parts cannot be compared, because they hold
            arrays.
        LeafError: two leaves cannot be compared.

    >>> import jax.numpy as jnp
    >>> tree_equal({"a": jnp.ones(2)}, {"a": jnp.ones(2)})
    Array(True, dtype=bool)
    >>> tree_equal([1, 2], (1, 2))
    False
    """
    if not pytrees:
        raise StructureError("tree_equal() needs at least one PyTree, and got none.")
    equal, of_jax = equality(pytrees, typematch, rtol, atol)
    return jnp.asarray(equal) if of_jax else equal


def equality(
    pytrees: tuple[PyTree, ...],
    typematch: bool = False,
    rtol: Tolerance = 0.0,
    atol: Tolerance = 0.0,
) -> tuple[bool | Bool[Array, ""], bool]:
    """Whether PyTrees are equal, as a `bool` unless traced arrays decide.

    Returns:
        The answer, and whether elements of arrays of JAX were compared for it.
    """
    exact = type(rtol) is float and type(atol) is float and rtol == 0 and atol == 0
    tolerance = None if exact else (rtol, atol)
    first, *others = pytrees
    leaves, treedef = jtu.tree_flatten(first)
    columns = []
    for other in others:
        other_leaves, other_treedef = jtu.tree_flatten(other)
        if not _same_structure(treedef, other_treedef, first, other):
            return False, False
        columns.append(other_leaves)
    pending: list[Any] = []
    of_jax = False
    for column in columns:
        for number, (x, y) in enumerate(zip(leaves, column, strict=True)):
            try:
                same = _same_leaf(x, y, typematch, tolerance)
            except (TypeError, ValueError, jax.errors.JAXTypeError) as error:
                raise _cannot_compare(first, number, x, y) from error
            if same is False:
                return False, False
            of_jax = of_jax or isinstance(x, jax.Array) or isinstance(y, jax.Array)
            if same is not True:
                pending.append(same)
    return _all(pending), of_jax


def _all(pending: list[Any]) -> Any:
    # Results on devices are waited for only after all of them are under way.
    traced = [same for same in pending if isinstance(same, _jax.Tracer)]
    if not all(bool(same) for same in pending if not isinstance(same, _jax.Tracer)):
        return False
    return reduce(operator.and_, traced) if traced else True


def _same_structure(a: PyTreeDef, b: PyTreeDef, first: PyTree, other: PyTree) -> bool:
    try:
        return a == b
    except (TypeError, ValueError, jax.errors.JAXTypeError) as error:
        path, node = _incomparable_node(first, other, ())
        raise StructureError(
            f"cannot compare the static parts of two {type(node).__name__} at "
            f"`{format_path(path, 'pytree')}`: {error}. Static fields must hold values whose `==` "
            "says True or False, not arrays: make the field an ordinary one."
        ) from error


def _incomparable_node(first: PyTree, other: PyTree, path: KeyPath) -> tuple[KeyPath, Any]:
    """Find the innermost node at which two tree structures refuse to be compared."""
    children, others = children_with_keys(first) or [], children_with_keys(other) or []
    for (key, child), (_, other_child) in zip(children, others, strict=False):
        try:
            bool(jtu.tree_structure(child) == jtu.tree_structure(other_child))
        except (TypeError, ValueError, jax.errors.JAXTypeError):
            return _incomparable_node(child, other_child, (*path, key))
    return path, first


def _same_leaf(x: Any, y: Any, typematch: bool, tolerance: tuple[Any, Any] | None) -> Any:
    if is_array(x):
        return is_array(y) and _same_array(x, y, typematch, tolerance)
    if is_array(y) or (typematch and type(x) is not type(y)):
        return False
    return bool(x == y)


def _same_array(x: Any, y: Any, typematch: bool, tolerance: tuple[Any, Any] | None) -> Any:
    if typematch and _kind(x) is not _kind(y):
        return False
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if is_key_dtype(x.dtype):
        return x is y or _same_array(
            jax.random.key_data(x), jax.random.key_data(y), typematch=False, tolerance=None
        )
    inexact = is_inexact_dtype(x.dtype)
    if x is y and not inexact:
        return True
    traced = isinstance(x, _jax.Tracer) or isinstance(y, _jax.Tracer)
    if traced or _on_one_accelerator(x, y):
        return _compare(x, y, tolerance if inexact else None, jnp)
    # (No `bool`: unlike other shapes and dtypes, other elements are no other kind of tree.)
    return np.bool_(_compare(np.asarray(x), np.asarray(y), tolerance if inexact else None, np))


def _compare(x: Any, y: Any, tolerance: tuple[Any, Any] | None, xp: Any) -> Any:
    if tolerance is None:
        return (x == y).all() if x.ndim else x == y
    rtol, atol = tolerance
    if not jnp.issubdtype(x.dtype, jnp.complexfloating) and x.dtype.itemsize < 4:
        # NumPy knows no tolerance for the extended floating types.
        x, y = x.astype(np.float32), y.astype(np.float32)
    return xp.isclose(x, y, rtol=rtol, atol=atol).all()


def _kind(x: Any) -> type:
    # Tracers, and literals inside traces, are JAX arrays like any other.
    return jax.Array if isinstance(x, (jax.Array, _jax.TypedNdArray)) else type(x)


def _on_one_accelerator(x: Any, y: Any) -> bool:
    """Whether to compare on the device: it saves the way to the host, which on CPUs is free."""
    if not (isinstance(x, jax.Array) and isinstance(y, jax.Array)):
        return False
    devices = x.devices()
    if not (x.is_fully_addressable and y.is_fully_addressable):
        return True
    return devices == y.devices() and next(iter(devices)).platform != "cpu"


def _cannot_compare(first: PyTree, number: int, x: Any, y: Any) -> LeafError:
    path, _ = jtu.tree_flatten_with_path(first)[0][number]
    return LeafError(
        f"cannot compare the leaves at `{format_path(path, 'pytree')}`, of types "
        f"{type(x).__name__} and {type(y).__name__}: `==` does not say True or False."
    )
