"""`filter_grad` and `filter_value_and_grad`."""

import functools
import inspect
import itertools
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

import ecliptic as ec
from ecliptic.errors import ArgumentError, ArgumentTypeError, EclipticWarning, SelectionError
from ecliptic.transform import filter_grad, filter_jit, filter_value_and_grad, filter_vmap

BOTH = pytest.mark.parametrize("transform", [filter_grad, filter_value_and_grad])


def two():
    return jnp.array(2.0)


class Line(ec.Module):
    slope: jax.Array
    offset: jax.Array
    name: str = "line"
    count: int = 3

    def __call__(self, x):
        return self.slope * x + self.offset

    @filter_grad
    def gradient(self, x):
        """The gradient with respect to the line."""
        return self.slope * x + self.offset

    @filter_value_and_grad(argnums=1)
    def value_and_slope(self, x):
        return self.slope * x + self.offset


def line():
    return Line(jnp.array(3.0), jnp.array(1.0))


def square_error(model, x):
    """Squared."""
    return model(x) ** 2


def gradient_of(transform, result):
    return result[1] if transform is filter_value_and_grad else result


# What is differentiated.


def test_the_gradient_is_that_of_the_arrays_of_the_first_argument():
    found = filter_grad(square_error)(line(), two())
    slope, offset = jax.grad(lambda s, o: (s * 2.0 + o) ** 2, argnums=(0, 1))(
        jnp.array(3.0), jnp.array(1.0)
    )
    assert found.slope == slope
    assert found.offset == offset


def test_the_value_comes_with_the_gradient():
    value, gradient = filter_value_and_grad(square_error)(line(), two())
    assert value == 49.0
    assert gradient.slope == 28.0


@BOTH
def test_other_leaves_have_none(transform):
    tree = {
        "w": two(),
        "int": jnp.arange(3),
        "bool": jnp.array(True),
        "key": jax.random.key(0),
        "float": 1.5,
        "function": jnp.tanh,
        "none": None,
        "string": "s",
    }
    found = gradient_of(transform, transform(lambda t: t["w"] ** 2)(tree))
    assert found == {**dict.fromkeys(tree), "w": jnp.array(4.0)}


def test_every_leaf_is_what_it_was_inside_the_function():
    seen = []

    def f(tree):
        seen.append((tree["f"], tree["s"], tree["i"], tree["n"]))
        return tree["w"] * 2.0

    filter_grad(f)({"w": two(), "f": jnp.tanh, "s": "s", "i": 3, "n": None})
    assert seen == [(jnp.tanh, "s", 3, None)]


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
def test_the_gradient_has_the_dtype_of_the_array(dtype):
    found = filter_grad(lambda x: jnp.sum(x.astype(jnp.float32)))(jnp.ones(3, dtype))
    assert found.dtype == dtype


@pytest.mark.parametrize("leaf", [np.ones(3, np.float32), np.float32(2.0)])
def test_arrays_and_scalars_of_numpy_are_differentiated(leaf):
    found = filter_grad(lambda t: jnp.sum(t["w"] * t["w"]))({"w": leaf})
    assert np.array_equal(found["w"], 2 * leaf)


def test_the_gradient_of_an_argument_that_is_not_used_is_zero():
    found = filter_grad(lambda t: t["a"] * 2.0)({"a": two(), "b": jnp.ones(3)})
    assert np.array_equal(found["b"], np.zeros(3))


def test_a_sparse_array_has_the_gradient_of_its_values():
    dense = jnp.array([[1.0, 0.0], [0.0, 2.0]])
    found = filter_grad(lambda m: (m @ jnp.array([1.0, 10.0])).sum())(sparse.BCOO.fromdense(dense))
    assert np.array_equal(found.data, [1.0, 10.0])
    assert found.indices is None


def test_modules_of_equinox_are_differentiated():
    model = eqx.nn.MLP(2, "scalar", 4, 1, key=jax.random.key(0))
    x = jnp.ones(2)
    ours = filter_grad(lambda m: m(x))(model)
    theirs = eqx.filter_grad(lambda m: m(x))(model)
    assert eqx.tree_equal(ours, theirs)


def test_holomorphic_functions_are_differentiated():
    found = filter_grad(lambda z: z**2, holomorphic=True)(jnp.array(1.0 + 2.0j))
    assert found == 2.0 + 4.0j


def test_a_real_function_of_complex_arrays_is_differentiated_as_jax_does():
    z = jnp.array([1.0 + 2.0j])

    def f(z):
        return jnp.abs(z).sum()

    assert np.array_equal(filter_grad(f)(z), jax.grad(f)(z))


def test_a_real_leaf_of_a_holomorphic_function_is_refused_by_path():
    tree = {"z": jnp.array(1j), "r": two()}
    with pytest.raises(ArgumentTypeError, match=r"`tree\['r'\]` has dtype float32.*`wrt="):
        filter_grad(lambda tree: tree["z"] * tree["r"], holomorphic=True)(tree)


def test_a_real_leaf_of_a_holomorphic_function_can_be_left_out():
    tree = {"z": jnp.array(3.0 + 0j), "r": two()}
    found = filter_grad(lambda t: t["z"] ** 2, holomorphic=True, wrt=lambda t: t["z"])(tree)
    assert found == {"z": jnp.array(6.0 + 0j), "r": None}


def test_gradients_nest():
    assert filter_grad(filter_grad(lambda x: x**3))(two()) == 12.0


# Which argument.


@pytest.mark.parametrize("place", [{"argnums": 1}, {"argnums": -1}, {"argnames": "y"}])
def test_another_argument_can_be_chosen(place):
    assert filter_grad(lambda x, y: x * y**2, **place)(jnp.array(3.0), two()) == 12.0


@pytest.mark.parametrize("place", [{"argnums": 1}, {"argnames": "y"}])
def test_the_chosen_argument_may_be_given_by_keyword(place):
    assert filter_grad(lambda x, y: x * y**2, **place)(jnp.array(3.0), y=two()) == 12.0


@pytest.mark.parametrize("place", [{"argnums": (1, 0)}, {"argnames": ("y", "x")}])
def test_several_arguments_have_a_tuple_of_gradients_in_the_order_asked_for(place):
    found = filter_grad(lambda x, y: x * y**2, **place)(jnp.array(3.0), two())
    assert found == (jnp.array(12.0), jnp.array(4.0))


def test_a_sequence_of_one_argument_has_a_tuple_of_one_gradient():
    assert filter_grad(lambda x: x**2, argnums=[0])(two()) == (jnp.array(4.0),)


def test_the_first_argument_may_be_given_by_keyword():
    assert filter_grad(lambda x, y: x**2 * y)(y=jnp.array(3.0), x=two()) == 12.0


def test_a_keyword_only_argument_can_be_differentiated():
    def f(x, *, scale):
        return x * scale

    assert filter_grad(f, argnames="scale")(two(), scale=jnp.array(5.0)) == 2.0


def test_an_entry_of_var_keywords_can_be_differentiated():
    assert filter_grad(lambda **k: k["a"] ** 2, argnames="a")(a=two(), b="s") == 4.0


def test_an_argument_may_be_called_fun_or_self():
    def f(self, fun):
        return self * fun

    assert filter_grad(f)(self=two(), fun=jnp.array(3.0)) == 3.0


class Unsigned:
    """A callable whose signature cannot be read."""

    __signature__ = "none"

    def __call__(self, x):
        return x**2


def test_a_function_without_a_signature_is_differentiated():
    assert filter_grad(Unsigned())(two()) == 4.0


def test_the_first_keyword_of_a_function_without_a_signature_is_unknown():
    with pytest.raises(ArgumentTypeError, match="the first one, and the call has 0 positional"):
        filter_grad(Unsigned())(x=two())


# Which part of it.


def test_a_selector_picks_a_node():
    found = filter_grad(square_error, wrt=lambda m: m.slope)(line(), two())
    assert found.slope == 28.0
    assert found.offset is None


def test_a_selector_picks_several_nodes():
    tree = {"a": [two(), two()], "b": two(), "c": two()}
    found = filter_grad(
        lambda t: t["a"][0] * t["a"][1] * t["b"] * t["c"], wrt=lambda t: (t["a"], t["c"])
    )(tree)
    assert found == {"a": [jnp.array(8.0)] * 2, "b": None, "c": jnp.array(8.0)}


def test_only_arrays_below_a_picked_node_are_differentiated():
    found = filter_grad(square_error, wrt=lambda m: m)(line(), two())
    assert found.slope == 28.0
    assert found.name is None


def test_a_mask_with_the_type_of_a_callable_model_is_no_function():
    model = ec.nn.Linear(2, 2, key=jax.random.key(0))
    mask = ec.tree_at(lambda m: m.weight, jax.tree.map(lambda _: False, model), True)
    loss = lambda model: jnp.sum(model(jnp.ones(2)))
    gradient = ec.filter_grad(loss, wrt=mask)(model)
    assert gradient.bias is None
    assert gradient.weight.tolist() == [[1, 1], [1, 1]]
    hole = ec.tree_at(lambda m: m.bias, mask, None)
    with pytest.raises(ec.errors.StructureError, match="bias"):
        ec.filter_grad(loss, wrt=hole)(model)


def test_a_filter_specification_picks_leaves():
    found = filter_grad(square_error, wrt=Line(True, False, False, False))(line(), two())
    assert found.slope == 28.0
    assert found.offset is None


def test_a_function_of_leaves_picks_leaves():
    tree = {"matrix": jnp.ones((2, 2)), "vector": jnp.ones(2)}
    found = filter_grad(
        lambda t: t["matrix"].sum() * t["vector"].sum(),
        wrt=lambda leaf: ec.is_array(leaf) and leaf.ndim == 2,
    )(tree)
    assert found["vector"] is None
    assert np.array_equal(found["matrix"], np.full((2, 2), 2.0))


def test_a_function_that_can_only_be_called_on_leaves_picks_leaves():
    found = filter_grad(lambda t: t["a"].sum(), wrt=lambda leaf: leaf.ndim == 1)(
        {"a": jnp.ones(2), "b": two()}
    )
    assert found["b"] is None
    assert np.array_equal(found["a"], [1.0, 1.0])


def test_with_several_arguments_wrt_is_about_their_tuple():
    found = filter_grad(
        lambda m, x: m["a"] * m["b"] * x, argnums=(0, 1), wrt=lambda both: (both[0]["a"], both[1])
    )({"a": two(), "b": two()}, two())
    assert found == ({"a": jnp.array(4.0), "b": None}, jnp.array(4.0))


def test_a_selector_with_a_mistake_fails_as_a_selector():
    with pytest.raises(AttributeError, match="'Line' object has no attribute 'slop'"):
        filter_grad(square_error, wrt=lambda m: m.slop)(line(), two())


def test_a_selector_of_something_else_is_refused():
    with pytest.raises(SelectionError, match="where"):
        filter_grad(square_error, wrt=lambda m: jnp.ones(3))(line(), two())


# Auxiliary output.


def test_the_auxiliary_output_may_be_anything():
    def f(x):
        return x**2, {"array": x + 1.0, "string": "s", "function": jnp.tanh, "none": None, "n": 1}

    gradient, aux = filter_grad(f, has_aux=True)(two())
    assert gradient == 4.0
    assert aux == {
        "array": jnp.array(3.0), "string": "s", "function": jnp.tanh, "none": None, "n": 1
    }  # fmt: skip


def test_the_value_comes_with_the_auxiliary_output():
    (value, aux), gradient = filter_value_and_grad(lambda x: (x**2, "aux"), has_aux=True)(two())
    assert (value, aux, gradient) == (4.0, "aux", 4.0)


def test_the_auxiliary_output_may_be_a_module():
    _, aux = filter_grad(lambda m: (m(two()), m), has_aux=True)(line())
    assert aux == line()


def test_the_auxiliary_output_keeps_numpy_arrays():
    array = np.arange(3)
    _, aux = filter_grad(lambda x: (x, array), has_aux=True)(two())
    assert aux is array


def test_no_tracer_of_the_gradient_survives_in_the_auxiliary_output():
    with jax.checking_leaks():
        _, aux = filter_grad(lambda x: (x**2, [x, x * 2.0]), has_aux=True)(two())
    assert aux == [jnp.array(2.0), jnp.array(4.0)]


def test_a_function_that_shall_return_a_pair_and_does_not_is_refused():
    with pytest.raises(ArgumentTypeError, match=r"must return a pair.*an array of shape \(\)"):
        filter_grad(lambda x: x, has_aux=True)(two())


def test_a_pair_without_has_aux_is_refused_with_the_way_out():
    with pytest.raises(ArgumentTypeError, match="a tuple of length 2. Pass `has_aux=True`"):
        filter_grad(lambda x: (x, "aux"))(two())


# The value.


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (jnp.ones(3), r"shape \(3,\) and dtype float32. Reduce it, for instance with `.mean\(\)`"),
        (jnp.ones(1), r"shape \(1,\) and dtype float32. Take the one element.*`.squeeze\(\)`"),
        (None, "returned None"),
        ("loss", "an object of type `str`"),
        ([1.0, 2.0, 3.0], "a list of length 3"),
    ],
)
def test_what_is_no_scalar_is_refused(output, message):
    with pytest.raises(ArgumentTypeError, match=f"Gradient only defined for scalar.*{message}"):
        filter_grad(lambda x: output)(two())


def test_the_message_names_the_function():
    with pytest.raises(ArgumentTypeError, match="`square_error` returned"):
        filter_grad(square_error)(line(), jnp.ones(2))


def test_a_value_of_integers_is_refused_as_jax_does():
    with pytest.raises(TypeError, match="real-valued outputs.*int32"):
        filter_grad(lambda x: jnp.array(1))(two())


def test_a_python_float_is_a_value():
    assert filter_value_and_grad(lambda x: 1.0)(two()) == (1.0, 0.0)


def test_an_object_that_becomes_an_array_is_a_value():
    class Loss:
        def __init__(self, value):
            self.value = value

        def __jax_array__(self):
            return self.value

    assert filter_grad(lambda x: Loss(x**2))(two()) == 4.0


# Empty gradients.


def unique(prefix):
    """A function that no test has used: a gradient is reported once for each name."""

    def f(x, *rest):
        return jnp.array(1.0)

    f.__qualname__ = f"{prefix}{next(_numbers)}"
    return f


_numbers = itertools.count()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (1.5, "with respect to `x` is empty: a Python number is no array and never trains.*`x`"),
        ({"scale": 1.5}, r"never trains, as at `x\['scale'\]`. Make it an array"),
        (dict.fromkeys("abcde", 1.5), r"`x\['a'\]`, `x\['b'\]`, `x\['c'\]` and 2 more"),
        (jnp.arange(3), r"its leaves are `x \(int32 array\)`. Cast integers to floats"),
        (object(), r"`x \(object\)`.*make a class a Module"),
        ([], "it has no leaves"),
    ],
)
def test_an_empty_gradient_is_reported_with_its_reason(argument, message):
    with pytest.warns(EclipticWarning, match=message):
        filter_grad(unique("empty"))(argument)


def test_an_empty_gradient_is_reported_once_for_a_function():
    f = filter_grad(unique("once"))
    with pytest.warns(EclipticWarning, match="is empty"):
        f(1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(1.5) is None


def test_the_report_points_to_the_callers_line():
    with pytest.warns(EclipticWarning, match="is empty") as caught:
        filter_grad(unique("line"))(1.5)
    assert caught[0].filename == __file__


def test_the_report_points_to_the_callers_line_under_jit():
    with pytest.warns(EclipticWarning, match="is empty") as caught:
        filter_jit(filter_grad(unique("line_of_jit")))(1.5)
    assert caught[0].filename == __file__


def test_a_float_beside_an_array_is_not_reported():
    found = filter_grad(lambda t: t["w"] * t["rate"])({"w": two(), "rate": 0.5})
    assert found["rate"] is None


def test_a_float_argument_among_several_is_reported():
    with pytest.warns(EclipticWarning, match=r"respect to `args\[1\]` is empty.*never trains"):
        filter_grad(unique("several"), argnums=(0, 1))(two(), 1.5)


def test_a_wrt_that_picks_no_array_is_reported_with_what_it_could_have_picked():
    def f(x):
        return x["w"]

    f.__qualname__ = f"wrt{next(_numbers)}"
    with pytest.warns(EclipticWarning, match=r"`wrt` picks none of.*which are `x\['w'\]`"):
        filter_grad(f, wrt=lambda x: x["i"])({"w": two(), "i": 3})


# Mistakes.


@BOTH
def test_a_call_without_arguments_is_refused(transform):
    with pytest.raises(
        ArgumentTypeError, match="`square_error`.*the first argument.*`model`.*0 pos"
    ):
        transform(square_error)()


def test_a_call_without_the_first_argument_is_refused():
    with pytest.raises(ArgumentTypeError, match="to differentiate is missing.*keywords `x`"):
        filter_grad(square_error)(x=two())


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"argnums": 2}, "`argnums` asks for argument 2"),
        ({"argnums": -3}, "`argnums` asks for argument -3"),
        ({"argnames": "z"}, "`argnames` asks for `z`"),
    ],
)
def test_an_argument_that_was_not_given_is_refused(place, message):
    with pytest.raises(ArgumentTypeError, match=message):
        filter_grad(lambda x, y: x * y, **place)(two(), two())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"argnums": "x"}, ArgumentTypeError, "`argnums` must be of type `int`.*got 'x'"),
        ({"argnums": True}, ArgumentTypeError, "`argnums` must be of type `int`.*got True"),
        ({"argnums": ()}, ArgumentTypeError, "non-empty sequence"),
        ({"argnames": 1}, ArgumentTypeError, "`argnames` must be of type `str`.*got 1"),
        ({"argnums": (0, 0)}, ArgumentError, "more than once"),
        ({"argnums": 0, "argnames": "x"}, ArgumentError, "either `argnums` or `argnames`"),
        ({"has_aux": 1}, ArgumentError, "`has_aux` must be True or False; got 1"),
        ({"nothing": 1}, ArgumentTypeError, "got the option `nothing`"),
    ],
)
@BOTH
def test_a_wrong_option_is_refused_at_the_decoration(transform, options, error, message):
    with pytest.raises(error, match=message):
        transform(lambda x: x, **options)


def test_one_argument_under_two_numbers_is_refused():
    with pytest.raises(ArgumentError, match="an argument of .* more than once"):
        filter_grad(lambda x: x, argnums=(0, -1))(two())


@BOTH
def test_what_cannot_be_called_is_refused_at_the_decoration(transform):
    with pytest.raises(ArgumentTypeError, match="needs a callable.*got 3 of type `int`"):
        transform(3)


# Wrappers.


@BOTH
def test_a_wrapper_looks_like_what_it_wraps(transform):
    wrapper = transform(square_error)
    assert wrapper.__wrapped__ is square_error
    assert wrapper.__name__ == "square_error"
    assert wrapper.__doc__ == "Squared."
    assert inspect.signature(wrapper) == inspect.signature(square_error)


@BOTH
def test_a_wrapper_is_a_module_whose_leaves_are_those_of_the_function(transform):
    wrapper = transform(line(), argnums=0, wrt=[True])
    assert isinstance(wrapper, ec.Module)
    assert jax.tree.leaves(wrapper) == jax.tree.leaves(line())


def test_wrappers_of_equal_functions_are_equal():
    assert filter_grad(square_error) == filter_grad(square_error)
    assert filter_grad(square_error) != filter_grad(square_error, has_aux=True)
    assert hash(filter_grad(square_error)) == hash(filter_grad(square_error))


def test_a_decorator_may_have_arguments():
    @filter_grad(argnums=1)
    def f(x, y):
        return x * y

    assert f(two(), jnp.array(3.0)) == 2.0


def test_a_method_is_differentiated_with_respect_to_its_module():
    found = line().gradient(two())
    assert (found.slope, found.offset, found.name) == (2.0, 1.0, None)


def test_a_method_may_be_differentiated_with_respect_to_another_argument():
    assert line().value_and_slope(two()) == (7.0, 3.0)


def test_a_bound_method_is_a_pytree():
    bound = line().gradient
    assert isinstance(bound, ec.Module)
    doubled = jax.tree.map(lambda x: x * 2 if ec.is_array(x) else x, bound)
    assert doubled.args[0].slope == 6.0


def test_a_bound_method_of_a_module_is_differentiated_in_its_argument():
    assert filter_grad(line().__call__)(two()) == 3.0


def test_a_module_is_differentiated_in_its_argument():
    assert filter_grad(line())(two()) == 3.0


def test_a_partial_function_is_differentiated():
    assert filter_grad(functools.partial(lambda a, x: a * x, 3.0))(two()) == 3.0


class Plain:
    @classmethod
    @filter_grad
    def above(cls, x):
        return x**2 * cls.factor()

    @filter_grad
    @classmethod
    def below(cls, x):
        return x**2 * cls.factor()

    @staticmethod
    @filter_grad
    def static_above(x):
        return x**2

    @filter_grad
    @staticmethod
    def static_below(x):
        return x**2

    @staticmethod
    def factor():
        return 1.0


@pytest.mark.parametrize("name", ["above", "below", "static_above", "static_below"])
@pytest.mark.parametrize("owner", [Plain, Plain()])
def test_class_and_static_methods_are_differentiated_in_their_argument(owner, name):
    assert getattr(owner, name)(two()) == 4.0


# Together with other transformations.


@pytest.mark.parametrize(
    "stack",
    [
        lambda f: filter_jit(filter_grad(f)),
        lambda f: filter_grad(filter_jit(f)),
        lambda f: filter_jit(filter_grad(filter_jit(f))),
    ],
)
def test_the_gradient_is_the_same_in_any_stack_with_jit(stack):
    assert stack(square_error)(line(), two()) == filter_grad(square_error)(line(), two())


def test_plain_jax_takes_a_gradient_of_arrays():
    f = filter_value_and_grad(lambda t: t["a"] ** 2)
    assert jax.jit(f)({"a": two()}) == (4.0, {"a": jnp.array(4.0)})


def test_gradients_for_each_example_come_from_vmap():
    xs = jnp.arange(3.0)
    found = filter_vmap(filter_grad(square_error), in_axes=(None, 0))(line(), xs)
    assert np.array_equal(found.slope, 2 * (3 * xs + 1) * xs)
    assert found.name is None


def test_the_gradient_of_a_scan_is_that_of_a_loop():
    def scanned(m):
        return jax.lax.scan(lambda c, _: (m(c), None), two(), None, length=3)[0]

    def looped(m):
        return m(m(m(two())))

    assert filter_grad(scanned)(line()) == filter_grad(looped)(line())


def test_the_function_is_traced_once():
    traces = []

    def f(x):
        traces.append(x)
        return x**2

    filter_jit(filter_value_and_grad(f))(two())
    assert len(traces) == 1


def test_is_leaf_says_where_a_specification_stops():
    tree = {"a": (jnp.array(1.0), jnp.array(2.0)), "b": [jnp.array(3.0)]}

    def f(tree):
        return tree["a"][0] * tree["a"][1] * tree["b"][0]

    how = dict(wrt=lambda node: isinstance(node, tuple), is_leaf=lambda n: isinstance(n, tuple))
    assert ec.filter_grad(f, **how)(tree) == {"a": (6.0, 3.0), "b": [None]}
    assert ec.filter_jacrev(f, **how)(tree) == {"a": (6.0, 3.0), "b": [None]}
    with pytest.raises(ArgumentError, match=r"`filter_grad\(is_leaf=...\)` .* no `wrt=`"):
        ec.filter_grad(f, is_leaf=lambda node: False)
