"""tree_at, tree_equal, tree_check, tree_flatten_one_level, inference flags."""

import collections

import jax
import jax.numpy as jnp
import numpy as np

from conformance.parity._table import Table

TABLE = Table("trees")
Pair = collections.namedtuple("Pair", "a b")


def _key():
    return jax.random.PRNGKey(0)


def _linear(eqx):
    return eqx.nn.Linear(2, 2, key=_key())


def _loop():
    tree = [1]
    tree.append(tree)
    return tree


def _twice(x):
    return [x, x]


TABLE.rows(
    at_an_element=lambda eqx: eqx.tree_at(lambda t: t[1], [1, 2, 3], 5),
    at_two_elements=lambda eqx: eqx.tree_at(lambda t: (t[0], t[2]), [1, 2, 3], (5, 6)),
    at_elements_as_a_list=lambda eqx: eqx.tree_at(lambda t: [t[0], t[2]], [1, 2, 3], [5, 6]),
    at_a_subtree=lambda eqx: eqx.tree_at(lambda t: t["a"], {"a": [1, 2], "b": 3}, "new"),
    at_the_root=lambda eqx: eqx.tree_at(lambda t: t, [1, 2], 3),
    at_by_function=lambda eqx: eqx.tree_at(lambda t: t[1], [1, 2], replace_fn=lambda x: x * 10),
    at_two_by_function=lambda eqx: eqx.tree_at(
        lambda t: (t[0], t[1]), [1, 2], replace_fn=lambda x: x * 10
    ),
    at_a_weight=lambda eqx: eqx.tree_at(lambda m: m.weight, _linear(eqx), jnp.zeros((2, 2))),
    at_a_bias_by_none=lambda eqx: eqx.tree_at(lambda m: m.bias, _linear(eqx), None),
    at_none=lambda eqx: eqx.tree_at(lambda t: t[0], [None, 1], 3),
    at_none_as_a_leaf=lambda eqx: eqx.tree_at(
        lambda t: t[0], [None, 1], 3, is_leaf=lambda x: x is None
    ),
    at_none_twice=lambda eqx: eqx.tree_at(
        lambda t: (t[0], t[1]), [None, None], (3, 4), is_leaf=lambda x: x is None
    ),
    at_a_static_field=lambda eqx: eqx.tree_at(lambda m: m.in_features, _linear(eqx), 7),
    at_something_that_is_made=lambda eqx: eqx.tree_at(lambda t: t[0] + 1, [1, 2], 3),
    at_something_else=lambda eqx: eqx.tree_at(lambda t: object(), [1, 2], 3),
    at_the_same_place_twice=lambda eqx: eqx.tree_at(lambda t: (t[0], t[0]), [1, 2], (3, 4)),
    at_a_node_and_its_child=lambda eqx: eqx.tree_at(lambda t: (t[0], t[0][0]), [[1], 2], (3, 4)),
    at_with_too_few_values=lambda eqx: eqx.tree_at(lambda t: (t[0], t[1]), [1, 2], (3,)),
    at_with_both=lambda eqx: eqx.tree_at(lambda t: t[0], [1], 2, lambda x: x),
    at_with_neither=lambda eqx: eqx.tree_at(lambda t: t[0], [1]),
    at_equal_numbers=lambda eqx: eqx.tree_at(lambda t: t[0], [1, 1], 2),
    at_a_shared_array=lambda eqx: eqx.tree_at(lambda t: t[0], _twice(jnp.ones(2)), 0),
    at_an_empty_tuple=lambda eqx: eqx.tree_at(lambda t: t[0], [(), ()], 1),
    at_a_shared_tuple=lambda eqx: eqx.tree_at(lambda t: t[1], _twice((1,)), 3),
    at_an_empty_list=lambda eqx: eqx.tree_at(lambda t: t[0], [[], 2], 1),
    at_a_named_tuple=lambda eqx: eqx.tree_at(lambda t: t.b, Pair(1, 2), 5),
    at_nothing=lambda eqx: eqx.tree_at(lambda t: (), [1, 2], ()),
    at_a_layer=lambda eqx: eqx.tree_at(
        lambda m: m.layers[0],
        eqx.nn.MLP(1, 1, 2, 1, key=_key()),
        eqx.nn.Identity(),
    ),
    at_many_layers=lambda eqx: eqx.tree_at(
        lambda m: [layer.bias for layer in m.layers],
        eqx.nn.MLP(1, 1, 2, 2, key=_key()),
        replace_fn=lambda b: b + 1,
    ),
    at_a_function=lambda eqx: eqx.tree_at(
        lambda m: m.activation, eqx.nn.MLP(1, 1, 2, 1, key=_key()), jnp.tanh
    ),
    at_by_function_sees_the_value=lambda eqx: eqx.tree_at(lambda t: t[0], [(), 1], replace_fn=len),
    at_a_dictionary=lambda eqx: eqx.tree_at(lambda t: t["b"]["c"], {"b": {"c": 1, "d": 2}}, 9),
    at_a_bool=lambda eqx: eqx.tree_at(lambda t: t[0], [True, True], False),
    at_a_string=lambda eqx: eqx.tree_at(lambda t: t["s"], {"s": "text", "t": "text"}, "new"),
    at_inside_jit=lambda eqx: jax.jit(lambda t, x: eqx.tree_at(lambda t: t[1], t, x))([1, 2], 3),
    equal=lambda eqx: eqx.tree_equal([1, "a"], [1, "a"]),
    unequal=lambda eqx: eqx.tree_equal([1, "a"], [1, "b"]),
    equal_arrays=lambda eqx: eqx.tree_equal(jnp.arange(3), jnp.arange(3)),
    unequal_arrays=lambda eqx: eqx.tree_equal(jnp.arange(3), jnp.arange(3) + 1),
    equal_structure=lambda eqx: eqx.tree_equal([1], (1,)),
    equal_shapes=lambda eqx: eqx.tree_equal(jnp.ones(2), jnp.ones(3)),
    equal_dtypes=lambda eqx: eqx.tree_equal(jnp.ones(2), jnp.ones(2, jnp.int32)),
    equal_numpy=lambda eqx: eqx.tree_equal(np.ones(2), np.ones(2)),
    equal_numpy_and_jax=lambda eqx: eqx.tree_equal(np.ones(2, np.float32), jnp.ones(2)),
    equal_numpy_and_jax_typed=lambda eqx: eqx.tree_equal(
        np.ones(2, np.float32), jnp.ones(2), typematch=True
    ),
    equal_int_and_float=lambda eqx: eqx.tree_equal(1, 1.0),
    equal_int_and_float_typed=lambda eqx: eqx.tree_equal(1, 1.0, typematch=True),
    equal_number_and_array=lambda eqx: eqx.tree_equal(1.0, jnp.array(1.0)),
    equal_within=lambda eqx: eqx.tree_equal(jnp.ones(2), jnp.ones(2) + 1e-4, rtol=1e-3),
    equal_within_absolute=lambda eqx: eqx.tree_equal(0.0, 1e-4, atol=1e-3),
    equal_not_within=lambda eqx: eqx.tree_equal(jnp.ones(2), jnp.ones(2) + 1e-2, rtol=1e-3),
    equal_nan=lambda eqx: eqx.tree_equal(jnp.array(jnp.nan), jnp.array(jnp.nan)),
    equal_three=lambda eqx: (eqx.tree_equal(1, 1, 1), eqx.tree_equal(1, 1, 2)),
    equal_one=lambda eqx: eqx.tree_equal([1]),
    equal_none=lambda eqx: eqx.tree_equal(None, None),
    equal_functions=lambda eqx: (
        eqx.tree_equal(jnp.sin, jnp.sin),
        eqx.tree_equal(jnp.sin, jnp.cos),
    ),
    equal_traced=lambda eqx: jax.jit(lambda x, y: eqx.tree_equal(x, y))(jnp.ones(2), jnp.ones(2)),
    equal_modules=lambda eqx: eqx.tree_equal(_linear(eqx), _linear(eqx)),
    equal_keys=lambda eqx: eqx.tree_equal(jax.random.key(0), jax.random.key(0)),
    unequal_keys=lambda eqx: eqx.tree_equal(jax.random.key(0), jax.random.key(1)),
    equal_strings_and_arrays=lambda eqx: eqx.tree_equal("a", jnp.ones(1)),
    equal_bools=lambda eqx: eqx.tree_equal(True, 1),
    check=lambda eqx: eqx.tree_check([1, [2], {"a": (3,)}]),
    check_a_shared_node=lambda eqx: eqx.tree_check(_twice([1])),
    check_a_shared_leaf=lambda eqx: eqx.tree_check(_twice(jnp.ones(2))),
    check_a_loop=lambda eqx: eqx.tree_check(_loop()),
    check_empty_nodes=lambda eqx: eqx.tree_check(_twice(())),
    check_a_shared_module=lambda eqx: eqx.tree_check(_twice(_linear(eqx))),
    one_level=lambda eqx: eqx.tree_flatten_one_level([1, [2, 3], {"a": 4}])[0],
    one_level_treedef=lambda eqx: str(eqx.tree_flatten_one_level((1, [2]))[1]),
    one_level_of_a_leaf=lambda eqx: eqx.tree_flatten_one_level(1)[0],
    one_level_of_none=lambda eqx: eqx.tree_flatten_one_level(None)[0],
    one_level_of_a_dict=lambda eqx: eqx.tree_flatten_one_level({"b": 1, "a": [2]})[0],
    one_level_of_a_module=lambda eqx: eqx.tree_flatten_one_level(_linear(eqx))[0],
    one_level_of_a_loop=lambda eqx: len(eqx.tree_flatten_one_level(_loop())[0]),
    inference_mode=lambda eqx: eqx.nn.inference_mode([eqx.nn.Dropout(0.5), 1]),
    inference_mode_off=lambda eqx: eqx.nn.inference_mode(
        eqx.nn.Dropout(0.5, inference=True), value=False
    ),
    tree_inference=lambda eqx: eqx.tree_inference(eqx.nn.Dropout(0.5), True),
    inference_mode_of_nothing=lambda eqx: eqx.nn.inference_mode([1, 2]),
)
