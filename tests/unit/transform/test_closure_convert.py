"""`filter_closure_convert`."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import ecliptic as ec
from ecliptic.errors import ArgumentError, ArgumentTypeError
from ecliptic.transform import filter_closure_convert as convert

Struct = jax.ShapeDtypeStruct


def times(y):
    return lambda x: x * y


def twice(consts):
    return [2 * const for const in consts]


def is_trivial(converted):
    return type(converted).__name__ == "_TrivialClosureConvert"


# --------------------------------------------------------------------------- what is closed over


def test_consts_are_the_very_arrays():
    y = jnp.arange(2.0)
    converted = convert(times(y), jnp.ones(2))
    assert converted.consts[0] is y
    assert jax.tree.leaves(converted) == [converted.jaxpr, y]
    assert converted(jnp.ones(2)).tolist() == [0, 1]


def test_consts_are_the_very_tracers():
    def f(y):
        converted = convert(times(y), jnp.ones(2))
        assert converted.consts[0] is y
        return converted(jnp.ones(2))

    assert jax.jit(f)(jnp.arange(2.0)).tolist() == [0, 1]
    assert jax.vmap(f)(jnp.arange(2.0)).tolist() == [[0, 0], [1, 1]]
    assert jax.grad(lambda y: f(y).sum())(jnp.arange(2.0)).tolist() == [1, 1]


def test_a_scalar_is_a_const_too():
    y = jnp.asarray(3.0)
    assert convert(times(y), jnp.ones(())).consts[0] is y


def test_arrays_of_a_callable_tree_are_consts():
    partial = ec.Partial(lambda a, x: a * x, jnp.arange(2.0))
    assert convert(partial, jnp.ones(2)).consts[0] is partial.args[0]


@pytest.mark.parametrize(
    "make",
    [
        times,
        lambda y: functools.partial(lambda y, x: x * y, y),
        lambda y: jax.jit(times(y)),
        lambda y: lambda x, y=y: x * y,
        lambda y: lambda x, *, y={"a": y}: x * y["a"],
    ],
    ids=["closure", "partial", "jitted", "default", "keyword default"],
)
def test_tracers_are_found_wherever_they_hide(make):
    def f(y):
        converted = convert(make(y), jnp.ones(2))
        assert not is_trivial(converted)
        assert any(const is y for const in converted.consts)
        return ec.tree_at(lambda c: c.consts, converted, replace_fn=twice)(jnp.ones(2))

    assert jax.jit(f)(jnp.arange(2.0)).tolist() == [0, 2]


def test_replaced_consts_are_used():
    converted = convert(times(jnp.arange(2.0)), jnp.ones(2))
    other = ec.tree_at(lambda c: c.consts, converted, [jnp.full(2, 5.0)])
    assert other(jnp.ones(2)).tolist() == [5, 5]


def test_a_function_that_closes_over_nothing_is_trivial():
    converted = convert(lambda x: 2 * x, jnp.ones(2))
    assert is_trivial(converted)
    assert not hasattr(converted, "consts")
    assert converted(jnp.ones(2)).tolist() == [2, 2]
    assert converted.out_struct == Struct((2,), jnp.float32)
    assert converted == convert(converted.fn, jnp.zeros(2))


@pytest.mark.parametrize(
    "example", [jnp.ones(2), np.ones(2, np.float32), Struct((2,), jnp.float32)]
)
@pytest.mark.parametrize("trivial", [True, False])
def test_which_are_trivial_is_as_in_equinox(example, trivial):
    f = (lambda x: x) if trivial else times(2.0)
    theirs, ours = eqx.filter_closure_convert(f, example), convert(f, example)
    assert is_trivial(ours) == is_trivial(theirs) == trivial


def test_converting_twice():
    y = jnp.arange(2.0)
    converted = convert(convert(times(y), jnp.ones(2)), jnp.ones(2))
    assert converted.consts[0] is y
    assert converted(jnp.ones(2)).tolist() == [0, 1]


# ------------------------------------------------------------------------------ inputs and outputs


def both(f, *args, **kwargs):
    """The function converted in both ways."""
    held = jnp.ones(())
    return [
        convert(f, *args, **kwargs),
        convert(lambda *a, **k: (held, f(*a, **k))[1], *args, **kwargs),
    ]


def nothing(x, s, *, k=None):
    return {"x": 2 * x, "s": s, "f": len, "n": None, "k": k}


def test_any_tree_in_and_out():
    for converted in both(nothing, jnp.ones(2), ["s", len], k={"a": jnp.ones(3, jnp.bfloat16)}):
        out = converted(jnp.ones(2), ["s", len], k={"a": jnp.ones(3, jnp.bfloat16)})
        assert out["x"].tolist() == [2, 2]
        assert out["s"] == ["s", len]
        assert out["f"] is len
        assert out["n"] is None
        assert out["k"]["a"].dtype == jnp.bfloat16
        assert converted.out_struct == {
            "x": Struct((2,), jnp.float32), "s": ["s", len], "f": len, "n": None,
            "k": {"a": Struct((3,), jnp.bfloat16)},
        }  # fmt: skip


def test_keys_and_numpy_arrays():
    for converted in both(
        lambda k, x: jax.random.normal(k, x.shape), jax.random.key(0), np.ones(3)
    ):
        out = converted(jax.random.key(1), np.zeros(3))
        assert out.tolist() == jax.random.normal(jax.random.key(1), (3,)).tolist()


def test_in_struct_is_the_example():
    for converted in both(nothing, jnp.ones(2), "s"):
        assert converted.in_struct == ((Struct((2,), jnp.float32), "s"), {})


@pytest.mark.parametrize(
    ("args", "kwargs", "match"),
    [
        ((jnp.ones(3), "s"), {}, r"`args\[0\]` is an array of shape \(3,\).*was .* shape \(2,\)"),
        ((jnp.ones(2, int), "s"), {}, r"`args\[0\]` is an array .*int32, and was .*float32"),
        ((jnp.ones(2), "t"), {}, r"`args\[1\]` is 't' of type `str`, and was 's'"),
        ((jnp.ones(3), "t"), {}, r"`args\[0\]` .*; `args\[1\]` is 't'"),
        ((None, "s"), {}, r"another structure .*: the call lacks `args\[0\]`\. Convert"),
        ((jnp.ones(2),), {"s": "s"}, r"lacks `args\[1\]`; the call adds `kwargs\['s'\]`"),
        ((len, "s"), {}, r"`args\[0\]` is <built-in function len>"),
        ((jnp.ones(2), jnp.ones(2)), {}, r"`args\[1\]` is an array .*, and was 's' of type `str`"),
    ],
    ids=str,
)  # fmt: skip
def test_other_arguments_are_refused_by_path(args, kwargs, match):
    for converted in both(lambda x, s: (x, s), jnp.ones(2), "s"):
        with pytest.raises(ArgumentError, match=match):
            converted(*args, **kwargs)


def test_a_long_list_of_differences_is_cut():
    for converted in both(lambda xs: xs, [jnp.ones(2)] * 6):
        with pytest.raises(ArgumentError, match=r"`args\[0\]\[3\]` .*; and 2 more\. Convert it"):
            converted([jnp.ones(3)] * 6)


def test_static_fields_that_cannot_be_compared_are_another_structure():
    class Bad(ec.Module):
        x: object = ec.field(static=True)

    bad = Bad("a")
    for converted in both(lambda m: 1, bad):
        with pytest.raises(ArgumentError, match="another structure"):
            converted(Bad("b"))


# ---------------------------------------------------------------- weak types, numbers, shardings


@pytest.mark.parametrize("example", [jnp.asarray(1.0), jnp.ones(())], ids=["weak", "strong"])
@pytest.mark.parametrize(
    "value", [jnp.asarray(3.0), jnp.full((), 3.0), np.float32(3), np.array(3.0), 3.0], ids=repr
)
def test_a_scalar_fits_whatever_its_weak_type(example, value):
    for converted in both(lambda x: x + 1, example):
        assert converted(value) == 4


def test_a_number_of_another_kind_does_not_fit():
    for converted in both(lambda x: x + 1, jnp.ones(())):
        with pytest.raises(ArgumentError, match="is 3 of type `int`, and was an array"):
            converted(3)


def test_a_number_in_the_example_is_a_constant():
    for converted in both(lambda x: x + 1, 2.0):
        assert converted(2.0) == 3
        with pytest.raises(ArgumentError, match=r"give the example `jnp.asarray\(2.0\)`"):
            converted(jnp.asarray(2.0))
        with pytest.raises(ArgumentError, match="is 2 of type `int`, and was 2.0 of type `float`"):
            converted(2)


def test_the_weak_type_of_the_output_is_in_its_struct():
    for converted in both(lambda x: x, jnp.asarray(1.0)):
        assert converted.out_struct.weak_type


@pytest.mark.parametrize("kind", list(AxisType)[:2], ids=str)
def test_another_sharding_fits(kind):
    mesh = jax.make_mesh((4,), ("x",), axis_types=(kind,))
    there = NamedSharding(mesh, PartitionSpec("x"))
    for converted in both(lambda x: 2 * x, jnp.arange(8.0)):
        assert converted(jax.device_put(jnp.arange(8.0), there)).tolist() == list(range(0, 16, 2))


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize(
    "example", [jnp.ones(2), Struct((2,), jnp.float32)], ids=["array", "struct"]
)
def test_called_inside_shard_map(check_vma, example):
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
    spec = PartitionSpec("x")
    for converted in (convert(lambda x: 2 * x, example), convert(times(jnp.full(2, 2.0)), example)):
        mapped = jax.shard_map(
            lambda x, f=converted: f(x),
            mesh=mesh, in_specs=spec, out_specs=spec, check_vma=check_vma,
        )  # fmt: skip
        assert mapped(jnp.arange(8.0)).tolist() == list(range(0, 16, 2))
        assert jax.jit(mapped)(jnp.arange(8.0)).tolist() == list(range(0, 16, 2))


def test_converted_inside_shard_map():
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
    spec = PartitionSpec("x")

    def f(x):
        return convert(times(2 * jnp.ones(2)), x)(x)

    mapped = jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)
    assert mapped(jnp.arange(8.0)).tolist() == list(range(0, 16, 2))


# ----------------------------------------------------------------------------------- as a tree


def test_it_goes_through_jit_grad_and_vmap_as_an_argument():
    converted = convert(times(jnp.arange(2.0)), jnp.ones(2))

    def call(c, x):
        return c(x)

    arrays, rest = ec.partition(converted, ec.is_array)
    jitted = jax.jit(lambda arrays, x: ec.combine(arrays, rest)(x))
    assert jitted(arrays, jnp.ones(2)).tolist() == [0, 1]
    assert ec.filter_jit(call)(converted, jnp.ones(2)).tolist() == [0, 1]
    slope = ec.filter_grad(lambda c, x: c(x).sum())(converted, jnp.full(2, 3.0))
    assert slope.consts[0].tolist() == [3, 3]
    many = ec.tree_at(lambda c: c.consts[0], converted, replace_fn=lambda c: jnp.stack([c, 2 * c]))
    out = ec.filter_vmap(call, in_axes=(ec.if_array(0), None))(many, jnp.ones(2))
    assert out.tolist() == [[0, 1], [0, 2]]


def differently(y):
    return lambda z: z - y


def programs_aside(converted):
    return ec.partition(converted, ec.is_array)


def test_two_programs_with_the_same_arguments_and_output_have_one_structure():
    y, x = jnp.arange(2.0), jnp.ones(2)
    one, other = convert(times(y), x), convert(differently(y), x)
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert hash(jax.tree.structure(one)) == hash(jax.tree.structure(other))
    assert not ec.tree_equal(one, other)
    assert ec.tree_equal(one, one)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda y: lambda x: x * y[None], (jnp.ones((1, 2)),)),
        (times, (jnp.ones(2, jnp.bfloat16),)),
        (lambda y: lambda x: (x * y,), (jnp.ones(2),)),
        (lambda y: lambda x: (x * y)[0], (jnp.ones(2),)),
        (lambda y: lambda x, s: x * y, (jnp.ones(2), "s")),
    ],
    ids=["shape", "dtype", "output", "shape of the output", "argument"],
)
def test_those_with_others_have_another_structure(f, args):
    y = jnp.arange(2.0, dtype=args[0].dtype)
    one, other = convert(times(jnp.arange(2.0)), jnp.ones(2)), convert(f(y), *args)
    assert jax.tree.structure(one) != jax.tree.structure(other)


def test_those_that_return_other_strings_have_another_structure():
    y, x = jnp.arange(2.0), jnp.ones(2)
    one, other = (convert(lambda x, s=s: (x * y, s), x) for s in "ab")
    assert jax.tree.structure(one) != jax.tree.structure(other)


def test_two_of_them_can_be_the_outputs_of_branches():
    x = jnp.ones(2)
    rest = programs_aside(convert(times(x), x))[1]

    def pick(which, y):
        return jax.lax.cond(
            which,
            lambda: programs_aside(convert(times(y), x))[0],
            lambda: programs_aside(convert(times(2 * y), x))[0],
        )

    assert ec.combine(pick(True, x), rest)(x).tolist() == [1, 1]
    assert ec.combine(pick(False, x), rest)(x).tolist() == [2, 2]


def test_equal_ones_are_traced_for_each_program():
    y, x = jnp.arange(2.0), jnp.ones(2)
    call = ec.filter_jit(lambda c, x: c(x))
    assert call(convert(times(y), x), x).tolist() == [0, 1]
    assert call(convert(differently(y), x), x).tolist() == [1, 0]


def test_it_shows_its_constants_and_not_its_program():
    shown = repr(convert(times(jnp.arange(2.0)), jnp.ones(2)))
    assert "f32[2]" in shown
    assert "mul" not in shown


def test_it_does_not_keep_tracers():
    def f(y):
        return convert(times(y), jnp.ones(2))

    with jax.checking_leaks():
        converted = ec.filter_vmap(f)(jnp.arange(2.0))
    assert converted.consts[0].tolist() == [0, 1]


def test_it_has_the_name_of_the_function():
    def named(x):
        return x

    y = jnp.ones(2)

    def closed(x):
        return x * y

    trivial, other = convert(named, y), convert(closed, y)
    assert (trivial.__name__, trivial.__wrapped__) == ("named", named)
    assert other.__name__.endswith("closed")
    with pytest.raises(ArgumentError, match="`.*closed` was converted for other arguments"):
        other(jnp.ones(3))


def test_what_cannot_be_called_is_refused():
    with pytest.raises(ArgumentTypeError, match="`filter_closure_convert` needs a callable.*got 3"):
        convert(3, jnp.ones(2))
