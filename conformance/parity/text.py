"""tree_pformat and tree_pprint."""

import collections
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from conformance.parity._table import Table

TABLE = Table("text")
Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class _Data:
    a: int
    b: list


def _function(x):
    return x


def _mlp(eqx):
    return eqx.nn.MLP(2, 2, 8, 2, key=jax.random.PRNGKey(0))


VALUES = {
    "int": lambda: 1, "float": lambda: 1.5, "string": lambda: "a'b", "none": lambda: None,
    "list": lambda: [1, 2], "empty_list": list, "tuple": lambda: (1,), "empty": lambda: (),
    "dict": lambda: {"a": 1, 2: "b"}, "empty_dict": dict, "named_tuple": lambda: Pair(1, 2),
    "array": lambda: jnp.ones((2, 3)), "scalar": lambda: jnp.array(1),
    "bool": lambda: jnp.ones(2, bool),
    "half": lambda: jnp.ones(2, jnp.bfloat16), "complex": lambda: jnp.ones(2) * 1j,
    "numpy": lambda: np.ones((2, 3)), "numpy_int8": lambda: np.ones(2, np.int8),
    "struct": lambda: jax.ShapeDtypeStruct((2,), jnp.float32), "function": lambda: _function,
    "partial": lambda: functools.partial(_function, 1),
    "dataclass": lambda: _Data(1, [2]), "class": lambda: int, "set": lambda: {1},
    "key": lambda: jax.random.key(0), "long_list": lambda: list(range(40)),
    "nested": lambda: {"first": [jnp.ones(3)] * 3, "second": (np.arange(3), "text" * 10)},
    "relu": lambda: jax.nn.relu, "sin": lambda: jnp.sin, "numpy_scalar": lambda: np.float32(1),
    "long_string": lambda: "word " * 30, "uint": lambda: jnp.ones(2, jnp.uint8),
}  # fmt: skip


def _formatted(make):
    return lambda eqx: eqx.tree_pformat(make())


for _name, _make in VALUES.items():
    TABLE.add(f"of_{_name}", _formatted(_make))

TABLE.rows(
    long_arrays=lambda eqx: eqx.tree_pformat([jnp.arange(3)], short_arrays=False),
    width=lambda eqx: eqx.tree_pformat(list(range(20)), width=30),
    indent=lambda eqx: eqx.tree_pformat({"a": list(range(30))}, width=40, indent=4),
    struct_as_array=lambda eqx: eqx.tree_pformat(
        jax.ShapeDtypeStruct((2,), jnp.float32), struct_as_array=True
    ),
    truncate_leaf=lambda eqx: eqx.tree_pformat(
        [1, _Data(1, [])], truncate_leaf=lambda x: isinstance(x, _Data)
    ),
    mlp=lambda eqx: eqx.tree_pformat(_mlp(eqx)),
    mlp_repr=lambda eqx: repr(_mlp(eqx)),
    linear=lambda eqx: str(eqx.nn.Linear(2, 3, use_bias=False, key=jax.random.PRNGKey(0))),
    pprint=lambda eqx: eqx.tree_pprint([1, jnp.ones(2)]),
    pprint_width=lambda eqx: eqx.tree_pprint(list(range(20)), width=20),
    traced=lambda eqx: jax.eval_shape(lambda x: print(eqx.tree_pformat([x])), jnp.ones(2)),
    bound_method=lambda eqx: eqx.tree_pformat(eqx.nn.Identity().__call__),
    partial_module=lambda eqx: eqx.tree_pformat(eqx.Partial(_function, 1, k=2)),
    conv=lambda eqx: repr(eqx.nn.Conv2d(1, 2, 3, key=jax.random.PRNGKey(0))),
    dropout=lambda eqx: repr(eqx.nn.Dropout(0.3)),
    sequential=lambda eqx: repr(eqx.nn.Sequential([eqx.nn.Identity(), eqx.nn.Lambda(_function)])),
)
