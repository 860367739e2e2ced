"""`filter_shard_map`."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import ecliptic as ec
from ecliptic.errors import (
    ArgumentError,
    ArgumentTypeError,
    RuntimeCheckError,
    StructureError,
)
from ecliptic.runtime import error_if
from ecliptic.transform import filter_shard_map

X = PartitionSpec("x")
MESH = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
A = jnp.arange(8.0)


def mapped(fun, in_specs=X, out_specs=X, **options):
    return filter_shard_map(fun, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **options)


def test_any_tree_in_and_out():
    shapes = []

    def f(x, s, *, k):
        shapes.append((x.shape, k["a"].shape))
        return {"x": 2 * x, "s": s, "f": len, "n": None, "k": k}

    out = mapped(f)(A, "s", k={"a": jnp.ones((4, 2), jnp.bfloat16), "f": len})
    assert shapes[0] == ((2,), (1, 2))
    assert out["x"].tolist() == (2 * A).tolist()
    assert (out["s"], out["f"], out["n"], out["k"]["f"]) == ("s", len, None, len)
    assert out["k"]["a"].shape == (4, 2)


def test_keys_and_numpy_arrays():
    keys = jax.random.split(jax.random.key(0), 4)
    out = mapped(lambda k, x: (k, x))(keys, np.arange(8.0, dtype=np.float32))
    assert (out[0] == keys).all()
    assert out[1].tolist() == A.tolist()


def test_specifications_by_position():
    out = mapped(lambda m, x: m["w"] * x, in_specs=({"w": None, "s": None}, X))
    assert out({"w": jnp.array(2.0), "s": "s"}, A).tolist() == (2 * A).tolist()


def test_specifications_by_name():
    f = mapped(lambda x, w: w * x, in_specs={"x": X})
    assert f(A, jnp.array(2.0)).tolist() == (2 * A).tolist()
    assert f(A, w=jnp.array(2.0)).tolist() == (2 * A).tolist()
    assert f(x=A, w=jnp.array(2.0)).tolist() == (2 * A).tolist()


def test_functions_as_specifications():
    def cut(x):
        return X if x.ndim else None

    traces = []

    def f(x, w):
        traces.append(1)
        return w * x, jax.lax.psum(x.sum(), "x"), "s"

    out = mapped(f, in_specs=cut, out_specs=cut)(A, jnp.array(2.0))
    assert out[0].tolist() == (2 * A).tolist()
    assert out[1:] == (28, "s")
    assert len(traces) <= 2


def test_outputs_that_are_the_same_everywhere():
    out = mapped(lambda x: [jax.lax.psum(x, "x"), 2 * x, "s"], out_specs=[None, X, None])(A)
    assert out[0].tolist() == [12, 16]
    assert out[1].tolist() == (2 * A).tolist()
    assert out[2] == "s"


def test_an_output_without_arrays():
    assert mapped(lambda x: ("s", None))(A) == ("s", None)


def test_arrays_of_the_function_are_on_each_device():
    scale = ec.Partial(lambda w, x: w * x, jnp.array(3.0))
    assert mapped(scale)(A).tolist() == (3 * A).tolist()
    slope = ec.filter_grad(lambda m: mapped(m)(A).sum())(scale)
    assert slope.args[0] == 28


def test_an_equinox_module():
    linear = eqx.nn.Linear(2, 2, key=jax.random.key(0))
    out = mapped(lambda m, x: jax.vmap(m)(x), in_specs=(None, X))(linear, jnp.ones((4, 2)))
    assert out[0].tolist() == linear(jnp.ones(2)).tolist()


def test_the_mesh_that_is_set():
    with jax.set_mesh(MESH):
        assert filter_shard_map(lambda x: x, in_specs=X, out_specs=X)(A).tolist() == A.tolist()


def test_partitions_are_those_that_the_arguments_have():
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
    x = jax.device_put(A, NamedSharding(mesh, X))
    shapes = []
    f = filter_shard_map(lambda x, s: (shapes.append(x.shape), 2 * x)[1], mesh=mesh, out_specs=X)
    assert f(x, "s").tolist() == (2 * A).tolist()
    assert shapes[0] == (2,)


def is_pair(node):
    return isinstance(node, tuple) and len(node) == 2


def test_a_node_gets_one_partition_where_is_leaf_says_so():
    seen = []

    def of_node(node):
        seen.append(node)
        return X if is_pair(node) else None

    def f(tree):
        assert [leaf.shape for leaf in (*tree["pair"], tree["rest"])] == [(2,), (1,), (8,)]
        return tree

    tree = {"pair": (A, jnp.arange(4.0)), "rest": A}
    out = mapped(f, of_node, lambda node: X if is_pair(node) else None, is_leaf=is_pair)(tree)
    assert ec.tree_equal(out, tree)
    assert [is_pair(node) for node in seen] == [True, False]


def test_a_specification_below_a_node_of_is_leaf_is_refused():
    with pytest.raises(StructureError, match="`in_specs` must be a tree prefix"):
        mapped(lambda pair: pair, ((X, X),), is_leaf=is_pair)((A, A))


def test_an_unchecked_replica():
    f = mapped(lambda x: x[:1], out_specs=None, check_vma=False)
    assert f(A).shape == (1,)
    with pytest.raises(ValueError, match="could not infer replication"):
        mapped(lambda x: x[:1], out_specs=None)(A)


def test_nested_in_jit_grad_and_vmap():
    f = mapped(lambda x, s: {"x": x**2, "s": s})
    assert ec.filter_jit(f)(A, "s")["x"].tolist() == (A**2).tolist()
    assert ec.filter_jit(f)(A, "s")["s"] == "s"
    assert jax.grad(lambda x: f(x, "s")["x"].sum())(A).tolist() == (2 * A).tolist()
    assert jax.vmap(lambda x: f(x, "s")["x"])(jnp.stack([A, A])).shape == (2, 8)
    _, out = jax.lax.scan(lambda c, x: (c, f(x, "s")["x"]), 0, jnp.stack([A, A]))
    assert out.shape == (2, 8)


def test_it_is_a_tree_that_looks_like_the_function():
    def f(x, *, flag=True):
        """Text."""

    made = mapped(f)
    assert (made.__name__, made.__doc__, made.__wrapped__) == ("f", "Text.", f)
    assert inspect.signature(made) == inspect.signature(f)
    scale = ec.Partial(f, A)
    assert jax.tree.leaves(mapped(scale))[1] is A


def test_as_a_decorator_and_on_methods():
    class Scale(ec.Module):
        w: jax.Array

        @filter_shard_map(mesh=MESH, in_specs=(None, X), out_specs=X)
        def method(self, x):
            return self.w * x

    assert Scale(jnp.array(2.0)).method(A).tolist() == (2 * A).tolist()


@pytest.mark.parametrize(
    ("fun", "args", "options", "error", "match"),
    [
        (
            lambda x: x,
            ([A[:7]],),
            {},
            ArgumentError,
            r"`args\[0\]\[0\]`, an array of shape \(7,\).*cut into 4",
        ),
        (
            lambda x: x,
            ([A[0]],),
            {},
            ArgumentError,
            r"`args\[0\]\[0\]`.*1 entries, and the array 0 dim",
        ),
        (
            lambda x: {"a": x[0]},
            (A,),
            {},
            ArgumentError,
            r"`out_specs` .*`out\['a'\]`, an array of shape \(\)",
        ),
        (
            lambda x: {"a": x},
            (A,),
            {"out_specs": [X]},
            StructureError,
            "`out_specs` must be a tree prefix",
        ),
        (
            lambda x: x,
            ({"a": A},),
            {"in_specs": ([X],)},
            StructureError,
            "`in_specs` must be a tree prefix",
        ),
        (lambda x: x, (A,), {"in_specs": (X, X)}, StructureError, r"with 2 entries\. Did you mean"),
        (lambda x: x, (A,), {"in_specs": {"y": X}}, ArgumentError, "speaks of `y`.*parameters `x`"),
        (
            lambda x: x,
            (A,),
            {"in_specs": (0,)},
            ArgumentTypeError,
            r"`in_specs\[0\]` is 0 of type `int`",
        ),
        (
            lambda x: x,
            (A,),
            {"out_specs": "x"},
            ArgumentTypeError,
            "`out_specs` is 'x' of type `str`",
        ),
        (
            lambda x: x,
            (A,),
            {"in_specs": lambda x: 0},
            ArgumentTypeError,
            "`in_specs` returned 0 of",
        ),
    ],
)
def test_mistakes(fun, args, options, error, match):
    with pytest.raises(error, match=match):
        mapped(fun, **options)(*args)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(ArgumentTypeError, match="`filter_shard_map` needs a callable.*got 3"):
        mapped(3)


@pytest.mark.parametrize("transform", [lambda f: f, ec.filter_jit])
def test_a_check_that_fails_on_one_device_does_not_keep_the_others_waiting(transform):
    def total(x):
        return jax.lax.psum(error_if(x, x < 0, "negative").sum(), "x")

    f = transform(mapped(total, out_specs=PartitionSpec()))
    for _ in range(2):
        assert f(A) == 28
        with pytest.raises(RuntimeCheckError, match="^negative"):
            f(A - 1)
