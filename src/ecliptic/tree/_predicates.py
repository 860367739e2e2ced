"""What counts as an array.

Four questions are asked of the leaves of a tree, and the whole library hangs on the answers:

| leaf | `is_array` | `is_array_like` | `is_inexact_array` | `is_inexact_array_like` |
|---|---|---|---|---|
| JAX array, tracer, literal inside a trace | yes | yes | if floating or complex | as left |
| NumPy array, any dtype | yes | yes | if floating or complex | as left |
| NumPy number or boolean, `ml_dtypes` scalar | yes | yes | if floating or complex | as left |
| other NumPy scalar (string, date, record) | no | no | no | no |
| typed PRNG key | yes | yes | no | no |
| `bool`, `int` | no | yes | no | no |
| `float`, `complex` | no | yes | no | yes |
| object with `__jax_array__` | no | yes | no | yes |
| `jax.ShapeDtypeStruct`, `jax.Ref` and its tracers, anything else | no | no | no | no |

Floating and complex include the extended types (`bfloat16`, `float8_*`, …), for NumPy's arrays
of them just as for JAX's.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ecliptic import _jax

# NumPy scalars that no array library can compute with, nor JAX hold. As static values they work.
_NOT_NUMERIC = (np.flexible, np.datetime64, np.timedelta64, np.object_)

# For each exact type seen so far: whether its instances are arrays. `None`: ask the instance.
_answers: dict[type, bool | None] = {}


def array_type(cls: type) -> bool:
    """Say whether the instances of exactly this class are arrays.

    The answer is remembered for each class, which makes it cheap enough for the path that every
    call of a compiled function takes. For classes of tracers it is `True`; the few tracers that
    `is_array` turns down, those of a `jax.Ref`, go in and out of transformations as arrays do.

    Args:
        cls: the exact type of a value, as `type(value)` gives it.

    Returns:
        Whether the instances are arrays.

    >>> import numpy as np
    >>> array_type(np.ndarray), array_type(float)
    (True, False)
    """
    try:
        return _answers[cls] is not False
    except KeyError:
        answer = _answers[cls] = _ask(cls)
        return answer is not False


def _ask(cls: type) -> bool | None:
    if issubclass(cls, _jax.Tracer):
        return None
    if issubclass(cls, np.generic):
        return not issubclass(cls, _NOT_NUMERIC)
    return issubclass(cls, (jax.Array, np.ndarray, _jax.TypedNdArray))


def is_array(element: Any) -> bool:
    """Return whether `element` is an array: of JAX, of NumPy, or a numeric NumPy scalar.

    Args:
        element: any value.

    Returns:
        `True` for arrays (tracers and typed PRNG keys among them), `False` for all else.

    >>> import jax.numpy as jnp
    >>> is_array(jnp.ones(3)), is_array(1.0)
    (True, False)
    """
    cls = type(element)
    try:
        answer = _answers[cls]
    except KeyError:
        answer = _answers[cls] = _ask(cls)
    return isinstance(element, jax.Array) if answer is None else answer


def has_shape(element: Any) -> bool:
    """Say whether `element` is an array, or describes one."""
    return is_array(element) or isinstance(element, jax.ShapeDtypeStruct)


def is_array_like(element: Any) -> bool:
    """Return whether `element` is an array, a Python number, or turns itself into an array.

    Args:
        element: any value.

    Returns:
        `True` for arrays, for `bool`, `int`, `float` and `complex`, and for objects with
        `__jax_array__`; `False` for all else.

    >>> is_array_like(1.0), is_array_like("one")
    (True, False)
    """
    return (
        is_array(element)
        or isinstance(element, (bool, int, float, complex))
        or _has_jax_array(element)
    )


def is_inexact_array(element: Any) -> bool:
    """Return whether `element` is an array of floating point or complex numbers.

    Args:
        element: any value.

    Returns:
        `True` for arrays that have a gradient: those of a floating or complex dtype, the
        extended ones (`bfloat16`, `float8_*`) included. Typed PRNG keys are not among them.

    >>> import jax.numpy as jnp
    >>> is_inexact_array(jnp.ones(3)), is_inexact_array(jnp.arange(3))
    (True, False)
    """
    return is_array(element) and is_inexact_dtype(element.dtype)


def is_inexact_array_like(element: Any) -> bool:
    """Return whether `element` is an inexact array, a Python `float` or `complex`, or becomes one.

    Args:
        element: any value.

    Returns:
        `True` for arrays of floating or complex dtype, for `float` and `complex`, and for objects
        with `__jax_array__`; `False` for all else.

    >>> is_inexact_array_like(1.0), is_inexact_array_like(1)
    (True, False)
    """
    if is_array(element):
        return is_inexact_dtype(element.dtype)
    return isinstance(element, (float, complex)) or _has_jax_array(element)


@lru_cache(maxsize=256)
def is_key_dtype(dtype: Any) -> bool:
    """Say whether a dtype is that of typed PRNG keys."""
    return bool(jnp.issubdtype(dtype, jax.dtypes.prng_key))


@lru_cache(maxsize=256)
def is_inexact_dtype(dtype: Any) -> bool:
    """Say whether a dtype is a floating or complex one."""
    # JAX's function, not NumPy's, which takes bfloat16 and float8 for something else than floats.
    return bool(jnp.issubdtype(dtype, jnp.inexact))


def _has_jax_array(element: Any) -> bool:
    # Asked of the class: some objects answer every attribute with `__getattr__`. Tracers of
    # things that are no arrays have the attribute too, to say so.
    return hasattr(type(element), "__jax_array__") and not isinstance(element, _jax.Tracer)
