"""PyTrees as text.

The layout is that of `wadler_lindig`. What a leaf looks like is decided by, in this order: a
formatter that was registered for its type, the rules of this module for arrays and functions, a
`__pdoc__` method of the object, and the defaults of `wadler_lindig`.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import numpy as np
import wadler_lindig as wl

from ecliptic import _jax
from ecliptic.tree._predicates import is_key_dtype

Document: TypeAlias = wl.AbstractDoc
Formatter: TypeAlias = Callable[[Any, Callable[[Any], Document]], Document | None]

_formatters: dict[type, Formatter] = {}


def register_formatter(cls: type, formatter: Formatter) -> None:
    """Say how values of a class, and of its subclasses, are printed.

    Args:
        cls: the class. The formatter of the nearest class in the method resolution order wins.
        formatter: called with the value and with a function that makes the document of any part
            of it; returns a `wadler_lindig` document, or `None` to leave the value to the defaults.

    >>> class Celsius:
    ...     degrees = 20
    >>> register_formatter(Celsius, lambda value, format: wl.TextDoc(f"{value.degrees} °C"))
    >>> tree_pformat([Celsius()])
    '[20 °C]'
    """
    _formatters[cls] = formatter


def _never(_: Any) -> bool:
    return False


class TreeWLCustom:
    """The `custom=` argument of `wadler_lindig` that prints PyTrees as `tree_pformat` does.

    Args:
        truncate_leaf: which values to print as `name(...)`.
        short_arrays: whether arrays are printed as `f32[2,3]`, or with their elements.
        struct_as_array: whether a `jax.ShapeDtypeStruct` is printed like an array.
        indent: by how much each level is indented, as given to `wadler_lindig` itself.

    >>> import jax.numpy as jnp
    >>> wl.pformat([jnp.ones(2)], custom=TreeWLCustom(lambda _: False, True, False))
    '[f32[2]]'
    """

    __slots__ = ("indent", "short_arrays", "struct_as_array", "truncate_leaf")

    def __init__(
        self,
        truncate_leaf: Callable[[Any], bool],
        short_arrays: bool,
        struct_as_array: bool,
        indent: int = 2,
    ) -> None:
        self.truncate_leaf = truncate_leaf
        self.short_arrays = short_arrays
        self.struct_as_array = struct_as_array
        self.indent = indent

    def __call__(self, obj: Any) -> Document | None:
        """Return the document of `obj`, or `None` to leave it to the defaults."""
        if self.truncate_leaf(obj):
            return wl.TextDoc(f"{type(obj).__name__}(...)")
        cls = type(obj)
        if _formatters:
            for base in cls.__mro__:
                formatter = _formatters.get(base)
                if formatter is not None:
                    return formatter(obj, self._document)
        if cls in _PLAIN:
            return None
        if isinstance(obj, (jax.Array, _jax.TypedNdArray)):
            return _array(obj) if self.short_arrays else wl.TextDoc(repr(obj))
        if cls is jax.ShapeDtypeStruct:
            return _array(obj) if self.struct_as_array else None
        if isinstance(obj, type):
            return None
        if isinstance(obj, np.generic):
            return _numpy_scalar(obj)
        return self._callable(obj)

    def _document(self, obj: Any) -> Document:
        return wl.pdoc(obj, indent=self.indent, short_arrays=self.short_arrays, custom=self)

    def _callable(self, obj: Any) -> Document | None:
        if isinstance(obj, (jax.custom_jvp, jax.custom_vjp)):
            return wl.TextDoc(f"<function {_name(obj)}>")
        if isinstance(obj, functools.partial):
            return self._partial(obj)
        # `vars`, not `getattr`: some objects answer every attribute.
        if callable(obj) and "__wrapped__" in getattr(obj, "__dict__", ()) and _is_function(obj):
            return wl.TextDoc(f"<wrapped function {_name(obj)}>")
        return None

    def _partial(self, obj: functools.partial) -> Document:
        parts = [self._document(part) for part in (obj.func, *obj.args)]
        parts += wl.named_objs(
            obj.keywords.items(), short_arrays=self.short_arrays, custom=self, indent=self.indent
        )
        return wl.bracketed(
            begin=wl.TextDoc(f"{type(obj).__name__}("),
            docs=parts,
            sep=wl.comma,
            end=wl.TextDoc(")"),
            indent=self.indent,
        )


# Nothing below a formatter of their own changes how these look.
_PLAIN = {bool, int, float, complex, str, bytes, type(None), list, tuple, dict}


def _name(function: Any) -> str:
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return name or type(function).__name__


# What `jax.jit` returns.
PjitFunction = type(jax.jit(_never))


def _is_function(obj: Any) -> bool:
    return isinstance(obj, (type(_never), PjitFunction))


def _array(obj: Any) -> Document:
    dtype = obj.dtype
    name = f"key<{dtype._impl.tag}>" if is_key_dtype(dtype) else dtype.name
    document = wl.array_summary(tuple(obj.shape), name, None)
    if getattr(obj, "weak_type", False):
        return wl.TextDoc(f"weak_{document.text}")
    return document


def _numpy_scalar(obj: np.generic) -> Document | None:
    cls = type(obj)
    # The scalars of ml_dtypes print as bare numbers.
    return None if cls.__module__ == "numpy" else wl.TextDoc(f"{cls.__name__}({obj})")


def tree_pformat(
    pytree: Any,
    *,
    width: int = 80,
    indent: int = 2,
    short_arrays: bool = True,
    struct_as_array: bool = False,
    truncate_leaf: Callable[[Any], bool] = _never,
) -> str:
    """Write a PyTree as text, with arrays as dtype and shape.

    Args:
        pytree: any PyTree, and indeed any object.
        width: the longest line that is tried for.
        indent: by how much each level is indented.
        short_arrays: whether arrays are written as `f32[2,3]`, or with their elements.
        struct_as_array: whether a `jax.ShapeDtypeStruct` is written like an array.
        truncate_leaf: which values to write as `name(...)`.

    Returns:
        The text.

    >>> import jax.numpy as jnp
    >>> tree_pformat({"weight": jnp.ones((2, 3)), "bias": None})
    "{'weight': f32[2,3], 'bias': None}"
    """
    return wl.pformat(
        pytree,
        width=width,
        indent=indent,
        short_arrays=short_arrays,
        custom=TreeWLCustom(truncate_leaf, short_arrays, struct_as_array, indent),
    )


def tree_pprint(
    pytree: Any,
    *,
    width: int = 80,
    indent: int = 2,
    short_arrays: bool = True,
    struct_as_array: bool = False,
    truncate_leaf: Callable[[Any], bool] = _never,
) -> None:
    """Print a PyTree, with arrays as dtype and shape.

    Args:
        pytree: any PyTree, and indeed any object.
        width: the longest line that is tried for.
        indent: by how much each level is indented.
        short_arrays: whether arrays are printed as `f32[2,3]`, or with their elements.
        struct_as_array: whether a `jax.ShapeDtypeStruct` is printed like an array.
        truncate_leaf: which values to print as `name(...)`.

    >>> import jax.numpy as jnp
    >>> tree_pprint([jnp.ones((2, 3)), 1])
    [f32[2,3], 1]
    """
    print(
        tree_pformat(
            pytree,
            width=width,
            indent=indent,
            short_arrays=short_arrays,
            struct_as_array=struct_as_array,
            truncate_leaf=truncate_leaf,
        )
    )
