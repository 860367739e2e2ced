"""Predicates, filter, partition, combine, apply_updates."""

import jax
import jax.numpy as jnp
import numpy as np

from conformance.parity._table import Table

TABLE = Table("filters")


class _Arrayish:
    def __jax_array__(self):
        return jnp.ones(2)


ELEMENTS = {
    "float_array": lambda: jnp.ones(2),
    "int_array": lambda: jnp.arange(2),
    "bool_array": lambda: jnp.array(True),
    "complex_array": lambda: jnp.ones(2) * 1j,
    "bfloat16": lambda: jnp.ones(2, jnp.bfloat16),
    "numpy_float": lambda: np.ones(2),
    "numpy_int": lambda: np.arange(2),
    "numpy_scalar": lambda: np.float32(1),
    "numpy_bool": lambda: np.bool_(True),
    "numpy_object": lambda: np.array([None, "a"], dtype=object),
    "python_float": lambda: 1.0,
    "python_int": lambda: 1,
    "python_bool": lambda: True,
    "python_complex": lambda: 1j,
    "string": lambda: "a",
    "none": lambda: None,
    "function": lambda: jnp.sin,
    "key": lambda: jax.random.key(0),
    "old_key": lambda: jax.random.PRNGKey(0),
    "struct": lambda: jax.ShapeDtypeStruct((2,), jnp.float32),
    "jax_array_method": _Arrayish,
    "list": lambda: [jnp.ones(2)],
    "dtype": lambda: jnp.float32,
    "device": lambda: jax.devices()[0],
}
PREDICATES = "is_array", "is_array_like", "is_inexact_array", "is_inexact_array_like"


def _predicates(make):
    return lambda eqx: [getattr(eqx, name)(make()) for name in PREDICATES]


for _name, _make in ELEMENTS.items():
    TABLE.add(f"predicates_of_{_name}", _predicates(_make))


@TABLE
def predicates_of_a_tracer(eqx):
    """The predicates, while a function is traced."""
    found = []

    @jax.jit
    def f(x):
        found.extend(getattr(eqx, name)(x) for name in PREDICATES)
        return x

    f(jnp.ones(()))
    return found


def _tree():
    return {"a": jnp.ones(2), "b": [1, 2.0, "s", None], "c": (np.arange(2), jnp.sin)}


SPEC = {"a": True, "b": False, "c": (True, False)}
TABLE.rows(
    filter=lambda eqx: eqx.filter(_tree(), eqx.is_array),
    filter_inverse=lambda eqx: eqx.filter(_tree(), eqx.is_array, inverse=True),
    filter_replace=lambda eqx: eqx.filter(_tree(), eqx.is_array, replace=0),
    filter_spec=lambda eqx: eqx.filter(_tree(), SPEC),
    filter_true=lambda eqx: eqx.filter(_tree(), True),
    filter_false=lambda eqx: eqx.filter(_tree(), False),
    filter_mixed=lambda eqx: eqx.filter(_tree(), {"a": False, "b": eqx.is_array_like, "c": True}),
    filter_by_a_wrong_prefix=lambda eqx: eqx.filter(_tree(), {"a": True}),
    filter_by_a_number=lambda eqx: eqx.filter(_tree(), 1),
    filter_by_none=lambda eqx: eqx.filter(_tree(), None),
    filter_is_leaf=lambda eqx: eqx.filter(
        [(1, 2), 3], lambda x: isinstance(x, tuple), is_leaf=lambda x: isinstance(x, tuple)
    ),
    filter_by_a_function_that_returns_no_bool=lambda eqx: eqx.filter([1, 0], lambda x: x),
    filter_by_a_numpy_bool=lambda eqx: eqx.filter([1, 2], [np.bool_(True), False]),
    partition=lambda eqx: eqx.partition(_tree(), eqx.is_inexact_array),
    partition_replace=lambda eqx: eqx.partition(_tree(), eqx.is_array, replace="x"),
    partition_spec=lambda eqx: eqx.partition(_tree(), SPEC),
    partition_of_none=lambda eqx: eqx.partition(None, eqx.is_array),
    partition_is_leaf=lambda eqx: eqx.partition(
        [(1, 2), 3], lambda x: isinstance(x, tuple), is_leaf=lambda x: isinstance(x, tuple)
    ),
    combine_restores=lambda eqx: eqx.combine(*eqx.partition(_tree(), eqx.is_array)),
    combine_first_wins=lambda eqx: eqx.combine([1, None, None], [2, 3, None], [4, 5, 6]),
    combine_one=lambda eqx: eqx.combine([1, None]),
    combine_nothing=lambda eqx: eqx.combine(),
    combine_is_leaf=lambda eqx: eqx.combine(
        [None, (1, 2)], [(3, 4), None], is_leaf=lambda x: isinstance(x, tuple)
    ),
    combine_different_trees=lambda eqx: eqx.combine([1, 2], [1, 2, 3]),
    apply_updates=lambda eqx: eqx.apply_updates(
        {"a": jnp.ones(2), "b": 1.0, "c": "s"}, {"a": jnp.arange(2.0), "b": None, "c": None}
    ),
    apply_updates_keeps_the_dtype=lambda eqx: eqx.apply_updates(
        jnp.ones(2, jnp.float16), jnp.ones(2)
    ),
    apply_updates_of_numbers=lambda eqx: eqx.apply_updates([1, 2.0], [3, None]),
    apply_updates_different_trees=lambda eqx: eqx.apply_updates([1, 2], [1]),
    filter_a_module=lambda eqx: eqx.filter(
        eqx.nn.MLP(1, 1, 2, 1, key=jax.random.PRNGKey(0)), eqx.is_array
    ),
    partition_a_module=lambda eqx: [
        len(jax.tree.leaves(part))
        for part in eqx.partition(eqx.nn.MLP(1, 1, 2, 1, key=jax.random.PRNGKey(0)), eqx.is_array)
    ],
    partitioned_structures_hash=lambda eqx: isinstance(
        hash(
            jax.tree.structure(
                eqx.partition(eqx.nn.Linear(1, 1, key=jax.random.PRNGKey(0)), eqx.is_array)[1]
            )
        ),
        int,
    ),
)
