"""`filter_vmap` and `if_array`."""

import functools
import inspect
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from jax import export

import ecliptic as ec
from ecliptic.errors import ArgumentError, ArgumentTypeError, StructureError
from ecliptic.transform import filter_jit, filter_vmap, if_array

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def x23():
    return jnp.asarray(X)


class Layer(ec.Module):
    weight: jax.Array
    bias: jax.Array
    activation: object = jnp.tanh
    name: str = "layer"

    def __call__(self, x):
        return self.activation(self.weight @ x + self.bias)


def make_layer(key):
    a, b = jax.random.split(key)
    return Layer(jax.random.normal(a, (2, 3)), jax.random.normal(b, (2,)))


def layers(number=4):
    return filter_vmap(make_layer)(jax.random.split(jax.random.key(0), number))


def equal(first, second):
    return bool(ec.tree_equal(first, second))


def same(x):
    return x


# if_array.


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.ones(2), 1),
        (np.float32(1), 1),
        (1.0, None),
        ("relu", None),
        (None, None),
        (jnp.tanh, None),
        ({"a": np.ones(2)}, None),
    ],
)
def test_if_array_is_an_axis_for_arrays(value, expected):
    assert if_array(1)(value) == expected


def test_if_array_is_compared_by_its_axis_and_is_a_leaf():
    assert if_array(0) == if_array(axis=0) != if_array(1)
    assert repr(if_array(1)) == "if_array(axis=1)"
    assert jax.tree.leaves(if_array(0)) == [if_array(0)]


@pytest.mark.parametrize("axis", ["s", None, True, 1.5])
def test_if_array_takes_an_integer(axis):
    with pytest.raises(ArgumentTypeError, match=f"takes an integer; got {axis!r}"):
        if_array(axis)


# Arguments.


@pytest.mark.parametrize(
    "in_axes",
    [
        (0, None),
        [0, None],
        (if_array(0), None),
        (0, lambda leaf: None),
        (np.int64(0), None),
        {"y": None},
        {"x": 0, "y": None},
    ],
)
def test_axes_are_given_for_each_argument(in_axes):
    found = filter_vmap(lambda x, y: x * y.sum(), in_axes=in_axes)(x23(), x23())
    assert equal(found, x23() * 15.0)


@pytest.mark.parametrize(
    "in_axes", [1, -1, if_array(1), if_array(-1), lambda leaf: 1, (1,), {"x": -1}]
)
def test_any_axis_can_be_mapped(in_axes):
    assert equal(filter_vmap(same, in_axes=in_axes)(x23()), x23().T)


def test_axes_are_a_prefix_of_the_argument():
    def f(p):
        return p["a"] + p["b"][0].sum() + p["b"][1]

    found = filter_vmap(f, in_axes=({"a": 0, "b": (None, 1)},))({"a": x23(), "b": (x23(), x23().T)})
    assert equal(found, 2 * x23() + 15.0)


def test_what_is_no_array_is_the_same_for_each_element():
    seen = []

    def f(tree):
        seen.append((tree["f"], tree["s"], tree["i"], tree["n"], tree["x"].shape))
        return tree["x"]

    filter_vmap(f)({"f": jnp.tanh, "s": "s", "i": 3, "n": None, "x": x23()})
    assert seen == [(jnp.tanh, "s", 3, None, (3,))]


@pytest.mark.parametrize(
    "leaf", [X, X.astype(jnp.bfloat16), jnp.asarray(X), jax.random.split(jax.random.key(0), 2)]
)
def test_arrays_of_every_kind_are_mapped(leaf):
    assert equal(filter_vmap(same)(leaf), jnp.asarray(leaf))


def test_typed_keys_are_mapped():
    keys = jax.random.split(jax.random.key(0), 3)
    found = filter_vmap(lambda key: jax.random.normal(key, (2,)))(keys)
    assert equal(found, jnp.stack([jax.random.normal(key, (2,)) for key in keys]))


def test_an_unmapped_argument_is_the_callers_own():
    array, seen = x23(), []
    filter_vmap(lambda x, y: seen.append(y), in_axes=(0, None))(x23(), array)
    assert seen[0] is array


# Keyword arguments and defaults.


def test_keyword_arguments_are_mapped_like_positional_ones():
    assert equal(filter_vmap(lambda x, y: x * y)(x23(), y=x23()), x23() ** 2)


def test_one_axis_for_all_holds_for_keyword_arguments():
    found = filter_vmap(lambda x, y: x * y, in_axes=1)(x23(), y=x23())
    assert equal(found, (x23() ** 2).T)


def test_keyword_arguments_beside_a_tuple_are_mapped_by_default():
    found = filter_vmap(lambda x, *, y, s: x * y, in_axes=(0,))(x23(), y=x23(), s="s")
    assert equal(found, x23() ** 2)


def test_an_entry_of_the_tuple_holds_for_its_argument_given_by_keyword():
    found = filter_vmap(lambda x, y: x * y.sum(), in_axes=(0, None))(x23(), y=x23())
    assert equal(found, x23() * 15.0)


def test_keyword_arguments_have_axes_by_name():
    found = filter_vmap(lambda x, *, y: x * y.sum(), in_axes={"y": None})(x23(), y=x23())
    assert equal(found, x23() * 15.0)


def test_an_entry_of_var_keywords_has_an_axis_by_name():
    found = filter_vmap(lambda x, **k: x * k["y"].sum(), in_axes={"y": None})(x23(), y=x23())
    assert equal(found, x23() * 15.0)


@pytest.mark.parametrize("spec", [None, {"y": None}])
def test_var_keywords_have_axes_by_their_own_name(spec):
    found = filter_vmap(lambda x, **k: x * k["y"].sum(), in_axes={"k": spec})(x23(), y=x23())
    assert equal(found, x23() * 15.0)


@pytest.mark.parametrize("spec", [1, (1, 1)])
def test_var_positionals_have_axes_by_their_own_name(spec):
    found = filter_vmap(lambda x, *ys: x + ys[0] + ys[1], in_axes={"ys": spec})(
        x23(), x23().T, x23().T
    )
    assert equal(found, 3 * x23())


def test_a_default_is_not_mapped():
    def f(x, y=X):
        return x + y.shape[0]

    assert equal(filter_vmap(f)(x23()), x23() + 2)


@pytest.mark.parametrize("in_axes", [(0, 1), {"y": 1}])
def test_a_default_is_mapped_if_in_axes_says_so(in_axes):
    def f(x, y=X.T):
        return x + y

    assert equal(filter_vmap(f, in_axes=in_axes)(x23()), 2 * x23())


def test_a_function_without_a_signature_is_mapped():
    assert equal(filter_vmap(Unsigned(), in_axes=(0,))(x23()), x23() + 1)


def test_a_name_for_a_function_without_a_signature_is_refused():
    refused(ArgumentError, "has the parameters none", Unsigned(), x23(), in_axes={"x": 0})


class Unsigned:
    """A callable whose signature cannot be read."""

    __signature__ = "none"

    def __call__(self, x):
        return x + 1


@pytest.mark.parametrize("in_axes", [(0, 0), {"y": 0}])
def test_a_positional_only_default_cannot_be_mapped(in_axes):
    def f(x, y=X, /):
        return x

    refused(ArgumentError, "maps the positional-only argument `y`", f, x23(), in_axes=in_axes)


@pytest.mark.parametrize("in_axes", [(0, None), {"y": None}])
def test_a_positional_only_default_may_stay_unmapped(in_axes):
    def f(x, y=X, /):
        return x * y.sum()

    assert equal(filter_vmap(f, in_axes=in_axes)(x23()), x23() * 15)


def test_a_missing_argument_is_the_functions_own_error():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        filter_vmap(lambda x, y: x, in_axes=(0, None))(x23())


# Output.


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("wrap", [same, if_array, lambda axis: lambda leaf: axis])
def test_elements_are_put_together_at_any_axis(axis, wrap):
    x = jnp.arange(24.0).reshape(2, 3, 4)
    found = filter_vmap(
        lambda x: (x, "s") if callable(wrap(axis)) else (x, 1.0), out_axes=(wrap(axis), None)
    )(x)
    assert equal(found[0], jnp.moveaxis(x, 0, axis))


def test_axes_of_outputs_are_a_prefix():
    x = jnp.arange(24.0).reshape(2, 3, 4)
    a, (b, c) = filter_vmap(lambda x: (x, (x, x)), out_axes=(-1, (1, lambda leaf: 2)))(x)
    assert (a.shape, b.shape, c.shape) == ((3, 4, 2), (3, 2, 4), (3, 4, 2))


def test_outputs_that_are_no_arrays_are_returned_as_they_are():
    found = filter_vmap(lambda x: {"f": jnp.tanh, "s": "s", "n": None, "i": 3, "h": 1.5})(x23())
    assert found == {"f": jnp.tanh, "s": "s", "n": None, "i": 3, "h": 1.5}
    assert type(found["i"]) is int


@pytest.mark.parametrize("value", [True, 3, 1.5, 1j])
def test_a_python_number_is_broadcast_if_out_axes_says_so(value):
    found = filter_vmap(lambda x: value, out_axes=0)(x23())
    assert equal(found, jax.vmap(lambda x: value)(x23()))


def test_an_output_that_is_the_same_for_each_element_is_broadcast_by_default():
    assert filter_vmap(lambda x: jnp.ones(4))(x23()).shape == (2, 4)


def test_an_output_without_an_axis_is_returned_as_it_is():
    constant = jnp.ones(4)
    assert filter_vmap(lambda x: constant, out_axes=None)(x23()) is constant


def test_a_module_is_made_for_each_element():
    made = layers(4)
    assert (made.weight.shape, made.bias.shape, made.name) == ((4, 2, 3), (4, 2), "layer")


def test_an_ensemble_gives_what_its_members_give():
    made, x = layers(4), jnp.ones(3)
    found = filter_vmap(lambda layer, x: layer(x), in_axes=(if_array(0), None))(made, x)
    members = [
        ec.tree_at(lambda m: (m.weight, m.bias), made, (w, b))
        for w, b in zip(made.weight, made.bias, strict=True)
    ]
    assert np.allclose(found, jnp.stack([member(x) for member in members]), rtol=1e-6)


class BecomesArray:
    """An object that JAX turns into an array."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


def test_an_object_that_becomes_an_array_has_no_axis():
    made = BecomesArray(x23())
    assert filter_vmap(lambda x: made)(x23()) is made
    refused(ArgumentError, "axis 0 to `x`, which is not an array", same, made, in_axes=0)
    refused(ArgumentError, "axis 0 to `out`, which is not", lambda x: made, x23(), out_axes=0)


# The axis itself.


def test_the_axis_has_a_name():
    f = filter_vmap(lambda x: x - jax.lax.pmean(x, "i"), axis_name="i")
    assert equal(f(x23()), x23() - x23().mean(0, keepdims=True))


def test_the_size_can_be_given():
    f = filter_vmap(lambda: jax.lax.axis_index("i"), axis_name="i", axis_size=3)
    assert equal(f(), jnp.arange(3))


def test_an_output_is_repeated_axis_size_times():
    f = filter_vmap(same, in_axes=None, out_axes=1, axis_size=4)
    assert f(x23()).shape == (2, 4, 3)


def test_an_axis_can_have_size_zero():
    assert filter_vmap(lambda x: x + 1)(jnp.ones((0, 3))).shape == (0, 3)
    assert filter_vmap(lambda: jnp.ones(2), axis_size=0)().shape == (0, 2)


def test_without_mapped_arguments_the_function_is_called_once():
    array = x23()
    assert filter_vmap(same, in_axes=None, out_axes=None)(array) is array
    assert filter_vmap(same)("s") == "s"


def test_sharding_over_the_axis_is_passed_on():
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))

    def f(x):
        return jax.lax.with_sharding_constraint(x, jax.sharding.PartitionSpec())

    with jax.set_mesh(mesh):
        found = jax.jit(filter_vmap(f, spmd_axis_name="d"))(x23())
    assert equal(found, x23())


def test_symbolic_sizes_are_mapped():
    (b,) = export.symbolic_shape("b")
    exported = export.export(jax.jit(filter_vmap(lambda x, y: x + y)))(
        *[jax.ShapeDtypeStruct((b, 3), jnp.float32)] * 2
    )
    assert exported.call(x23(), x23()).shape == (2, 3)


# Other libraries' trees.


def test_dataclasses_of_flax_are_mapped():
    @struct.dataclass
    class Inner:
        x: jax.Array
        y: jax.Array
        name: str = struct.field(pytree_node=False)

    class Outer(struct.PyTreeNode):
        inner: Inner
        n: int = struct.field(pytree_node=False)

    outer = Outer(Inner(x23(), jnp.ones(2), "a"), 7)
    found = filter_vmap(lambda o: o.replace(inner=o.inner.replace(x=o.inner.x * o.n)))(outer)
    assert (found.n, found.inner.name) == (7, "a")
    assert equal(found.inner.x, x23() * 7)
    spec = Outer(Inner(0, None, "a"), 7)
    sums = filter_vmap(lambda o: o.inner.x.sum() + o.inner.y.sum(), in_axes=(spec,))(outer)
    assert equal(sums, x23().sum(1) + 2)


def test_modules_of_equinox_are_mapped():
    make = lambda key: eqx.nn.MLP(3, 2, 4, 1, key=key)
    keys = jax.random.split(jax.random.key(0), 4)
    ours, theirs = filter_vmap(make)(keys), eqx.filter_vmap(make)(keys)
    assert eqx.tree_equal(ours, theirs)
    apply = lambda m, x: m(x)
    found = filter_vmap(apply, in_axes=(eqx.if_array(0), None))(ours, jnp.ones(3))
    expected = eqx.filter_vmap(apply, in_axes=(eqx.if_array(0), None))(theirs, jnp.ones(3))
    assert eqx.tree_equal(found, expected)


# is_leaf.


class Pair(ec.Module):
    a: jax.Array
    b: jax.Array


def test_functions_are_called_on_the_nodes_that_is_leaf_names():
    seen = []

    def axis(node):
        seen.append(type(node))
        return 0 if isinstance(node, Pair) else 1

    pairs = (Pair(x23(), jnp.ones(2)), x23().T)
    found = filter_vmap(
        lambda p: p[0].a + p[1], in_axes=axis, is_leaf=lambda x: isinstance(x, Pair)
    )(pairs)
    assert equal(found, 2 * x23())
    assert seen[0] is Pair
    assert len(seen) == 2


def test_is_leaf_holds_for_outputs():
    found = filter_vmap(
        lambda x: Pair(x, x),
        out_axes=lambda node: 1 if isinstance(node, Pair) else None,
        is_leaf=lambda x: isinstance(x, Pair),
    )(x23())
    assert (found.a.shape, found.b.shape) == ((3, 2), (3, 2))


def test_none_can_be_shown_to_functions():
    seen = []

    def axis(node):
        seen.append(node is None)
        return None if node is None else 0

    filter_vmap(lambda t: t[0], in_axes=axis, is_leaf=lambda x: x is None)((jnp.ones(3), None))
    assert sorted(seen) == [False, True]


# Wrappers.


def documented(x):
    """Doubles."""
    return x * 2


def test_a_wrapper_looks_like_what_it_wraps():
    wrapper = filter_vmap(documented)
    assert wrapper.__wrapped__ is documented
    assert (wrapper.__name__, wrapper.__doc__) == ("documented", "Doubles.")
    assert inspect.signature(wrapper) == inspect.signature(documented)


def test_a_wrapper_is_a_module_whose_leaves_are_those_of_the_function():
    wrapper = filter_vmap(make_layer(jax.random.key(0)), in_axes=(0,), axis_size=3)
    assert isinstance(wrapper, ec.Module)
    assert [leaf for leaf in jax.tree.leaves(wrapper) if isinstance(leaf, int)] == []
    assert len(jax.tree.leaves(wrapper)) == 4


def test_wrappers_of_the_same_are_equal():
    assert filter_vmap(same, in_axes=[0]) == filter_vmap(same, in_axes=[0])
    assert hash(filter_vmap(same, in_axes=[0])) == hash(filter_vmap(same, in_axes=[0]))
    assert filter_vmap(same) != filter_vmap(same, in_axes=1)


def test_a_decorator_may_have_arguments():
    @filter_vmap(in_axes=(0, None))
    def f(x, y):
        return x * y.sum()

    assert equal(f(x23(), x23()), x23() * 15)


class Scale(ec.Module):
    w: jax.Array

    @filter_vmap
    def each(self, x):
        return self.w * x

    @filter_vmap(in_axes=(None, 0))
    def by_position(self, x):
        return self.w * x

    @filter_vmap(in_axes={"self": None})
    def by_name(self, x):
        return self.w * x

    @classmethod
    @filter_vmap
    def above(cls, x):
        return cls.twice(x)

    @filter_vmap
    @classmethod
    def below(cls, x):
        return cls.twice(x)

    @filter_vmap
    @staticmethod
    def static(x):
        return 2 * x

    @staticmethod
    def twice(x):
        return 2 * x


def test_a_method_is_mapped_with_its_module():
    assert equal(Scale(jnp.arange(2.0)).each(x23()), jnp.asarray(X * [[0], [1]], jnp.float32))


@pytest.mark.parametrize("name", ["by_position", "by_name"])
def test_a_method_can_leave_its_module_unmapped(name):
    assert equal(
        getattr(Scale(jnp.arange(3.0)), name)(x23()), jnp.asarray(X * np.arange(3), jnp.float32)
    )


@pytest.mark.parametrize("name", ["above", "below", "static"])
@pytest.mark.parametrize("owner", [Scale, Scale(1.0)])
def test_class_and_static_methods_are_mapped(owner, name):
    assert equal(getattr(owner, name)(x23()), 2 * x23())


def test_bound_methods_modules_and_partial_functions_are_mapped():
    layer = make_layer(jax.random.key(0))
    xs = jnp.ones((5, 3))
    for f in (layer, layer.__call__, functools.partial(lambda m, x: m(x), layer)):
        assert filter_vmap(f)(xs).shape == (5, 2)


# Together with other transformations.


def test_vmaps_nest():
    x = jnp.arange(24.0).reshape(2, 3, 4)
    found = filter_vmap(
        filter_vmap(lambda x, y: (x, y.sum()), in_axes=(1, None)), in_axes=(0, None)
    )(x, x23())
    assert equal(found, (jnp.moveaxis(x, 1, 2).mT.swapaxes(1, 2), jnp.full((2, 4), 15.0)))


def test_names_of_nested_axes_are_told_apart():
    f = filter_vmap(
        filter_vmap(lambda x: x - jax.lax.pmean(x, ("i", "j")), axis_name="j"), axis_name="i"
    )
    assert np.allclose(f(x23()), x23() - x23().mean())


def test_a_mapped_function_is_compiled_differentiated_and_scanned():
    def loss(w):
        return filter_vmap(lambda w, x: (w * x).sum(), in_axes=(None, 0))(w, x23()).sum()

    assert equal(jax.jit(jax.grad(loss))(jnp.arange(3.0)), x23().sum(0))
    step = filter_vmap(lambda c: (c[0] * 2, c[1]))
    carried, _ = jax.lax.scan(lambda c, _: (step(c), None), (x23(), jnp.ones(2)), None, length=3)
    assert equal(carried[0], 8 * x23())
    assert filter_jit(filter_vmap(lambda x, s: (x, s)))(x23(), "s")[1] == "s"


def test_a_compiled_function_is_mapped():
    assert equal(filter_vmap(filter_jit(lambda x, s: x * len(s)))(x23(), "two"), 3 * x23())


def test_no_tracer_survives():
    with jax.checking_leaks():
        filter_vmap(filter_vmap(lambda x: {"x": x + 1, "s": "s"}))(x23())
        jax.jit(filter_vmap(same))(x23())


# Mistakes.


def refused(error, message, fun, *args, call=None, **options):
    with pytest.raises(error, match=message):
        filter_vmap(fun, **options)(*args, **(call or {}))


def test_an_axis_for_what_is_no_array_is_refused_by_path():
    refused(
        ArgumentError,
        r"`in_axes` gives axis 0 to `x\['a'\]`, which is not an array but has type `str`. Use None "
        r"for it, or `if_array\(0\)`",
        same,
        {"a": "s", "b": jnp.ones(3)},
        in_axes=0,
    )


def test_an_axis_for_an_output_that_is_no_array_is_refused_by_path():
    refused(
        ArgumentError,
        r"`out_axes` gives axis 0 to `out\[1\]`, which is not an array but has type `str`",
        lambda x: (x, "s"),
        x23(),
        out_axes=0,
    )


def test_an_axis_that_an_argument_does_not_have_is_refused_by_path():
    refused(
        ArgumentError,
        r"`in_axes` gives axis 2 to `x\[0\]`, but it has only 2 dim",
        same,
        (x23(),),
        in_axes=2,
    )


def test_an_axis_that_an_output_cannot_have_is_refused_by_path():
    refused(
        ArgumentError,
        r"`out_axes` gives axis 2 to `out`, but the mapped output has only 1 dimension\.",
        same,
        jnp.ones(3),
        out_axes=2,
    )


def test_a_single_key_is_refused_with_the_way_out():
    refused(
        ArgumentError,
        r"axis 0 to `key`, but it has only 0 dimensions.*write `in_axes=\{'key': None\}`",
        lambda x, key: x,
        x23(),
        call={"key": jax.random.key(0)},
    )


@pytest.mark.parametrize("option", ["in_axes", "out_axes"])
@pytest.mark.parametrize("spec", ["0", True, 1.5, (0, "s")])
def test_what_is_no_specification_is_refused_at_the_decoration(option, spec):
    with pytest.raises(ArgumentTypeError, match=f"`{option}` must consist of integers, None and"):
        filter_vmap(same, **{option: spec})


def test_a_wrong_entry_of_a_dict_is_refused_by_name():
    with pytest.raises(ArgumentTypeError, match=r"`in_axes\['x'\]\[1\]` is 's'"):
        filter_vmap(same, in_axes={"x": (0, "s")})


def test_a_traced_specification_is_refused():
    with pytest.raises(ArgumentTypeError, match=r"`in_axes\[0\]` is traced.*Close over it"):
        jax.jit(lambda axis: filter_vmap(same, in_axes=(axis,))(x23()))(0)


@pytest.mark.parametrize("option", ["in_axes", "out_axes"])
def test_a_function_that_returns_no_axis_is_refused_by_path(option):
    name = "x" if option == "in_axes" else "out"
    refused(
        ArgumentTypeError,
        rf"A function in `{option}` returned 'a', of type `str`, for `{name}\['k'\]`",
        same,
        {"k": x23()},
        **{option: lambda leaf: "a"},
    )


@pytest.mark.parametrize("in_axes", [(0,), (0, 0, 0)])
def test_a_tuple_of_another_length_than_the_arguments_is_refused(in_axes):
    refused(
        StructureError,
        r"it has \d entr(y|ies), and .* was called with 2 arguments\.",
        lambda x, y: x,
        x23(),
        x23(),
        in_axes=in_axes,
    )


def test_a_specification_outside_a_tuple_is_refused_with_the_way_out():
    refused(
        StructureError, r"did you mean `in_axes=\(spec,\)`", same, (x23(), x23()), in_axes=(0, 0)
    )
    refused(
        ArgumentError,
        r"correspond.*`a`.*parameters `x`.*did you mean",
        same,
        {"a": x23()},
        in_axes={"a": 0},
    )
    refused(StructureError, r"of type `Pair`.*did you mean", same, x23(), in_axes=Pair(0, 0))


def test_a_specification_outside_a_tuple_is_taken_where_it_can_mean_one_thing():
    spec = Pair(0, None)
    found = filter_vmap(lambda p: p.a + p.b.sum(), in_axes=spec)(Pair(x23(), jnp.ones(3)))
    assert equal(found, x23() + 3)


def test_a_named_tuple_is_a_specification_of_one_argument():
    class Both(NamedTuple):
        a: object
        b: object

    found = filter_vmap(lambda p: p.a + p.b.sum(), in_axes=Both(0, None))(Both(x23(), jnp.ones(3)))
    assert equal(found, x23() + 3)


def test_two_arguments_with_a_specification_of_another_kind_are_refused():
    refused(
        StructureError,
        "was called with 2 arguments, and `in_axes` is of type `Pair`",
        lambda x, y: x,
        x23(),
        x23(),
        in_axes=Pair(0, 0),
    )


def test_a_name_that_is_no_argument_is_refused():
    refused(
        ArgumentError,
        "did not correspond to any argument: `z`.*has the parameters `x`, `y`",
        lambda x, y: x,
        x23(),
        x23(),
        in_axes={"z": 0},
    )


def test_a_specification_for_another_number_of_var_positionals_is_refused():
    refused(
        StructureError,
        r"`in_axes` has 3 entries for `\*xs`, of which there are 2",
        lambda *xs: xs[0],
        x23(),
        x23(),
        in_axes={"xs": (0, 0, 0)},
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([0, 0], r"at `x` the specification has a `list`, and the value is of type `tuple`"),
        (
            (0, (0, 0)),
            r"at `x\[1\]` the specification has a `tuple`, and the value is of type `Array",
        ),
        ((0, 0, 0), r"at `x` the specification has the entries \['\[0\]', .*and the value has"),
    ],
)
def test_a_specification_that_is_no_prefix_is_refused_by_path(spec, message):
    refused(
        StructureError,
        f"`in_axes` must be a tree prefix of the arguments.*{message}",
        same,
        (x23(), x23()),
        in_axes=(spec,),
    )


def test_a_specification_whose_static_fields_differ_is_refused():
    class Named(ec.Module):
        x: object
        name: str = ec.field(static=True)

    refused(
        StructureError,
        "it is not: static fields differ",
        same,
        Named(x23(), "a"),
        in_axes=(Named(0, "b"),),
    )


def test_out_axes_that_are_no_prefix_are_refused_by_path():
    refused(
        StructureError,
        r"`out_axes` must be a tree prefix of the output.*at `out\['a'\]` the specification has",
        lambda x: {"a": x},
        x23(),
        out_axes={"a": (0, 0)},
    )


def test_a_size_other_than_axis_size_is_refused():
    refused(ArgumentError, r"(?s)\* 5: `axis_size`.*\* 2: `x`", same, x23(), axis_size=5)


def test_a_mapped_output_without_mapped_arguments_is_refused():
    refused(
        ArgumentError,
        r"mapped output `out\['a'\]` shall have. Pass `axis_size=`",
        lambda x: {"a": x},
        x23(),
        in_axes=None,
    )


@pytest.mark.parametrize("out_axes", [None, lambda leaf: None])
def test_a_mapped_output_without_an_axis_is_refused_by_path(out_axes):
    refused(
        ArgumentError,
        r"`out_axes` is None for `out\['b'\]`, but that output depends on a mapped argument",
        lambda x: {"a": jnp.ones(2), "b": x},
        x23(),
        out_axes=out_axes,
    )


def test_an_index_of_the_axis_without_an_axis_is_refused():
    refused(
        ArgumentError,
        "`out_axes` is None for `out`",
        lambda: jax.lax.axis_index("i"),
        axis_name="i",
        axis_size=3,
        out_axes=None,
    )


def test_symbolic_sizes_that_differ_are_refused():
    b, c = export.symbolic_shape("b, c")
    arguments = [jax.ShapeDtypeStruct((size, 3), jnp.float32) for size in (b, c)]
    with pytest.raises(ArgumentError, match=r"(?s)\* b: `x`.*\* c: `y`"):
        export.export(jax.jit(filter_vmap(lambda x, y: x)))(*arguments)


def test_an_unknown_option_is_refused():
    with pytest.raises(ArgumentTypeError, match="got the option `nothing`"):
        filter_vmap(same, nothing=1)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(ArgumentTypeError, match="`filter_vmap` needs a callable.*got 3"):
        filter_vmap(3)
