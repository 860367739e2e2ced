"""What a program does, in a form that two libraries share, and how two of these are compared."""

import contextlib
import dataclasses
import io
import re
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import jax
import numpy as np

from conformance.parity._table import Program

# Static fields that Ecliptic's layers have in addition, and that are None for existing programs.
_ADDED = {"names"}


@dataclasses.dataclass
class Outcome:
    """What came of a program.

    Args:
        value: what it returned, described.
        error: the error that it raised.
        warned: the categories of its warnings, each once.
        printed: what it wrote to standard output.
    """

    value: Any = None
    error: BaseException | None = None
    warned: tuple[str, ...] = ()
    printed: str = ""


def run(program: Program, eqx: ModuleType) -> Outcome:
    """Runs a program on a library, under JAX's ordinary rules of promotion."""
    outcome = Outcome()
    output = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(output),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        warnings.simplefilter("always")
        try:
            outcome.value = describe(program(eqx))
            jax.effects_barrier()
        except Exception as error:  # whatever it is, it is what came of the program
            outcome.error = error
    outcome.warned = tuple(sorted({_category(warning.category) for warning in caught}))
    outcome.printed = output.getvalue()
    return outcome


def _category(category: type[Warning]) -> str:
    """The class that programs filter by: the first one that is Python's own."""
    return next(cls.__name__ for cls in category.__mro__ if cls.__module__ == "builtins")


def describe(x: Any) -> Any:
    """A value in terms that do not name the library it came from."""
    if x is None or isinstance(x, bool | int | float | complex | str | bytes):
        return x
    if isinstance(x, jax.Array | np.ndarray | np.generic):
        return _array(x)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return (type(x).__name__, list(_fields(x)))
    if isinstance(x, tuple | list | dict):
        return _container(x)
    return _other(x)


def _array(x: Any) -> Any:
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        return ("key", np.asarray(jax.random.key_data(x)))
    return ("array", isinstance(x, jax.Array), np.asarray(x))


def _container(x: Any) -> Any:
    if isinstance(x, dict):
        return ("dict", [(describe(key), describe(value)) for key, value in x.items()])
    if hasattr(x, "_fields"):
        return (type(x).__name__, [(name, describe(getattr(x, name))) for name in x._fields])
    return (type(x).__name__, [describe(y) for y in x])


def _other(x: Any) -> Any:
    if isinstance(x, jax.ShapeDtypeStruct):
        return ("struct", x.shape, str(x.dtype))
    dtype = getattr(x, "dtype", x) if isinstance(x, type) else x
    if isinstance(dtype, np.dtype):
        return ("dtype", dtype.name)
    if isinstance(x, type):
        return ("class", x.__name__)
    # What a function is called is a matter of the library that has it.
    return "a function" if callable(x) else neutral(x)


def _fields(x: Any) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(x):
        value = getattr(x, field.name, "no value")
        if not field.name.startswith("_") and not (field.name in _ADDED and value is None):
            yield field.name, describe(value)


def neutral(x: Any) -> str:
    """The text of an object, without addresses and names of libraries."""
    text = re.sub(r" at 0x[0-9a-f]+", "", x if isinstance(x, str) else repr(x))
    return re.sub(r"ecliptic\.compat\.equinox|ecliptic|equinox", "eqx", text)


def difference(theirs: Outcome, ours: Outcome) -> str | None:
    """What Ecliptic does otherwise than Equinox; None if nothing.

    An error of ours has to be caught by what catches theirs. The words of errors and warnings
    are not compared.
    """
    if (theirs.error is None) != (ours.error is None):
        return f"{_came_to(theirs)} there, {_came_to(ours)} here"
    if theirs.error is not None and not isinstance(ours.error, caught_as(theirs.error)):
        return f"{_came_to(theirs)} there, {_came_to(ours)} here"
    if theirs.warned != ours.warned:
        return f"warnings {theirs.warned} there, {ours.warned} here"
    if neutral(theirs.printed) != neutral(ours.printed):
        return f"prints {theirs.printed!r} there, {ours.printed!r} here"
    where = _unequal(theirs.value, ours.value)
    return where and f"value: {where}"


def _came_to(outcome: Outcome) -> str:
    if outcome.error is None:
        return f"returns {str(outcome.value)[:200]}"
    return f"{type(outcome.error).__name__} ({str(outcome.error)[:200]})"


def caught_as(error: BaseException) -> type[BaseException]:
    """The most special class that is no library's own."""
    for cls in type(error).__mro__:
        if cls.__module__.split(".")[0] in ("builtins", "jax", "dataclasses") and (
            not cls.__name__.startswith(("_", "Equinox"))
        ):
            return cls
    return Exception


def _unequal(a: Any, b: Any) -> str | None:
    """Where two descriptions differ, if they do."""
    if type(a) is not type(b):
        return f"{a!r} there, {b!r} here"[:400]
    if isinstance(a, np.ndarray):
        same = a.shape == b.shape and a.dtype == b.dtype and _close(a, b)
        return None if same else f"{a.dtype}{a.shape} {a} there, {b.dtype}{b.shape} {b} here"
    if isinstance(a, tuple | list):
        if len(a) != len(b):
            return f"{len(a)} elements there, {len(b)} here: {a!r}, {b!r}"[:400]
        return next((found for x, y in zip(a, b, strict=True) if (found := _unequal(x, y))), None)
    if isinstance(a, float):
        return None if _close(np.asarray(a), np.asarray(b)) else f"{a!r} there, {b!r} here"
    return None if a == b else f"{a!r} there, {b!r} here"[:600]


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    if not np.issubdtype(a.dtype, np.inexact) and a.dtype.name != "bfloat16":
        return bool(np.array_equal(a, b))
    tolerance = 1e-2 if a.dtype.itemsize <= 2 else 1e-5
    return bool(
        np.allclose(
            np.asarray(a, "complex128"),
            np.asarray(b, "complex128"),
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
        )
    )
