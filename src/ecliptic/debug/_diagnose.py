"""`diagnose`: common mistakes in a model, by leaf path."""

import dataclasses
import functools
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_leaves
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic.debug._walk import Place, places
from ecliptic.errors import ArgumentError
from ecliptic.transform import JitFunction, captured_arrays, code_of, place_of, show_bytes
from ecliptic.tree import is_array, is_inexact_array
from ecliptic.tree._format import PjitFunction
from ecliptic.tree._predicates import has_shape, is_inexact_dtype

Mistake = Literal[
    "Python float", "static array", "shared array", "NumPy array", "transformed function",
    "captured array", "large constant", "not finite", "weak type", "mixed dtypes", "mixed devices",
]  # fmt: skip

# How many paths one finding lists.
_SHOWN = 4


@dataclasses.dataclass(frozen=True)
class Finding:
    """A probable mistake.

    Args:
        path: the leaf or field, as an expression in `model`.
        kind: what kind of mistake it is.
        what: what is there, and what comes of it.
        advice: the way out.

    !!! Example

        >>> import ecliptic as ec
        >>> finding = ec.debug.diagnose({"rate": 0.1})[0]
        >>> finding.path
        "model['rate']"
    """

    path: str
    kind: Mistake
    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path} ({self.kind}): {self.what} {self.advice}"


class Diagnosis:
    """What [`diagnose`][] returns: a sequence of [`Finding`][], false if it is empty.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> bool(ec.debug.diagnose({"weight": jnp.ones(2)}))
        False
    """

    def __init__(self, findings: list[Finding]) -> None:
        self._findings = findings

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    def __len__(self) -> int:
        return len(self._findings)

    def __getitem__(self, index: int) -> Finding:
        return self._findings[index]

    def __str__(self) -> str:
        if not self._findings:
            return "Nothing was found."
        return "\n".join(f"- {finding}" for finding in self)

    def __repr__(self) -> str:
        return f"<{len(self)} findings>"


def _python_floats(found: list[Place], limit: int) -> Iterator[Finding]:
    for place in found:
        own = place.owner is not None and place.owner.__module__.startswith("ecliptic.nn")
        if not place.static and isinstance(place.value, float | complex) and not own:
            if is_array(place.value):
                continue
            yield Finding(
                place.path,
                "Python float",
                f"{place.value!r} is a leaf that is no array: it has no gradient and never trains, "
                f"and `filter_jit` compiles for each value of it.",
                "To train it, make it an array: `jnp.asarray(...)`, or a field with "
                "`converter=jnp.asarray`. If it is a setting: `field(static=True)`.",
            )


def _static_arrays(found: list[Place], limit: int) -> Iterator[Finding]:
    for place in found:
        if place.static and is_array(place.value) and not isinstance(place.value, np.generic):
            yield Finding(
                place.path,
                "static array",
                f"the static field holds {_array(place.value)}: it is compared with `==` at each "
                f"call of a compiled function, which fails, and is a constant of the program.",
                "Drop `static=True`; to keep it from training, use `jax.lax.stop_gradient`, or "
                "leave it out with `ecliptic.partition`.",
            )


def _shared_arrays(found: list[Place], limit: int) -> Iterator[Finding]:
    by_id: dict[int, list[Place]] = defaultdict(list)
    for place in found:
        if not place.static and is_array(place.value) and not isinstance(place.value, np.generic):
            by_id[id(place.value)].append(place)
    for same in by_id.values():
        if len(same) > 1:
            others = ", ".join(place.path for place in same[1 : _SHOWN + 1])
            yield Finding(
                same[0].path,
                "shared array",
                f"the same array is at {others} too: after the first update, these are "
                f"different arrays, and a donated array cannot be given twice.",
                "To tie them, use `ecliptic.nn.Shared`; else make a copy: `jnp.array(x)`.",
            )


def _numpy_arrays(found: list[Place], limit: int) -> Iterator[Finding]:
    for place in found:
        if place.static or not isinstance(place.value, np.ndarray | np.generic):
            continue
        if not is_array(place.value):
            continue
        trained = (
            "it is trained as an array of JAX is"
            if is_inexact_array(place.value)
            else "it is traced, and not trained"
        )
        yield Finding(
            place.path,
            "NumPy array",
            f"{_array(place.value)} of NumPy: {trained}, and it is copied to the device at each "
            f"call.",
            "Make it an array of JAX, with `jnp.asarray`; to keep it from training, use "
            "`jax.lax.stop_gradient`, or leave it out with `ecliptic.partition`.",
        )


def _transformed_functions(found: list[Place], limit: int) -> Iterator[Finding]:
    for place in found:
        value = place.value
        inner = getattr(value, "__wrapped__", None)
        if isinstance(value, type) or inner is None or isinstance(value, JitFunction):
            continue
        if not isinstance(value, PjitFunction | types.FunctionType):
            continue
        if _wraps_arrays(value):
            yield Finding(
                place.path,
                "transformed function",
                f"{value!r} wraps a `{type(inner).__name__}` with arrays, which no transformation "
                f"sees: they do not train.",
                "Hold the model and transform it where it is called, or hold the filtered form, "
                "which is a PyTree, such as `ecliptic.filter_vmap(model)`.",
            )
        elif "<locals>" in getattr(inner, "__qualname__", "") and isinstance(value, PjitFunction):
            yield Finding(
                place.path,
                "transformed function",
                f"{value!r} is made anew for each instance: functions are compared by identity, so "
                f"`filter_jit` compiles for each instance.",
                "Make it a method, or define the function at the level of the file.",
            )


def _wraps_arrays(value: Any) -> bool:
    """Whether this is a function around a PyTree with arrays."""
    inner = getattr(value, "__wrapped__", None)
    function = isinstance(inner, types.FunctionType | functools.partial)
    return not function and any(map(is_array, tree_leaves(inner)))


def _captured(found: list[Place], limit: int) -> Iterator[Finding]:
    for place in found:
        if isinstance(place.value, type) or not callable(place.value):
            continue
        if _wraps_arrays(place.value):
            # Said above.
            continue
        for variable, (size, what) in captured_arrays(place.value).items():
            large = size >= limit
            at = place_of(code_of(place.value))
            yield Finding(
                place.path,
                "large constant" if large else "captured array",
                f"the function ({at}) captures `{variable}`, {what}, with {show_bytes(size)} of "
                f"arrays: they do not train, and become constants of a compiled program"
                f"{', which makes compiling slow' if large else ''}.",
                f"Pass `{variable}` as an argument, or hold both in an `ecliptic.Partial`.",
            )


def _not_finite(found: list[Place], limit: int) -> Iterator[Finding]:
    for place in found:
        value = place.value
        if not is_inexact_array(value) or isinstance(value, _jax.Tracer):
            continue
        if getattr(value, "is_deleted", lambda: False)():
            continue
        nan, inf = int(jnp.isnan(value).sum()), int(jnp.isinf(value).sum())
        if nan or inf:
            yield Finding(
                place.path,
                "not finite",
                f"{nan} of {value.size} elements are NaN and {inf} are infinite.",
                "`ecliptic.debug.backward_nan` and `jax.config.update('jax_debug_nans', True)` "
                "find where it began.",
            )


def _weak_types(found: list[Place], limit: int) -> Iterator[Finding]:
    for place in found:
        weak = isinstance(place.value, jax.Array) and getattr(place.value, "weak_type", False)
        if weak and not place.static:
            yield Finding(
                place.path,
                "weak type",
                f"{_array(place.value)} was made of a Python number and has a weak type: after the "
                f"first update it has not, and everything is compiled again.",
                f"Give its dtype: `jnp.asarray(x, jnp.{place.value.dtype})`.",
            )


def _mixed_dtypes(found: list[Place], limit: int) -> Iterator[Finding]:
    by_dtype: dict[str, list[str]] = defaultdict(list)
    for place in found:
        inexact = has_shape(place.value) and is_inexact_dtype(place.value.dtype)
        if inexact and not place.static:
            by_dtype[str(place.value.dtype)].append(place.path)
    if len(by_dtype) > 1:
        yield _mixed(
            "mixed dtypes",
            by_dtype,
            "the parameters have several dtypes, so that each operation promotes, or fails.",
            "If it is not meant so, convert all: `jax.tree.map(lambda x: x.astype(dtype), ...)` "
            "over the inexact arrays.",
        )


def _mixed_devices(found: list[Place], limit: int) -> Iterator[Finding]:
    by_devices: dict[str, list[str]] = defaultdict(list)
    for place in found:
        value = place.value
        if place.static or not isinstance(value, jax.Array) or isinstance(value, _jax.Tracer):
            continue
        names = sorted(map(str, value.devices()))
        by_devices[", ".join(names)].append(place.path)
    if len(by_devices) > 1:
        yield _mixed(
            "mixed devices",
            by_devices,
            "the arrays are on different devices, which a compiled function refuses or copies.",
            "Put the model in one place: `ecliptic.filter_shard(model, sharding)`.",
        )


def _mixed(kind: Mistake, groups: dict[str, list[str]], what: str, advice: str) -> Finding:
    """A finding on leaves that do not agree; its path is the first of the smallest group."""
    ordered = sorted(groups.items(), key=lambda item: len(item[1]))
    texts = [
        f"{name} ({len(paths)}: {', '.join(paths[:_SHOWN])}{', …' if len(paths) > _SHOWN else ''})"
        for name, paths in ordered
    ]
    return Finding(ordered[0][1][0], kind, f"{what} There are {'; '.join(texts)}.", advice)


def _array(value: Any) -> str:
    return f"an array of shape {value.shape} and dtype {value.dtype}"


_CHECKS: tuple[Callable[[list[Place], int], Iterator[Finding]], ...] = (
    _python_floats, _static_arrays, _shared_arrays, _numpy_arrays, _transformed_functions,
    _captured, _not_finite, _weak_types, _mixed_dtypes, _mixed_devices,
)  # fmt: skip


def diagnose(model: PyTree, *, large: int = 2**20) -> Diagnosis:
    """Looks for common mistakes in a model, or in any other PyTree.

    What is looked for:

    - Python floats, which never train (those in layers of Ecliptic itself are settings);
    - arrays in static fields;
    - the same array in two places;
    - arrays of NumPy;
    - `jax.jit(...)`, `jax.vmap(...)` and the like around a model, or made for each instance;
    - functions that capture arrays (closures, defaults, `functools.partial`), and whether these are
      large;
    - values that are not finite;
    - arrays with a weak type;
    - parameters of several dtypes, and arrays on several devices.

    Args:
        model: any PyTree, or a function. Arrays in it may be traced, or described by
            `jax.ShapeDtypeStruct`; their values are not looked at then.
        large: from how many bytes on captured arrays are a large constant.

    Returns:
        A sequence of [`Finding`][], which prints as a list.

    Raises:
        ArgumentError: if `large` is negative.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> class Model(ec.Module):
        ...     weight: jax.Array
        ...     scale: float
        >>> found = ec.debug.diagnose(Model(jnp.ones(3).at[0].set(jnp.nan), 0.5))
        >>> for finding in found:
        ...     print(finding.path, ":", finding.kind)
        model.scale : Python float
        model.weight : not finite
    """
    if large < 0:
        raise ArgumentError(f"`diagnose` needs `large` to be a number of bytes; got {large}.")
    found = list(places(model, "model"))
    return Diagnosis([finding for check in _CHECKS for finding in check(found, large)])
