"""The metaclass of Modules: makes a class a frozen dataclass and a PyTree, and its instances."""

import dataclasses
import inspect
import types
from collections.abc import Mapping
from typing import Any, TypeVar

import jax
import typing_extensions

from ecliptic.errors import AbstractError
from ecliptic.module import _abstract
from ecliptic.module._field import field
from ecliptic.module._initialise import initialising
from ecliptic.module._methods import as_method
from ecliptic.module._source import GENERATED
from ecliptic.module._spec import (
    SPEC,
    Arriving,
    ClassSpec,
    Pending,
    build_spec,
    install_init,
    overridden_fields,
    partly_compared,
)
from ecliptic.module._warning import warn

_T = TypeVar("_T")
_new = object.__new__
_set = object.__setattr__


# (`eq_default`: a Module has its own `__eq__` and, with it, a hash.)
@typing_extensions.dataclass_transform(
    eq_default=False, field_specifiers=(dataclasses.field, field)
)
class ModuleMeta(type(typing_extensions.Protocol)):
    """The metaclass of Modules. It derives from `abc.ABCMeta`, and may be subclassed.

    Its base is the metaclass of `Protocol`, so that a Module can implement a protocol explicitly.
    """

    __class_spec__: ClassSpec

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        /,
        strict: bool | None = False,
        **kwargs: Any,
    ) -> Any:
        body: dict[str, Any] = {key: as_method(key, value) for key, value in namespace.items()}
        body[_abstract.DECLARED] = _abstract.declarations(namespace, name)
        if _is_named(bases, namespace):
            body.setdefault("__name__", name)
            if isinstance(namespace.get("__call__"), types.FunctionType):
                body.setdefault("__code__", namespace["__call__"].__code__)
        cls = super().__new__(mcs, name, bases, body, **kwargs)
        custom_init = _has_custom_init(cls)
        _make_dataclass(cls, custom_init=custom_init)
        # A class made without a class statement may get its parts later, as one that was pickled
        # by value does. Its functions are looked up at each call, so that they can change.
        late = "__qualname__" not in namespace
        _complete(cls, custom_init=custom_init, forced_abstract=strict is None)
        _register(cls, late=late)
        return cls

    def __init__(cls, *args: Any, strict: bool | None = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def __call__(cls: type[_T], /, *args: Any, **kwargs: Any) -> _T:
        spec = cls.__class_spec__  # pyright: ignore[reportAttributeAccessIssue]
        if spec.lacks is not None:
            raise AbstractError(spec.lacks)
        if spec.custom_new:
            self: Any = cls.__new__(cls, *args, **kwargs)
            if not isinstance(self, cls):
                return self
        else:
            self = _new(cls)
        for name, value, factory in spec.defaults:
            _set(self, name, value if factory is None else factory())
        token = id(self)
        initialising.add(token)
        try:
            cls.__init__(self, *args, **kwargs)
        finally:
            initialising.discard(token)
        spec.finish(self)
        for check in spec.checks:
            check(self)
        return self

    def __setattr__(cls, name: str, value: Any) -> None:
        if isinstance(value, Pending):
            _arrive(cls, value)
            return
        super().__setattr__(name, as_method(name, value))

    @property
    def __signature__(cls) -> inspect.Signature:
        own = cls.__dict__.get("__signature__")
        if own is not None:
            return own
        signature = inspect.signature(cls.__init__)
        parameters = list(signature.parameters.values())
        if parameters and parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
            parameters = parameters[1:]
        return signature.replace(parameters=parameters)


def _is_named(bases: tuple[type, ...], namespace: dict[str, Any]) -> bool:
    """Whether instances shall have a `__name__`, that of their class, and the code of `__call__`.

    These are what JAX says of a function in its messages. If it finds none it takes the `repr`, at
    each call of `jax.vmap(module)`; for a large model, writing that takes longer than what is done
    with it. Wrappers have the name of what they wrap.
    """
    attributes = {*namespace, *(key for base in bases for k in base.__mro__ for key in k.__dict__)}
    return "__call__" in attributes and "__wrapped__" not in attributes


def _has_custom_init(cls: Any) -> bool:
    """Whether `cls` is initialised by an `__init__` that somebody wrote.

    The nearest class that has one decides. The root Module and protocols have no say.
    """
    for base in cls.__mro__:
        spec = base.__dict__.get(SPEC)
        if spec is not None:
            if spec.names or spec.custom_init:
                return spec.custom_init
            continue
        init = base.__dict__.get("__init__")
        if init is None or base is object or base.__dict__.get("_is_protocol", False):
            continue
        return not _is_generated(init)
    return False


def _is_generated(init: Any) -> bool:
    """Whether `dataclasses`, or `install_init`, wrote this `__init__`."""
    # Unwrapped: jaxtyping's import hook wraps it.
    code = getattr(inspect.unwrap(init), "__code__", None)
    if code is None:
        return False
    return code.co_qualname.startswith("__create_fn__.") or code.co_filename.startswith(GENERATED)


def _make_dataclass(cls: Any, *, custom_init: bool) -> None:
    """Has `dataclasses` collect the fields and write `__init__`."""
    annotations = inspect.get_annotations(cls)
    shown = {k: v for k, v in annotations.items() if k not in cls.__dict__[_abstract.DECLARED]}
    shown |= overridden_fields(cls)
    # `dataclasses` reads `__annotations__`: it must see neither abstract attributes nor fields
    # that a property has replaced. Everybody else shall see what was written.
    type.__setattr__(cls, "__annotations__", shown)
    try:
        dataclasses.dataclass(init=not custom_init, repr=False, eq=False)(cls)
    finally:
        type.__setattr__(cls, "__annotations__", annotations)
    if not custom_init:
        install_init(cls)
        _inherit_docstring_of_init(cls)
        return
    if _is_generated(cls.__init__):
        # The one of a base without fields, which stands before the one that was written.
        type.__setattr__(cls, "__init__", _written_init(cls))
    if hasattr(cls, "__post_init__"):
        _warn_of_two_initialisers(cls)


def _inherit_docstring_of_init(cls: Any) -> None:
    """Gives a generated `__init__` the docstring that somebody gave that of a base."""
    if cls.__init__.__doc__ is None:
        inherited = (
            base.__init__.__doc__ for base in cls.__mro__[1:] if isinstance(base, ModuleMeta)
        )
        cls.__init__.__doc__ = next((doc for doc in inherited if doc is not None), None)


def _written_init(cls: Any) -> Any:
    """The nearest `__init__` that somebody wrote."""
    return next(
        base.__dict__["__init__"]
        for base in cls.__mro__
        if "__init__" in base.__dict__
        and not base.__dict__.get("_is_protocol", False)
        and not _is_generated(base.__dict__["__init__"])
    )


def _warn_of_two_initialisers(cls: Any) -> None:
    code = getattr(inspect.unwrap(cls.__init__), "__code__", None)
    if code is not None and {"super", "__post_init__"} & set(code.co_names):
        return
    warn(
        f"Class `{cls.__module__}.{cls.__qualname__}` has both an `__init__` method and a "
        f"`__post_init__` method. `__post_init__` is called by the generated `__init__` only, so "
        f"it will not be run. Call `self.__post_init__()` at the end of `__init__`, or move its "
        f"lines there."
    )


def _lacking(cls: Any, *, forced_abstract: bool) -> str | None:
    """What stands in the way of instantiating `cls`."""
    missing = _abstract.unfulfilled(cls)
    variables = frozenset(n for n, kind in missing.items() if kind == "AbstractVar")
    class_variables = frozenset(n for n, kind in missing.items() if kind == "AbstractClassVar")
    type.__setattr__(cls, "__abstractvars__", variables)
    type.__setattr__(cls, "__abstractclassvars__", class_variables)
    groups = {
        "abstract methods": frozenset(cls.__abstractmethods__),
        "abstract attributes": variables,
        "abstract class attributes": class_variables,
    }
    named = [
        f"{what} {{{', '.join(repr(n) for n in sorted(names))}}}"
        for what, names in groups.items()
        if names
    ]
    if not named and not forced_abstract:
        return None
    what = " and ".join(named) if named else "`strict=None`, which declares it abstract"
    return (
        f"Can't instantiate abstract class {cls.__qualname__} with {what}. Make a subclass that "
        f"supplies what is abstract, and instantiate that."
    )


def _complete(cls: Any, *, custom_init: bool, forced_abstract: bool) -> None:
    lacks = _lacking(cls, forced_abstract=forced_abstract)
    spec = build_spec(cls, custom_init=custom_init, forced_abstract=forced_abstract, lacks=lacks)
    type.__setattr__(cls, SPEC, spec)
    if spec.compared is None:
        partly_compared.discard(cls)
    else:
        partly_compared.add(cls)


def _arrive(cls: Any, pending: Pending) -> None:
    """Takes note that the parts of a class that was pickled by value are being filled in."""
    # Until its fields are known, whether it has one that `==` ignores is not.
    partly_compared.add(cls)
    type.__setattr__(cls, SPEC, Arriving(lambda: _settle(cls, pending)))


def is_module(value: Any) -> bool:
    """Whether a value is an instance of a Module class, and not of one that is only registered.

    (`isinstance` asks the registries of all subclasses too, where users may register any class.)
    """
    return isinstance(type(value), ModuleMeta)


def _settle(cls: Any, pending: Pending) -> Any:
    """Works out the specification of a class that has arrived."""
    for f in cls.__dataclass_fields__.values():
        # A marker of `dataclasses` that is compared by identity, and travelled by value.
        for option in ("default", "default_factory"):
            if isinstance(getattr(f, option), type(dataclasses.MISSING)):
                setattr(f, option, dataclasses.MISSING)
    if pending.custom_init and _is_generated(cls.__dict__.get("__init__")):
        # Made for the class when it was empty still.
        type.__delattr__(cls, "__init__")
    _complete(cls, custom_init=pending.custom_init, forced_abstract=pending.forced_abstract)
    return cls.__class_spec__


def _register(cls: Any, *, late: bool) -> None:
    spec = cls.__class_spec__
    functions: Mapping[str, Any] = {
        "flatten_with_keys": spec.flatten_with_keys,
        "unflatten_func": spec.unflatten,
        "flatten_func": spec.flatten,
    }
    if late:
        functions = {
            "flatten_with_keys": lambda self: cls.__class_spec__.flatten_with_keys(self),
            "unflatten_func": lambda aux, children: cls.__class_spec__.unflatten(aux, children),
            "flatten_func": lambda self: cls.__class_spec__.flatten(self),
        }
    jax.tree_util.register_pytree_with_keys(cls, **functions)
