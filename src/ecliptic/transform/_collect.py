"""Collectors: the arrays among the arguments, if the rest is what it was.

`jax.tree.flatten` builds lists, a treedef and a tuple of metadata for each node, only for all of it
to be compared with what it was at the last call. A collector is a function written out for one
structure: it walks the arguments, compares types, static fields and static leaves by identity
where it meets them, and returns the arrays; or None where anything differs, and then the call
goes the general way. For an MLP of 65 layers it takes a quarter of the time of flattening and
comparing (`bench/jit.py`).

Modules, tuples, named tuples, lists, dicts and None are written out; a node of any other type is
flattened as a whole inside the collector, and its treedef compared.
"""

import linecache
import weakref
from collections.abc import Callable
from typing import Any

from jax.tree_util import tree_flatten

from ecliptic.module import compile_function, is_module, tuple_display
from ecliptic.transform._static import same_static
from ecliptic.tree import array_type

# A larger tree is not written out: compiling the collector takes about 20 µs a node or leaf.
_MAX_SIZE = 8192


class _TooLarge(Exception):
    pass


class _Writer:
    """Writes the source of one collector."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {
            "array_type": array_type, "flatten": tree_flatten, "same_static": same_static,
            "len": len, "type": type, "Exception": Exception,
        }  # fmt: skip
        self.names: dict[int, str] = {}
        self.arrays: list[str] = []
        self.count = 0

    def local(self) -> str:
        self.count += 1
        if self.count > _MAX_SIZE:
            raise _TooLarge
        return f"v{self.count}"

    def constant(self, value: Any) -> str:
        """The name under which the collector knows `value`."""
        name = self.names.setdefault(id(value), f"c{len(self.names)}")
        self.scope[name] = value
        return name

    def fail_if(self, condition: str) -> None:
        self.lines.append(f"if {condition}: return None")

    def read(self, source: str) -> str:
        name = self.local()
        self.lines.append(f"{name} = {source}")
        return name

    def value(self, name: str, value: Any) -> None:
        """Writes the part for the value in the local variable `name`, which is now `value`."""
        cls = type(value)
        if value is None:
            self.fail_if(f"{name} is not None")
        elif cls is dict:
            self.mapping(name, value)
        elif cls is tuple or cls is list or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
            self.sequence(name, value)
        elif is_module(value):
            self.module(name, value)
        elif array_type(cls):
            known = self.constant(cls)
            self.fail_if(f"type({name}) is not {known} and not array_type(type({name}))")
            self.arrays.append(name)
        else:
            leaves, treedef = tree_flatten(value)
            if len(leaves) == 1 and leaves[0] is value:
                self.static(name, value)
            else:
                self.other(name, leaves, treedef)

    def static(self, name: str, value: Any) -> None:
        known = self.constant(value)
        self.fail_if(
            f"{name} is not {known} and (type({name}) is not type({known}) "
            f"or not same_static({name}, {known}))"
        )

    def of_type(self, name: str, value: Any) -> None:
        self.fail_if(f"type({name}) is not {self.constant(type(value))}")

    def sequence(self, name: str, value: Any) -> None:
        self.of_type(name, value)
        self.fail_if(f"len({name}) != {len(value)}")
        members = [self.local() for _ in value]
        if members:
            self.lines.append(f"{tuple_display(members)} = {name}")
        for member, item in zip(members, value, strict=True):
            self.value(member, item)

    def mapping(self, name: str, value: dict[Any, Any]) -> None:
        self.of_type(name, value)
        self.fail_if(f"len({name}) != {len(value)}")
        # The order of JAX's dict nodes. Keys that cannot be sorted never got this far.
        for key in sorted(value):
            self.value(self.read(f"{name}[{self.constant(key)}]"), value[key])

    def module(self, name: str, value: Any) -> None:
        self.of_type(name, value)
        spec = type(value).__class_spec__
        for attribute in spec.static:
            self.static(self.read(f"{name}.{attribute}"), getattr(value, attribute))
        for attribute in spec.data:
            self.value(self.read(f"{name}.{attribute}"), getattr(value, attribute))

    def other(self, name: str, leaves: list[Any], treedef: Any) -> None:
        members, structure = self.local(), self.local()
        self.lines.append(f"{members}, {structure} = flatten({name})")
        self.fail_if(f"{structure} != {self.constant(treedef)}")
        for i, leaf in enumerate(leaves):
            # A leaf here is an array or a static value, whatever its type says of nodes.
            part = self.read(f"{members}[{i}]")
            if array_type(type(leaf)):
                self.fail_if(f"not array_type(type({part}))")
                self.arrays.append(part)
            else:
                self.static(part, leaf)


def write_collector(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    traced: int,
    donated: Callable[[int], bool],
    label: str,
) -> Callable[..., Any] | None:
    """Writes the collector for these arguments.

    Args:
        args: the positional arguments of a call.
        kwargs: its keyword arguments.
        traced: how many arrays flattening found among them.
        donated: whether the array with this number, in order of flattening, is donated.
        label: the name of the function that is called, for tracebacks.

    Returns:
        A function of `args` and `kwargs` that returns the tuples of donated and of other arrays,
        or None if it cannot vouch that the call is for the same program. None in place of the
        function if the tree is too large.
    """
    writer = _Writer()
    try:
        writer.value("args", args)
        writer.value("kwargs", kwargs)
    except (_TooLarge, RecursionError):
        return None
    if len(writer.arrays) != traced:
        # Some class is flattened in another way than it says; leave it to JAX.
        return None
    given = [name for i, name in enumerate(writer.arrays) if donated(i)]
    kept = [name for i, name in enumerate(writer.arrays) if not donated(i)]
    lines = [
        "def collect(args, kwargs):",
        "    try:",
        *(f"        {line}" for line in writer.lines),
        "    except Exception:",
        # A missing key or attribute, or a comparison that fails.
        "        return None",
        f"    return {tuple_display(given)}, {tuple_display(kept)}",
    ]
    collect = compile_function("collect", "\n".join(lines) + "\n", writer.scope, label=label)
    # Its source, for tracebacks, goes when it goes.
    source = weakref.finalize(collect, linecache.cache.pop, collect.__code__.co_filename, None)
    source.atexit = False
    return collect
