"""The table of leaves: one of each kind that a file can hold, and how to compare two."""

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

DTYPES = (
    *("bool", "int4", "uint4", "int2", "uint2", "int8", "uint8", "int16", "uint16"),
    *("int32", "uint32", "float16", "bfloat16", "float32", "complex64", "float4_e2m1fn"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
)
# Those that JAX holds with 64 bits enabled only.
WIDE = ("int64", "uint64", "float64", "complex128")

LEAVES: dict[str, Any] = {
    **{f"JAX {dtype}": jnp.asarray(np.array([[0, 1, 1]], dtype)) for dtype in DTYPES},
    **{f"NumPy {dtype}": np.array([[0, 1, 1]], dtype) for dtype in (*DTYPES, *WIDE)},
    "JAX scalar": jnp.asarray(3),
    "JAX empty": jnp.zeros((0, 3)),
    "JAX weak": jnp.broadcast_to(jnp.asarray(2.0), (2,)),
    "key": jax.random.key(3),
    "keys": jax.random.split(jax.random.key(0, impl="rbg"), (2, 3)),
    "no keys": jax.random.split(jax.random.key(0), (0,)),
    "NumPy empty": np.zeros((2, 0), np.complex64),
    "NumPy scalar": np.array(2.5),
    "fortran order": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": np.arange(6)[::2],
    "big endian": np.arange(3, dtype=">f4"),
    "words": np.array(["one", "zwölf"]),
    "no words": np.array(["", ""]),
    "bytes": np.array([b"ab", b"c"]),
    "dates": np.array(["2020-02-29"], "M8[D]"),
    "records": np.array([(1, (2, 3))], [("a", "<i4"), ("b", "<f8", (2,))]),
    "long double": np.ones(2, np.longdouble) / 3,
    "float0": np.zeros((2, 3), jax.dtypes.float0),
    "float64 number": np.float64(1e-8),
    "bool number": np.bool_(True),
    "bfloat16 number": ml_dtypes.bfloat16(1.5),
    "date": np.datetime64("2020-02-29"),
    "True": True,
    "large int": -(2**70),
    "float": 0.1,
    "minus zero": -0.0,
    "nan": float("nan"),
    "infinity": float("-inf"),
    "complex": complex(1, -0.0),
    "text": 'é "\\ \n \ud800',
    "raw": b"\x00\xff",
}


def blank(leaf: Any) -> Any:
    """A leaf of the same kind with another value."""
    if isinstance(leaf, jax.Array):
        weak = getattr(leaf, "weak_type", False)
        zero = jnp.asarray(leaf.dtype.type(0).item()) if weak else None
        return jnp.zeros_like(leaf) if zero is None else jnp.broadcast_to(zero, leaf.shape)
    if isinstance(leaf, np.ndarray):
        return np.zeros_like(leaf)
    return leaf if isinstance(leaf, np.generic) else type(leaf)()


def assert_same(one: Any, other: Any) -> None:
    """Raise an AssertionError unless two leaves are alike to the last bit, and of one kind."""
    if not isinstance(one, jax.Array | np.ndarray | np.generic):
        assert type(one) is type(other)
        assert one == other or (one != one and other != other)
        assert repr(one) == repr(other)
        return
    assert isinstance(one, jax.Array) == isinstance(other, jax.Array)
    assert isinstance(one, np.ndarray) == isinstance(other, np.ndarray)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert getattr(one, "weak_type", False) == getattr(other, "weak_type", False)
    if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
        one, other = jax.random.key_data(one), jax.random.key_data(other)
    assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
