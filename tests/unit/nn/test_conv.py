"""`Conv` and `ConvTranspose`: shapes, arguments, messages."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.errors import LayerArgumentError, ShapeError
from ecliptic.transform import filter_jit
from tests.support.operations import operations

BOTH = pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])


def test_a_convolution_is_a_sum_over_the_window(getkey):
    layer = nn.Conv1d(1, 1, 3, stride=2, dilation=2, key=getkey())
    x = jnp.arange(1.0, 9.0)[None]
    w, b = np.asarray(layer.weight[0, 0]), float(layer.bias[0, 0])
    expected = [[sum(w[t] * (1 + i + 2 * t) for t in range(3)) + b for i in (0, 2)]]
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5)


def test_the_transpose_of_a_convolution_is_its_adjoint(getkey):
    down = nn.Conv1d(2, 3, 4, stride=3, padding=1, use_bias=False, key=getkey())
    up = nn.ConvTranspose1d(
        3, 2, 4, stride=3, padding=1, output_padding=1, use_bias=False, key=getkey()
    )
    weight = jnp.flip(down.weight.swapaxes(0, 1), 2)
    object.__setattr__(up, "weight", weight)
    x = jax.random.normal(getkey(), (2, 12))
    y = jax.random.normal(getkey(), down(x).shape)
    np.testing.assert_allclose(jnp.vdot(down(x), y), jnp.vdot(x, up(y)), rtol=1e-4)


@pytest.mark.parametrize(
    ("mode", "padded"),
    [
        ("zeros", [0, 0, 1, 2, 3, 4, 0]),
        ("REFLECT", [3, 2, 1, 2, 3, 4, 3]),
        ("replicate", [1, 1, 1, 2, 3, 4, 4]),
        ("CIRCULAR", [3, 4, 1, 2, 3, 4, 1]),
    ],
)
def test_a_padding_mode_continues_the_example(getkey, mode, padded):
    key = getkey()
    layer = nn.Conv1d(1, 1, 4, padding=((2, 1),), padding_mode=mode, key=key)
    plain = nn.Conv1d(1, 1, 4, key=key)
    x = jnp.arange(1.0, 5.0)[None]
    np.testing.assert_allclose(layer(x), plain(jnp.asarray([padded], jnp.float32)), rtol=1e-6)
    assert layer.padding_mode == mode.upper()


@pytest.mark.parametrize("mode", ["ZEROS", "REFLECT", "REPLICATE", "CIRCULAR"])
@pytest.mark.parametrize(("word", "pair"), [("SAME", (1, 2)), ("SAME_LOWER", (2, 1))])
def test_same_padding_with_a_stride_is_split_in_every_mode(getkey, mode, word, pair):
    key = getkey()
    options = {"stride": 2, "dilation": 2, "padding_mode": mode, "key": key}
    same = nn.Conv1d(1, 1, 3, padding=word, **options)
    explicit = nn.Conv1d(1, 1, 3, padding=(pair,), **options)
    x = jnp.arange(1.0, 7.0)[None]
    assert same(x).shape == (1, 3)
    np.testing.assert_array_equal(same(x), explicit(x))


def test_a_group_sees_its_own_channels_only(getkey):
    layer = nn.Conv1d(4, 6, 1, groups=2, use_bias=False, key=getkey())
    y = layer(jnp.zeros((4, 1)).at[:2].set(1))
    assert np.all(np.asarray(y[:3]) != 0)
    np.testing.assert_array_equal(y[3:], 0)


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_class_for_some_axes_is_the_general_one(getkey, kind, axes):
    key = getkey()
    general = getattr(nn, kind)(axes, 2, 3, 2, padding=1, stride=2, key=key)
    special = getattr(nn, f"{kind}{axes}d")(2, 3, 2, padding=1, stride=2, key=key)
    assert isinstance(special, getattr(nn, kind))
    assert jax.tree.structure(list(vars(general).values())) == jax.tree.structure(
        list(vars(special).values())
    )
    np.testing.assert_array_equal(general.weight, special.weight)


def test_fields_are_in_order_and_only_the_arrays_are_leaves():
    names = [f.name for f in dataclasses.fields(nn.Conv2d)]
    first = "num_spatial_dims weight bias in_channels out_channels kernel_size stride padding"
    assert names == [*first.split(), "dilation", "groups", "use_bias", "padding_mode"]
    transposed = [f.name for f in dataclasses.fields(nn.ConvTranspose2d)]
    assert transposed == [*names[:8], "output_padding", *names[8:]]
    for kind in (nn.Conv2d, nn.ConvTranspose2d):
        dynamic = [f.name for f in dataclasses.fields(kind) if not f.metadata.get("static")]
        assert dynamic == ["weight", "bias"]


@BOTH
def test_lists_and_numpy_numbers_make_the_same_structure(getkey, kind):
    key = getkey()
    one = kind(2, 3, 3, stride=(1, 2), padding=((1, 0), (0, 1)), dilation=1, key=key)
    other = kind(
        np.int64(2),
        3,
        np.array([3, 3]),
        stride=[1, 2],
        padding=[[1, 0], np.array([0, 1])],
        dilation=np.int32(1),
        key=key,
    )
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert hash(jax.tree.structure(one)) == hash(jax.tree.structure(other))


def test_an_integer_beside_a_pair_counts_for_both_ends(getkey):
    assert nn.Conv2d(1, 1, 3, padding=((1, 2), 0), key=getkey()).padding == ((1, 2), (0, 0))


@BOTH
def test_a_complex_layer_is_complex(getkey, kind):
    layer = kind(2, 2, 2, dtype=jnp.complex64, key=getkey())
    y = layer(jnp.ones((2, 3, 3), jnp.complex64))
    assert y.dtype == jnp.complex64
    assert float(jnp.abs(y.imag).max()) > 0


@BOTH
def test_a_call_takes_a_key_and_ignores_it(getkey, kind):
    layer, x = kind(1, 1, 1, key=getkey()), jnp.ones((1, 2, 2))
    np.testing.assert_array_equal(layer(x, key=getkey()), layer(x))


def test_dtypes_are_promoted_only_if_jax_promotes(getkey):
    layer, x = nn.Conv1d(1, 1, 1, key=getkey()), jnp.ones((1, 2), jnp.int32)
    with pytest.raises(ValueError, match="promotion path"):
        layer(x)
    with jax.numpy_dtype_promotion("standard"):
        assert layer(x).dtype == jnp.float32


def test_the_program_is_one_convolution_and_one_sum(getkey):
    layer = nn.Conv2d(2, 3, 3, key=getkey())
    eqns = operations(layer.__call__, jnp.ones((2, 4, 4)))
    names = [eqn.primitive.name for eqn in eqns]
    assert names == ["broadcast_in_dim", "conv_general_dilated", "squeeze", "add"]


def test_every_argument_is_static_under_jit(getkey):
    layer = nn.Conv1d(1, 1, 3, padding="same", padding_mode="circular", key=getkey())
    x = jnp.ones((1, 4))
    np.testing.assert_allclose(filter_jit(lambda m, x: m(x))(layer, x), layer(x), rtol=1e-6)


@BOTH
def test_a_batch_is_refused_with_advice(getkey, kind):
    with pytest.raises(
        ShapeError,
        match=rf"`{kind.__name__}` was made with in_channels=3 and acts on one example of shape "
        r"\(3, n1, n2\): channels first, then 2 spatial axes; got x of shape \(5, 3, 4, 4\)\. "
        r".*did you mean `jax\.vmap\(layer\)\(x\)`\?",
    ):
        kind(3, 2, 2, key=getkey())(jnp.ones((5, 3, 4, 4)))


@BOTH
def test_a_wrong_number_of_channels_is_refused(getkey, kind):
    with pytest.raises(ShapeError, match=r"(?m)in_channels=3 .* got x of shape \(2, 4, 4\)\.$"):
        kind(3, 2, 2, key=getkey())(jnp.ones((2, 4, 4)))


def test_channels_at_the_end_are_refused_with_advice(getkey):
    with pytest.raises(ShapeError, match=r"did you mean `layer\(jnp\.moveaxis\(x, -1, 0\)\)`\?"):
        nn.Conv2d(3, 2, 2, key=getkey())(jnp.ones((8, 8, 3)))


def test_a_left_out_channel_is_refused_with_advice(getkey):
    with pytest.raises(ShapeError, match=r"\(1, n1\): .*one spatial axis;.* `layer\(x\[None\]\)`"):
        nn.Conv1d(1, 2, 2, key=getkey())(jnp.ones(8))


@pytest.mark.parametrize("mode", ["ZEROS", "CIRCULAR"])
def test_an_example_smaller_than_the_kernel_is_refused(getkey, mode):
    layer = nn.Conv2d(1, 1, (1, 3), dilation=2, padding=(0, 1), padding_mode=mode, key=getkey())
    with pytest.raises(
        ShapeError,
        match=r"window of 5 positions along axis 2, but x of shape \(1, 4, 2\) has only 2 there, "
        "and 4 with the padding",
    ):
        layer(jnp.ones((1, 4, 2)))


def test_a_padding_that_leaves_no_output_is_refused(getkey):
    layer = nn.ConvTranspose1d(1, 1, 2, padding=2, key=getkey())
    with pytest.raises(ShapeError, match=r"leaves no element of axis 1 of x of shape \(1, 2\)"):
        layer(jnp.ones((1, 2)))


WRONG = [
    ({"num_spatial_dims": 0}, "num_spatial_dims=0, but it is an integer of at least 1"),
    ({"num_spatial_dims": "2"}, "num_spatial_dims='2'"),
    ({"in_channels": -1}, "in_channels=-1, but a size is a non-negative integer"),
    ({"out_channels": 2.0}, r"out_channels=2\.0"),
    ({"kernel_size": 0}, "kernel_size=0, but it is an integer of at least 1, or a tuple of 2"),
    ({"kernel_size": (3,)}, r"kernel_size=\(3,\)"),
    ({"kernel_size": "33"}, "kernel_size='33'"),
    ({"kernel_size": np.array(2.5)}, r"kernel_size=array\(2\.5\)"),
    ({"stride": (1, 0)}, r"stride=\(1, 0\)"),
    ({"stride": 1.5}, r"stride=1\.5"),
    ({"dilation": (1, 2, 3)}, r"dilation=\(1, 2, 3\)"),
    ({"padding": -1}, "padding=-1, but a padding is a non-negative integer"),
    ({"padding": ((0, 0), (0, -1))}, r"instance padding=\(\(1, 2\), \(1, 2\)\)\. It can also be"),
    ({"padding": (1,)}, "a tuple of length 2 that holds"),
    ({"padding": ((1, 2, 3), 0)}, "padding="),
    ({"padding": "full"}, "padding='full'.*'SAME', 'SAME_LOWER' or 'VALID'"),
    ({"padding": None}, "padding=None"),
    ({"padding_mode": "constant"}, "padding_mode='constant', but it is one of 'ZEROS', "),
    ({"padding_mode": None}, "padding_mode=None"),
    ({"groups": 0}, "groups=0"),
    ({"groups": 3}, "in_channels=4 and groups=3, but in_channels must be divisible by groups"),
    ({"groups": 4}, "out_channels=6 and groups=4, but out_channels must be divisible"),
    ({"dtype": jnp.int32}, "floating or complex dtype"),
]


@pytest.mark.parametrize("kind", [nn.Conv, nn.ConvTranspose])
@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_a_wrong_argument_is_refused(getkey, kind, wrong, message):
    right = {"num_spatial_dims": 2, "in_channels": 4, "out_channels": 6, "kernel_size": 3}
    with pytest.raises(LayerArgumentError, match=f"`{kind.__name__}` got .*{message}"):
        kind(**{**right, **wrong}, key=getkey())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"output_padding": -1}, "output_padding=-1"),
        (
            {"output_padding": 2},
            r"output_padding=\(2,\) and stride=\(2,\), but output_padding must",
        ),
        ({"padding_mode": "reflect"}, "padding_mode='REFLECT', but .* only 'ZEROS' and 'CIRCULAR'"),
        ({"padding_mode": "circular"}, r"padding=\(\(0, 0\),\), but along a circle the size"),
        (
            {"padding_mode": "circular", "padding": "same", "output_padding": 1},
            r"output_padding=\(1,\), but along a circle .* use output_padding=0",
        ),
    ],
)
def test_arguments_of_a_transposed_convolution_go_together(getkey, wrong, message):
    with pytest.raises(LayerArgumentError, match=f"`ConvTranspose1d` got .*{message}"):
        nn.ConvTranspose1d(1, 1, 3, stride=2, **wrong, key=getkey())
