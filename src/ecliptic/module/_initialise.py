"""The life of an instance up to the moment it is frozen, and what is refused after that."""

import types
from collections.abc import Iterable
from typing import Any, NoReturn

import jax
import numpy as np

from ecliptic.errors import FieldError, FrozenError, InitialisationError
from ecliptic.module._methods import Method
from ecliptic.module._warning import warn
from ecliptic.tree import is_array
from ecliptic.tree._format import PjitFunction

# The instances whose `__init__` is running, by id. Each is alive as long as its id is in here: the
# frame that put it there holds it. Adding and discarding are atomic, so threads do not meet.
initialising: set[int] = set()

_set = object.__setattr__

# Types of values whose members are looked at. `_partial.py` adds its own.
CONTAINERS: set[type] = {list, tuple, dict, jax.tree_util.Partial}

# Types of values that may be a mistake in an ordinary field, and are looked at more closely.
# `_bound.py` adds the type of bound methods.
SUSPECT: set[type] = {
    types.FunctionType, PjitFunction, jax.custom_jvp, jax.custom_vjp, *CONTAINERS
}  # fmt: skip

# Types of values that are right in a static field without a closer look.
PLAIN = frozenset({int, float, bool, complex, str, bytes, type(None), type, types.FunctionType,
                   types.BuiltinFunctionType})  # fmt: skip


def raise_unset(self: Any) -> NoReturn:
    """Names the fields that `__init__` left unset."""
    cls = type(self)
    missing = [name for name in cls.__class_spec__.names if not hasattr(self, name)]
    which = ", ".join(f"'{name}'" for name in missing)
    fields = "Field" if len(missing) == 1 else "Fields"
    was = "was" if len(missing) == 1 else "were"
    raise InitialisationError(
        f"{fields} {which} {was} not initialized. `__init__` and `__post_init__` of "
        f"`{cls.__qualname__}` ended without a value. Assign `self.{missing[0]} = ...` there, or "
        f"give a default in the class body: `{missing[0]}: ... = ...`."
    )


def refuse_assignment(self: Any, name: str, value: Any) -> None:
    """Decides on an assignment that is no plain setting of a field during initialisation."""
    cls = type(self)
    spec = cls.__class_spec__
    if name == "__orig_class__":
        # `typing` notes on an instance that it was made by `Class[parameter](...)`.
        _set(self, name, value)
        return
    if id(self) in initialising:
        if hasattr(type(_static_attribute(cls, name)), "__set__"):
            # A property with a setter: what it assigns comes through here again.
            _set(self, name, value)
            return
        raise FrozenError(
            f"cannot assign to field {name!r}: `{cls.__qualname__}.__init__` sets `self.{name}`, "
            f"but the class declares no such field. Add the line `{name}: {_annotation(value)}` "
            f"to the body of `{cls.__qualname__}`."
        )
    if isinstance(_static_attribute(cls, name), property):
        raise FrozenError(
            f"cannot assign to property {name!r}: `{cls.__qualname__}` is a Module, and Modules "
            f"are frozen once initialised, with what their properties set. Make a changed copy of "
            f"the fields behind it: `ecliptic.tree_at(lambda m: m.<field>, module, value)`."
        )
    if name in spec.settable:
        raise FrozenError(
            f"cannot assign to field {name!r}: `{cls.__qualname__}` is a Module, and Modules are "
            f"frozen once initialised. {_changed_copy(spec, name)}"
        )
    raise FrozenError(
        f"cannot assign to field {name!r}: `{cls.__qualname__}` is a Module, frozen once "
        f"initialised, and declares no such field. Declare `{name}: {_annotation(value)}` in the "
        f"class body and set it in `__init__`."
    )


def _changed_copy(spec: Any, name: str) -> str:
    """The calls that make a copy with another value in a field."""
    calls = []
    if name in spec.data:
        calls.append(f"`ecliptic.tree_at(lambda m: m.{name}, module, value)`")
    if not spec.custom_init:
        calls.append(f"`dataclasses.replace(module, {name}=value)`")
    if not calls:
        return (
            f"The field is static, so give `{name}` its value in `__init__`: make it an argument."
        )
    return f"Make a changed copy: {', or '.join(calls)}."


def refuse_deletion(self: Any, name: str) -> NoReturn:
    """Refuses `del module.name`."""
    raise FrozenError(
        f"cannot delete field {name!r}: `{type(self).__qualname__}` is a Module, and Modules are "
        f"frozen. To leave a part empty, make a copy that holds None there: "
        f"`ecliptic.tree_at(lambda m: m.{name}, module, None)`."
    )


def _static_attribute(cls: type, name: str) -> Any:
    return next((b.__dict__[name] for b in cls.__mro__ if name in b.__dict__), None)


def _annotation(value: Any) -> str:
    """The annotation to write for a field with this value."""
    if is_array(value):
        return "jax.Array" if isinstance(value, jax.Array) else "np.ndarray"
    if value is None:
        return "Any"
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType):
        return "Callable"
    return type(value).__qualname__


def check_plain_field(self: Any, name: str, value: Any) -> None:
    """Looks at a value that is a function, a jitted function, a bound method or a container."""
    kind = type(value)
    if kind is Method.bound_type:
        _check_bound_method(self, name, value)
    elif kind in CONTAINERS:
        for member in _members(value):
            if type(member) in SUSPECT:
                check_plain_field(self, name, member)
    elif "__wrapped__" in getattr(value, "__dict__", ()):
        _check_wrapped(self, name, value)


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, dict):
        return value.values()
    return (value.func, *value.args, *value.keywords.values())


def _check_bound_method(self: Any, name: str, value: Any) -> None:
    if value.__self__ is not self:
        return
    cls = type(self).__qualname__
    method = value.__func__.__name__
    raise FieldError(
        f"Cannot assign methods in __init__: the field `{name}` of `{cls}` was given the bound "
        f"method `self.{method}` of the same instance. A Module is a tree, and this would be a "
        f"cycle: `self.{name}.__self__` is `self` again. Write a method `def {name}(self, ...): "
        f"return self.{method}(...)` instead of the field, or store the bare function "
        f"`{cls}.{method}` and pass `self` when calling it."
    )


def _check_wrapped(self: Any, name: str, value: Any) -> None:
    """Warns of `jax.jit(...)`, `jax.vmap(...)` and the like around something with arrays.

    Such a function is a leaf of the tree: arrays inside it are out of every transform's sight.
    A function made anew for each instance makes `filter_jit` compile for each.
    """
    inner = value.__wrapped__
    while hasattr(inner, "__wrapped__") and not _holds_arrays(inner):
        inner = inner.__wrapped__
    cls = type(self).__qualname__
    if _holds_arrays(inner):
        warn(
            f"Possibly assigning a JAX-transformed callable as an attribute, with its arrays out "
            f"of sight: the field `{name}` of `{cls}` was given {value!r}, a function around a "
            f"`{type(inner).__qualname__}` that holds arrays. They are hidden inside the "
            f"function: they will not be trained, cast, saved or counted. Store the module "
            f"itself in `{name}`, and apply `jax.jit`, `jax.vmap`, ... where it is called; or "
            f"store the filtered form, which is a PyTree: `ecliptic.filter_vmap(module)`."
        )
    elif f"{cls}.__init__.<locals>" in getattr(inner, "__qualname__", ""):
        warn(
            f"Possibly assigning a JAX-transformed callable as an attribute, and another one to "
            f"each instance: the field `{name}` of `{cls}` was given {value!r}, a function that is "
            f"made in `{cls}.__init__`, so each instance has another one. `filter_jit` compares "
            f"functions by identity and compiles again for each instance. Make it a method, or "
            f"define the function at module level."
        )


def _holds_arrays(value: Any) -> bool:
    if isinstance(value, types.FunctionType):
        return False
    return any(is_array(leaf) for leaf in jax.tree_util.tree_leaves(value))


def check_static_field(self: Any, name: str, value: Any) -> None:
    """Warns of arrays in a static field."""
    if isinstance(value, type):
        return
    leaves = jax.tree_util.tree_leaves(value)
    # A scalar of NumPy is an array to every predicate, but it is hashable and compares to a bool.
    arrays = (leaf for leaf in leaves if is_array(leaf) and not isinstance(leaf, np.generic))
    array = next(arrays, None)
    if array is None:
        return
    cls = type(self).__qualname__
    kind = "A JAX array is being set as static!" if isinstance(array, jax.Array) else (
        "A NumPy array is being set as static!")  # fmt: skip
    warn(
        f"{kind} The static field `{name}` of `{cls}` holds an array of shape {array.shape} and "
        f"dtype {array.dtype}. Static values are compared with `==` and hashed when a jitted "
        f"function is called again, which arrays do not support, and a traced array leaks out of "
        f"its trace. Drop `static=True` from `{name}`; to keep an array from training, leave it "
        f"out with `ecliptic.partition` or wrap its use in `jax.lax.stop_gradient`."
    )
