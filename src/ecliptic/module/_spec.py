"""What is worked out for each Module class, once, when the class is made."""

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, get_type_hints

from jax.tree_util import GetAttrKey

from ecliptic.module._field import converter_of, is_static
from ecliptic.module._initialise import (
    PLAIN,
    SUSPECT,
    check_plain_field,
    check_static_field,
    raise_unset,
)
from ecliptic.module._source import compile_function, compile_lazily, tuple_display

_set = object.__setattr__
_new = object.__new__
_ABSENT = type(dataclasses.MISSING)

# Where a class keeps its specification.
SPEC = "__class_spec__"

# Classes with a field that `==` ignores. Few programs have one, and comparison is a plain
# comparison of trees as long as there is none.
partly_compared: set[type] = set()


class Pending:
    """Stands for the specification of a class that was pickled by value.

    The specification holds compiled functions and is worked out again where the class arrives.
    What the arrived class does not tell is in here.
    """

    def __init__(self, *, custom_init: bool, forced_abstract: bool) -> None:
        self.custom_init = custom_init
        self.forced_abstract = forced_abstract


class Arriving:
    """The specification of a class that is arriving: worked out at its first use.

    The parts of a class that was pickled by value come one by one, in no order to rely on.
    """

    def __init__(self, settle: Callable[[], Any]) -> None:
        self._settle = settle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._settle(), name)

    def __reduce__(self) -> Any:
        return self._settle().__reduce__()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ClassSpec:
    """The specification of one Module class.

    Args:
        owner: the class. A subclass under construction still sees its parent's specification;
            comparing `owner` tells.
        names: the names of all fields, in order.
        data: those that are children in the tree.
        static: those that are part of its structure.
        settable: `names` as a set, asked at each assignment during initialisation.
        custom_init: whether its `__init__` was written by hand, here or in a base.
        custom_new: whether the class has a `__new__` of its own.
        forced_abstract: whether the class was declared abstract with `strict=None`.
        lacks: a description of what is abstract still; None if the class can be instantiated.
        defaults: what a custom `__init__` finds set already: name, value, factory.
        checks: the `__check_init__` functions of the MRO, most derived first.
        finish: called with an instance after its `__init__`: converts, then checks fields.
        flatten, flatten_with_keys, unflatten: what JAX calls.
        compared: the fields that `==` looks at, if not all of them.
        hashed: the fields that `hash` looks at.
    """

    owner: type
    names: tuple[str, ...]
    data: tuple[str, ...]
    static: tuple[str, ...]
    settable: frozenset[str]
    custom_init: bool
    custom_new: bool
    forced_abstract: bool
    lacks: str | None
    defaults: "tuple[Default, ...]"
    checks: tuple[Callable[[Any], None], ...]
    finish: Callable[[Any], None]
    flatten: Callable[..., Any]
    flatten_with_keys: Callable[..., Any]
    unflatten: Callable[..., Any]
    compared: tuple[str, ...] | None
    hashed: tuple[str, ...]

    def __reduce__(self) -> Any:
        pending = functools.partial(
            Pending, custom_init=self.custom_init, forced_abstract=self.forced_abstract
        )
        return pending, ()


class Default(NamedTuple):
    """A class-level default: a value, or a factory of one."""

    name: str
    value: Any
    factory: Callable[[], Any] | None


def build_spec(
    cls: type, *, custom_init: bool, forced_abstract: bool, lacks: str | None
) -> ClassSpec:
    """Works out the specification of a class that `dataclasses` has processed."""
    declared = dataclasses.fields(cls)
    names = tuple(f.name for f in declared)
    data = tuple(f.name for f in declared if not is_static(f))
    static = tuple(f.name for f in declared if is_static(f))
    compared = tuple(f.name for f in declared if f.compare)
    flatten, flatten_with_keys, unflatten = _compile_tree_functions(cls, names, data, static)
    return ClassSpec(
        owner=cls,
        custom_init=custom_init,
        names=names,
        data=data,
        static=static,
        settable=frozenset(names),
        custom_new=cls.__new__ is not _new,
        forced_abstract=forced_abstract,
        lacks=lacks,
        defaults=_defaults(declared) if custom_init else (),
        checks=tuple(
            base.__dict__["__check_init__"]
            for base in cls.__mro__
            if "__check_init__" in base.__dict__
        ),
        finish=_compile_finish(cls, declared),
        flatten=flatten,
        flatten_with_keys=flatten_with_keys,
        unflatten=unflatten,
        compared=None if compared == names else compared,
        # Whatever `hash=True` asks: what `==` ignores must not tell two hashes apart.
        hashed=tuple(f.name for f in declared if f.compare and f.hash in (None, True)),
    )


def _defaults(declared: tuple[Any, ...]) -> tuple[Default, ...]:
    # `dataclasses.MISSING` loses its identity when a class travels by value, hence the types.
    found = []
    for f in declared:
        if not isinstance(f.default_factory, _ABSENT):
            found.append(Default(f.name, None, f.default_factory))
        elif not isinstance(f.default, _ABSENT):
            found.append(Default(f.name, f.default, None))
    return tuple(found)


# Flattening. `aux` is the tuple of static values. An instance that is flattened before all of its
# fields are set (a jitted method called in `__init__`) has an `Incomplete` there instead.


class Incomplete(NamedTuple):
    """The structure of an instance with unset fields: names of children, static items."""

    children: tuple[str, ...]
    static: tuple[tuple[str, Any], ...]


def _flatten_incomplete(self: Any, data: tuple[str, ...], static: tuple[str, ...]) -> Any:
    children = tuple(name for name in data if hasattr(self, name))
    held = tuple((name, getattr(self, name)) for name in static if hasattr(self, name))
    return tuple(getattr(self, name) for name in children), Incomplete(children, held)


def _flatten_incomplete_with_keys(self: Any, data: Any, static: Any) -> Any:
    children, aux = _flatten_incomplete(self, data, static)
    return tuple((GetAttrKey(n), c) for n, c in zip(aux.children, children, strict=True)), aux


def _unflatten_incomplete(cls: type, aux: Incomplete, children: Any) -> Any:
    self = _new(cls)
    for name, value in (*zip(aux.children, children, strict=True), *aux.static):
        _set(self, name, value)
    return self


def _compile_tree_functions(
    cls: type, names: tuple[str, ...], data: tuple[str, ...], static: tuple[str, ...]
) -> tuple[Callable[..., Any], ...]:
    label = cls.__qualname__
    reads = [f"self.{name}" for name in data]
    keyed = [f"(key_{i}, self.{name})" for i, name in enumerate(data)]
    held = tuple_display([f"self.{name}" for name in static])
    scope: dict[str, Any] = {f"key_{i}": GetAttrKey(name) for i, name in enumerate(data)}
    scope |= {"cls": cls, "data": data, "static": static, "new": _new, "set_": _set}
    scope |= {"incomplete": _flatten_incomplete, "AttributeError": AttributeError}
    scope |= {"incomplete_with_keys": _flatten_incomplete_with_keys}
    scope |= {"restore_incomplete": _unflatten_incomplete, "tuple": tuple, "type": type}

    def write_flatten(name: str, children: list[str], fallback: str) -> str:
        return (
            f"def {name}(self):\n"
            f"    try:\n"
            f"        return {tuple_display(children)}, {held}\n"
            f"    except AttributeError:\n"
            f"        return {fallback}(self, data, static)\n"
        )

    writers: dict[str, Callable[[], str]] = {
        "flatten": lambda: write_flatten("flatten", reads, "incomplete"),
        "flatten_with_keys": lambda: write_flatten(
            "flatten_with_keys", keyed, "incomplete_with_keys"
        ),
        "unflatten": lambda: _write_unflatten(cls, names, data, static),
    }
    return tuple(compile_lazily(n, write, scope, label=label) for n, write in writers.items())


def _write_unflatten(
    cls: type, names: tuple[str, ...], data: tuple[str, ...], static: tuple[str, ...]
) -> str:
    local = {name: f"v{i}" for i, name in enumerate(names)}
    lines = [
        "def unflatten(aux, children):",
        "    if type(aux) is not tuple:",
        "        return restore_incomplete(cls, aux, children)",
        "    self = new(cls)",
        *(f"    {tuple_display([local[n] for n in part])} = {source}"
          for part, source in ((data, "children"), (static, "aux")) if part),
    ]  # fmt: skip
    if any(is_slot(cls, name) for name in names):
        lines += [f"    set_(self, {name!r}, {local[name]})" for name in names]
    elif names:
        # Adopting a fresh dict is faster than one `__setattr__` a field. On Python 3.11 an
        # attribute is then read from a dict, which takes 6 ns in place of 5.
        items = ", ".join(f"{name!r}: {local[name]}" for name in names)
        lines.append(f"    set_(self, '__dict__', {{{items}}})")
    lines.append("    return self\n")
    return "\n".join(lines)


def is_slot(cls: type, name: str) -> bool:
    found = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), None)
    return isinstance(found, types.MemberDescriptorType)


# Construction.


def _compile_finish(cls: type, declared: tuple[Any, ...]) -> Callable[[Any], None]:
    """The function that ends an initialisation: reads every field, converts, checks."""
    scope: dict[str, Any] = {"suspect": SUSPECT, "plain": PLAIN, "set_": _set, "type": type}
    scope |= {"check_plain_field": check_plain_field, "check_static_field": check_static_field}
    scope |= {"raise_unset": raise_unset, "AttributeError": AttributeError}
    if not declared:
        return lambda self: None
    for i, f in enumerate(declared):
        scope[f"convert_{i}"] = converter_of(f)
    return compile_lazily("finish", lambda: _write_finish(declared), scope, label=cls.__qualname__)


def _write_finish(declared: tuple[Any, ...]) -> str:
    lines = ["def finish(self):", "    try:"]
    lines += [f"        v{i} = self.{f.name}" for i, f in enumerate(declared)]
    lines += ["    except AttributeError:", "        raise_unset(self)"]
    for i, f in enumerate(declared):
        if converter_of(f) is not None:
            lines.append(f"    v{i} = convert_{i}(v{i})")
            lines.append(f"    set_(self, {f.name!r}, v{i})")
    for i, f in enumerate(declared):
        if is_static(f):
            lines.append(f"    if type(v{i}) not in plain:")
            lines.append(f"        check_static_field(self, {f.name!r}, v{i})")
        else:
            lines.append(f"    if type(v{i}) in suspect:")
            lines.append(f"        check_plain_field(self, {f.name!r}, v{i})")
    return "\n".join(lines) + "\n"


def install_init(cls: type) -> None:
    """Replaces the `__init__` that `dataclasses` generated by one that may set fields.

    `dataclasses` writes `self.x = x`, which goes through the `__setattr__` that guards Modules.
    The one made here has the same signature and sets the fields past it.
    """
    reference: Any = cls.__init__
    code = reference.__code__
    receiver = code.co_varnames[0]
    positional = code.co_varnames[1 : code.co_argcount]
    keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    given = dict(reference.__kwdefaults__ or {})
    if reference.__defaults__:
        last = positional[-len(reference.__defaults__) :]
        given |= dict(zip(last, reference.__defaults__, strict=True))
    scope: dict[str, Any] = {"_ecliptic_set": _set}
    body = []
    declared = dataclasses.fields(cls)
    for f in declared:
        value = f.name if f.init else None
        if f.default_factory is not dataclasses.MISSING:
            scope[f"_ecliptic_make_{f.name}"] = f.default_factory
            value = f"_ecliptic_make_{f.name}()"
            if f.init:
                scope[f"_ecliptic_absent_{f.name}"] = given[f.name]
                value = f"{value} if {f.name} is _ecliptic_absent_{f.name} else {f.name}"
        elif not f.init and f.default is not dataclasses.MISSING:
            scope[f"_ecliptic_default_{f.name}"] = f.default
            value = f"_ecliptic_default_{f.name}"
        if value is not None:
            body.append(f"    _ecliptic_set({receiver}, {f.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        # In the order of the class body, as `dataclasses` has it, wherever `__init__` takes them.
        names, parameters = {f.name for f in declared}, {*positional, *keyword}
        only_for_init = ", ".join(
            n for n in cls.__dataclass_fields__ if n in parameters and n not in names
        )
        body.append(f"    {receiver}.__post_init__({only_for_init})")
    star = ["*"] if keyword else []
    header = f"def __init__({', '.join([receiver, *positional, *star, *keyword])}):"
    source = "\n".join([header, *(body or ["    pass"])]) + "\n"
    init: Any = compile_function("__init__", source, scope, label=cls.__qualname__)
    init.__defaults__ = reference.__defaults__
    init.__kwdefaults__ = reference.__kwdefaults__
    init.__annotations__ = _init_annotations(reference, declared)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    type.__setattr__(cls, "__init__", init)


def _init_annotations(reference: Any, declared: tuple[Any, ...]) -> dict[str, Any]:
    """The annotations of `__init__`: a converted field takes what its converter takes."""
    annotations = dict(reference.__annotations__)
    for f in declared:
        converter = converter_of(f)
        if converter is not None and f.name in annotations:
            annotations[f.name] = _parameter_type(converter)
    return annotations


def _parameter_type(converter: Callable[[Any], Any]) -> Any:
    try:
        parameter = next(iter(inspect.signature(converter).parameters.values()))
        if isinstance(converter, type):
            return Any
        return get_type_hints(converter).get(parameter.name, Any)
    except (ValueError, TypeError, NameError, StopIteration, AttributeError):
        return Any


def overridden_fields(cls: type) -> dict[str, Any]:
    """Fields that a property (or other data descriptor) replaces: inherited ones, and its own.

    They are no fields of `cls`: `dataclasses` is told so by annotating them as class variables.
    """
    inherited = {f.name for b in cls.__mro__[1:] if dataclasses.is_dataclass(b)
                 for f in dataclasses.fields(b)}  # fmt: skip
    own = inspect.get_annotations(cls)
    replaced = {name: ClassVar[Any] for name in own if isinstance(cls.__dict__.get(name), property)}
    for name in inherited - replaced.keys():
        for base in cls.__mro__:
            if name in inspect.get_annotations(base):
                break
            value = base.__dict__.get(name)
            if hasattr(type(value), "__set__") and not isinstance(
                value, types.MemberDescriptorType
            ):
                replaced[name] = ClassVar[Any]
                break
    return replaced
