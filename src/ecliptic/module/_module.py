"""`Module`: a frozen dataclass that is a PyTree.

A Module class is written as a dataclass. Its instances are trees whose branches are its fields;
the leaves may be arrays or anything else. An instance goes through these steps: abstract classes
are refused; class-level defaults are set (before a custom `__init__`); `__init__` and
`__post_init__` run, and may assign declared fields; converters run, once for each field that has
one; unset and unfit fields are refused; the `__check_init__` of every class of the MRO runs, most
derived first. From then on the instance is frozen. Unflattening does none of this: a transformed
tree may hold tracers, `None` or anything else in place of an array.
"""

from typing import Any

import jax

from ecliptic.errors import UnhashableError
from ecliptic.module._copying import get_state, set_state
from ecliptic.module._initialise import initialising, refuse_assignment, refuse_deletion
from ecliptic.module._meta import ModuleMeta, is_module
from ecliptic.module._spec import partly_compared
from ecliptic.module._treescope import treescope_repr
from ecliptic.tree import equality, tree_pformat

_set = object.__setattr__


class Module(metaclass=ModuleMeta):
    """Base class. A subclass is a frozen dataclass, and its instances are PyTrees.

    Write a subclass as a dataclass: annotate the fields, and either leave the constructor to
    be generated or write `__init__`. Fields become children of the tree, in order, save for
    those declared `field(static=True)`. Methods may be written and called as usual; a bound
    method is a PyTree as well.

    Two Modules are equal (`==`) if they have the same class and structure, equal static
    fields and equal leaves, arrays compared by shape, dtype and value. Equal Modules hash equal.
    A Module with a list, a dict or an array in a field has no hash. Fields declared with
    `compare=False` are left out of both, and with `hash=False` out of the hash.

    Raises:
        AbstractError: if an abstract method or attribute is unfulfilled.
        InitialisationError: if `__init__` leaves a field unset.
        FieldError: if a field is given a value that it must not hold.
        FrozenError: at assignment after initialisation, or to an undeclared field.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> class Linear(ec.Module):
        ...     weight: jax.Array
        ...     bias: jax.Array
        ...
        ...     def __init__(self, in_size, out_size, key):
        ...         self.weight = jax.random.normal(key, (out_size, in_size))
        ...         self.bias = jnp.zeros(out_size)
        ...
        ...     def __call__(self, x):
        ...         return self.weight @ x + self.bias
        >>> layer = Linear(3, 2, jax.random.key(0))
        >>> layer
        Linear(weight=f32[2,3], bias=f32[2])
        >>> layer(jnp.ones(3)).shape
        (2,)
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if id(self) in initialising and name in type(self).__class_spec__.settable:
            _set(self, name, value)
        else:
            refuse_assignment(self, name, value)

    def __delattr__(self, name: str) -> None:
        if id(self) not in initialising:
            refuse_deletion(self, name)
        object.__delattr__(self, name)

    def __getstate__(self) -> Any:
        return get_state(self)

    def __setstate__(self, state: Any) -> None:
        set_state(self, state)

    def __repr__(self) -> str:
        return tree_pformat(self)

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        return treescope_repr(self, path, subtree_renderer)

    def __eq__(self, other: object) -> Any:
        if type(self) is not type(other):
            return NotImplemented
        if partly_compared:
            return equality((_without_ignored(self), _without_ignored(other)))[0]
        return equality((self, other))[0]

    def __hash__(self) -> int:
        values = [_hashable(getattr(self, name)) for name in type(self).__class_spec__.hashed]
        try:
            return hash((type(self), *values))
        except TypeError as error:
            raise _unhashable(self) from error

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)


def _hashable(value: Any) -> Any:
    """What to hash in the place of a field's value.

    A PyTree of a class without a hash of its own (a `jax.tree_util.Partial`, for one) hashes by
    identity, yet it is compared by structure and leaves. So is it hashed then.
    """
    made_by = type(value).__hash__
    if made_by is tuple.__hash__:
        return tuple(_hashable(item) for item in value)
    if made_by is not object.__hash__:
        return value
    # Modules inside have their own hash, which knows the fields that `==` ignores.
    leaves, structure = jax.tree_util.tree_flatten(value, is_leaf=is_module)
    if len(leaves) == 1 and leaves[0] is value:
        return value
    return structure, tuple(_hashable(leaf) for leaf in leaves)


def _unhashable(self: Module) -> UnhashableError:
    cls = type(self)
    for name in cls.__class_spec__.hashed:
        value = getattr(self, name)
        try:
            hash(_hashable(value))
        except UnhashableError as inner:
            return UnhashableError(
                f"{inner} It is part of the field `{name}` of `{cls.__qualname__}`."
            )
        except TypeError:
            return UnhashableError(
                f"unhashable type: `{cls.__qualname__}` cannot be hashed, because its field "
                f"`{name}` holds a `{type(value).__qualname__}`. Use a tuple for a list, keep "
                f"arrays out of what is hashed (`ecliptic.partition`), or declare the field with "
                f"`field(hash=False)`. If nothing of yours hashes it: `jax.jit`, `jax.lax.scan` "
                f"and others hash the function they are given. Use the filtered form "
                f"(`ecliptic.filter_jit`), or a function that takes the Module as an argument."
            )
    return UnhashableError(f"unhashable type: `{cls.__qualname__}`.")


def _without_ignored(tree: Any) -> Any:
    """`tree` with each partly compared Module replaced by its class and compared fields."""

    def strip(node: Any) -> Any:
        if not _is_partly_compared(node):
            return node
        values = [getattr(node, name) for name in type(node).__class_spec__.compared]
        return (type(node), [_without_ignored(value) for value in values])

    return jax.tree_util.tree_map(strip, tree, is_leaf=_is_partly_compared)


def _is_partly_compared(node: Any) -> bool:
    return type(node) in partly_compared and type(node).__class_spec__.compared is not None
