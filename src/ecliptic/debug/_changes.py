"""What has changed from one call to another, by leaf path: why `filter_jit` traced again."""

import dataclasses
import types
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import jax

from ecliptic.debug._walk import children as children_of
from ecliptic.module import is_module
from ecliptic.transform import ArrayType, FunctionMark, Signature, code_of, place_of, same_leaf
from ecliptic.tree._difference import same_structure, show_value

Kind = Literal[
    "shape", "dtype", "weak type", "sharding", "static", "new function", "array or not",
    "structure", "static field", "calling", "option", "configuration", "wrapped anew", "forgotten",
]  # fmt: skip

# How much of a value is shown.
_MAX_SHOWN = 120


@dataclasses.dataclass(frozen=True)
class Change:
    """One difference between two traces of a function.

    Args:
        path: the leaf, as an expression in the function's parameters, such as `model.layers[0]`.
        kind: what kind of difference it is.
        before: how it was, in words.
        after: how it is now, in words.
        advice: how a trace for it is avoided.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> f = ec.filter_jit(lambda x, times: x * times)
        >>> with ec.debug.explain_retraces(None) as report:
        ...     _ = f(jnp.ones(2), 2), f(jnp.ones(2), 3)
        >>> change = report[0].changes[0]
        >>> change.path, change.before, change.after
        ('times', '2', '3')
    """

    path: str
    kind: Kind
    before: str
    after: str
    advice: str

    def __str__(self) -> str:
        return f"`{self.path}` ({self.kind}): was {self.before}, is {self.after}. {self.advice}"


_ADVICE: dict[str, str] = {
    "shape": "Each shape is a program of its own: pad to a few sizes, or drop what is left over.",
    "dtype": "Each dtype is a program of its own: convert it before the call, with `.astype`.",
    "weak type": (
        "An array made of a Python number gives way to other dtypes, and is traced for itself: "
        "give its dtype when you make it, as in `jnp.asarray(x, jnp.float32)`."
    ),
    "sharding": (
        "Each placement is a program of its own: put it in one place before the loop, with "
        "`filter_shard`."
    ),
    "static": (
        "What is no array is a part of the program. Let it stay the same; or, if the program only "
        "computes with it, pass an array: `jnp.asarray(...)`."
    ),
    "new function": (
        "It has the same code, and functions are compared by identity: define it once, outside of "
        "the loop; what it closes over can be passed as an argument, or held by "
        "`ecliptic.Partial`."
    ),
    "array or not": "Pass the same kind each time: an array is traced, all else is static.",
    "structure": "Each structure is a program of its own: keep the same entries at each call.",
    "static field": (
        "Static fields are a part of the program. If the value changes from call to call, drop "
        "`static=True` and hold an array."
    ),
    "option": "Each set of options is a program of its own: wrap the function once.",
    "configuration": "JAX traces for each set of its options and each mesh: set them once.",
    "wrapped anew": (
        "Functions are compared by identity: apply `filter_jit` once, outside of the loop, to one "
        "function, and pass what it closes over as arguments."
    ),
    "forgotten": (
        "The arguments are those of an earlier trace, as far as can be seen: caches were cleared, "
        "or it was traced for another purpose, such as `lower` or `export`."
    ),
    "calling": "Positional and keyword arguments are told apart: pass it the same way each time.",
}


def compare(before: Signature, after: Signature, names: Sequence[str] = ()) -> list[Change]:
    """Lists what is different in two signatures.

    Args:
        before: the earlier one.
        after: the later one.
        names: those of the positional arguments, as far as they have names.
    """
    if before.has_structure_of(after):
        same = map(same_leaf, before.leaves, after.leaves)
        if all(same):
            return []
    try:
        one, other = before.arguments(), after.arguments()
    except Exception:
        return _by_number(before, after)
    return list(_arguments(_named(one, names), _named(other, names)))


def _by_number(before: Signature, after: Signature) -> list[Change]:
    """Differences where a node cannot be rebuilt around descriptions."""
    if not before.has_structure_of(after):
        return [change("arguments", "structure", str(before.treedef), str(after.treedef))]
    return [
        change
        for i, (one, other) in enumerate(zip(before.leaves, after.leaves, strict=True))
        if not same_leaf(one, other)
        for change in _leaves(f"leaf {i} of the arguments", one, other)
    ]


@dataclasses.dataclass(frozen=True)
class _Given:
    """An argument, and how it was passed."""

    value: Any
    how: str


def _named(call: tuple[tuple[Any, ...], dict[str, Any]], names: Sequence[str]) -> dict[str, _Given]:
    """The arguments by name of parameter; by number where there is none."""
    args, kwargs = call
    named = {}
    for i, value in enumerate(args):
        name = names[i] if i < len(names) else f"args[{i}]"
        named[name] = _Given(value, "by position")
    for name, value in kwargs.items():
        named[name] = _Given(value, "by keyword")
    return named


def _arguments(one: dict[str, _Given], other: dict[str, _Given]) -> Iterator[Change]:
    for name in {**one, **other}:
        if name not in one or name not in other:
            given = [
                f"given {side[name].how}" if name in side else "not given" for side in (one, other)
            ]
            yield change(name, "structure", *given)
            continue
        if one[name].how != other[name].how:
            yield change(name, "calling", f"passed {one[name].how}", f"passed {other[name].how}")
        yield from _nodes(name, one[name].value, other[name].value)


def _nodes(path: str, one: Any, other: Any) -> Iterator[Change]:
    """Differences between two trees at the same place."""
    children, others = children_of(one), children_of(other)
    if children is None and others is None:
        if not same_leaf(one, other):
            yield from _leaves(path, one, other)
        return
    if children is None or others is None or type(one) is not type(other):
        yield change(path, "structure", _show(one), _show(other))
        return
    keys, other_keys = list(children), list(others)
    if keys != other_keys:
        yield change(path, "structure", *_entries(one, other, keys, other_keys))
        return
    if is_module(one):
        yield from _static_fields(path, one, other)
    elif not same_structure(one, other):
        yield change(path, "structure", _show(one), _show(other))
    for key in keys:
        yield from _nodes(f"{path}{key}", children[key], others[key])


def _entries(one: Any, other: Any, keys: list[str], others: list[str]) -> tuple[str, str]:
    name = type(one).__name__
    if isinstance(one, list | tuple) and type(one) is type(other):
        return f"a {name} of {len(keys)}", f"a {name} of {len(others)}"
    return f"a {name} with the entries {keys}", f"a {name} with the entries {others}"


def _static_fields(path: str, one: Any, other: Any) -> Iterator[Change]:
    for name in type(one).__class_spec__.static:
        before, after = getattr(one, name, None), getattr(other, name, None)
        if not same_leaf(before, after):
            kind = "new function" if _same_code(before, after) else "static field"
            yield change(f"{path}.{name}", kind, _show(before), _show(after))


def _leaves(path: str, one: Any, other: Any) -> Iterator[Change]:
    arrays = isinstance(one, ArrayType), isinstance(other, ArrayType)
    if all(arrays):
        yield from _array_types(path, one, other)
    elif any(arrays):
        yield change(path, "array or not", _show(one), _show(other))
    elif _same_code(one, other):
        yield change(path, "new function", _show(one), "another function with the same code")
    else:
        yield change(path, "static", _show(one), _show(other))


def _array_types(path: str, one: ArrayType, other: ArrayType) -> Iterator[Change]:
    if one.shape != other.shape:
        yield change(path, "shape", str(one.shape), str(other.shape))
    if one.dtype != other.dtype:
        yield change(path, "dtype", str(one.dtype), str(other.dtype))
    elif one.weak_type != other.weak_type:
        weak = [f"{t.dtype}, {'weak' if t.weak_type else 'not weak'}" for t in (one, other)]
        yield change(path, "weak type", *weak)
    if one.placement != other.placement and len(one.shape) == len(other.shape):
        yield change(path, "sharding", _place(one), _place(other))


def _place(array: ArrayType) -> str:
    if array.placement is None:
        return "on no mesh"
    if isinstance(array.placement, str):
        return array.placement
    spec, mesh = array.placement
    return f"{spec} on {mesh}"


def _same_code(one: Any, other: Any) -> bool:
    code = _code(one)
    return code is not None and type(one) is type(other) and code == _code(other)


def _code(value: Any) -> types.CodeType | None:
    if isinstance(value, FunctionMark):
        return value.code
    return code_of(value) if callable(value) and not isinstance(value, type) else None


def _show(value: Any) -> str:
    """A value in words."""
    if isinstance(value, ArrayType):
        weak = ", weakly typed" if value.weak_type else ""
        return f"an array of shape {value.shape} and dtype {value.dtype}{weak}"
    code = _code(value)
    if code is not None and not is_module(value):
        return f"the function `{_name(value)}` ({place_of(code)})"
    described = jax.tree.map(_as_struct, value, is_leaf=lambda x: isinstance(x, ArrayType))
    return show_value(described, _MAX_SHOWN)


def _as_struct(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if isinstance(leaf, ArrayType) else leaf


def _name(fun: Any) -> str:
    if isinstance(fun, FunctionMark):
        return fun.qualname
    return getattr(fun, "__qualname__", None) or type(fun).__qualname__


def change(path: str, kind: Kind, before: str, after: str) -> Change:
    """A change, with what is to be done about changes of its kind."""
    return Change(path, kind, before, after, _ADVICE[kind])
