"""`BatchNorm`."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecliptic import nn
from ecliptic.control import filter_scan
from ecliptic.errors import (
    ArgumentError,
    AxisNameError,
    EclipticWarning,
    LayerArgumentError,
    OldStateError,
    ShapeError,
    StateValueError,
)
from ecliptic.transform import filter_jit, filter_vmap, if_array
from ecliptic.tree import tree_at

MODES = pytest.mark.parametrize("mode", ["ema", "batch"])


def make(size=3, axis_name="batch", library=nn, **options):
    return library.make_with_state(library.BatchNorm)(size, axis_name, **options)


@filter_jit
def call(norm, x, state):
    """Over one batch."""
    batched = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    return batched(x, state)


def checked_call(norm, x, state):
    """The same, so that an old state is found out."""
    return filter_vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)


def moments(norm, state):
    return state.get(norm.ema_state_index if norm.mode == "ema" else norm.batch_state_index)


def data(*shape, seed=0, dtype=jnp.float32):
    return (3 * jax.random.normal(jax.random.key(seed), shape) + 1).astype(dtype)


@MODES
@pytest.mark.parametrize("shape", [(8, 3), (2, 3, 2, 2)])
def test_the_first_batch_is_standardised(mode, shape):
    norm, state = make(mode=mode)
    x = data(*shape)
    y, state = call(norm, x, state)
    axes = (0, *range(2, x.ndim))
    expected = (x - x.mean(axes, keepdims=True)) / jnp.sqrt(x.var(axes, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    assert jax.tree.structure(state) == jax.tree.structure(make(mode=mode)[1])


@settings(max_examples=3, deadline=None)
@given(
    mode=st.sampled_from(["ema", "batch"]),
    momentum=st.sampled_from([0.0, 0.5, 0.99]),
    affine=st.booleans(),
    rank=st.integers(0, 2),
    eps=st.sampled_from([1e-5, 1e-2]),
)
def test_outputs_states_and_gradients_are_those_of_equinox(mode, momentum, affine, rank, eps):
    import equinox

    options = dict(mode=mode, momentum=momentum, channelwise_affine=affine, eps=eps)
    x, w = data(4, 3, *(2,) * rank), data(4, 3, *(2,) * rank, seed=1)
    results = []
    for library in (nn, equinox.nn):
        norm, state = make(library=library, **options)
        if affine:
            norm = tree_at(lambda n: (n.weight, n.bias), norm, (data(3, seed=2), data(3, seed=3)))

        @jax.jit
        def run(x, norm=norm, state=state):
            def loss(x):
                first, after_one = call(norm, x, jax.tree.map(lambda leaf: leaf, state))
                second, after_two = call(norm, 2 * x - 1, after_one)
                return jnp.sum(first * w) + jnp.sum(second**2 * w), (second, after_two)

            (_, (y, last)), slope = jax.value_and_grad(loss, has_aux=True)(x)
            known, _ = norm(x[0], jax.tree.map(lambda leaf: leaf, last), inference=True)
            return y, slope, known, jax.tree.leaves(last)

        results.append(jax.tree.leaves(run(x)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4)


@MODES
def test_inference_before_training_is_finite(mode):
    norm, state = make(mode=mode)
    y, after = nn.inference_mode(norm)(jnp.array([1.0, -2.0, 0.0]), state)
    np.testing.assert_allclose(y, [1.0, -2.0, 0.0], rtol=1e-4)
    assert after is state


@MODES
def test_inference_uses_the_running_averages_of_any_batch(mode):
    norm, state = make(mode=mode, momentum=0.5)
    xs = data(20, 64, 3)
    state, _ = jax.lax.scan(lambda s, x: (call(norm, x, s)[1], None), state, xs)
    x = data(5, 3)
    y, _ = call(nn.inference_mode(norm), x, state)
    np.testing.assert_allclose(y, (x - 1) / 3, atol=0.35)
    one, same = norm(x[0], state, inference=True)
    np.testing.assert_allclose(one, y[0], rtol=1e-5)
    assert same is state


@pytest.mark.parametrize("batches", [1, 3])
def test_in_the_first_steps_of_mode_batch_inference_sees_too_large_a_variance(batches):
    norm, state = make(1, mode="batch", momentum=0.5, channelwise_affine=False)
    for _ in range(batches):
        # mean 1 and variance 4
        _, state = call(norm, jnp.array([[-1.0], [3.0]]), state)
    y, _ = nn.inference_mode(norm)(jnp.array([3.0]), state)
    left = 0.5**batches
    np.testing.assert_allclose(y, 2 / np.sqrt(4 + left / (1 - left)), rtol=1e-5)


def test_gradients_in_mode_batch_do_not_depend_on_the_momentum():
    x, w = data(6, 3), data(6, 3, seed=1)

    def slope(momentum):
        norm, state = make(mode="batch", momentum=momentum)
        _, state = call(norm, data(6, 3, seed=2), state)
        return jax.grad(lambda x: jnp.sum(call(norm, x, state)[0] * w))(x)

    slopes = [slope(momentum) for momentum in (0.0, 0.5, 0.99)]
    np.testing.assert_array_equal(slopes[0], slopes[1])
    np.testing.assert_array_equal(slopes[0], slopes[2])


@MODES
@pytest.mark.parametrize("momentum", [0.0, 1.0])
def test_the_extreme_momenta_are_finite(mode, momentum):
    norm, state = make(mode=mode, momentum=momentum)
    for _ in range(2):
        y, state = call(norm, data(4, 3), state)
    known, _ = norm(data(3), state, inference=True)
    assert bool(jnp.all(jnp.isfinite(y)) & jnp.all(jnp.isfinite(known)))


@MODES
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_statistics_of_halves_are_single(mode, dtype):
    norm, state = make(mode=mode, dtype=dtype)
    # The sum of these overflows float16.
    x = (data(64, 3) + 1000).astype(dtype)
    y, state = call(norm, x, state)
    assert y.dtype == dtype
    assert {leaf.dtype for leaf in moments(norm, state)} == {jnp.dtype(jnp.float32)}
    assert bool(jnp.all(jnp.isfinite(y)))
    wide = x.astype(jnp.float32)
    expected = (wide - wide.mean(0, keepdims=True)) / jnp.sqrt(wide.var(0, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y.astype(jnp.float32), expected, atol=0.05)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_the_output_has_the_dtype_of_the_input_whatever_the_parameters_have(dtype):
    norm, state = make(mode="batch", dtype=jnp.bfloat16 if dtype == jnp.float32 else jnp.float32)
    y, _ = call(norm, data(4, 3, dtype=dtype), state)
    assert y.dtype == dtype


@MODES
def test_a_batch_along_two_axes_is_one_batch(mode):
    x = data(4, 5, 3)
    norm, state = make(axis_name=("outer", "inner"), mode=mode)
    inner = jax.vmap(norm, axis_name="inner", in_axes=(0, None), out_axes=(0, None))
    outer = jax.vmap(inner, axis_name="outer", in_axes=(0, None), out_axes=(0, None))
    y, after = outer(x, state)
    flat, state = make(mode=mode)
    expected, expected_after = call(flat, x.reshape(20, 3), state)
    np.testing.assert_allclose(y.reshape(20, 3), expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(moments(norm, after), moments(flat, expected_after), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_names_in_a_list_are_those_of_a_tuple():
    assert nn.BatchNorm(3, ["a", "b"], mode="batch").axis_name == ("a", "b")


@MODES
def test_the_same_layer_at_two_ranks(mode):
    norm, state = make(mode=mode)
    y, state = call(norm, data(4, 3), state)
    z, _ = call(norm, data(4, 3, 2), state)
    assert (y.shape, z.shape) == ((4, 3), (4, 3, 2))


@MODES
def test_the_mode_may_be_traced(mode):
    norm, state = make(mode=mode)
    x = data(4, 3)

    @jax.jit
    def run(x, state, inference):
        changed = tree_at(lambda n: n.inference, norm, inference)
        return call(changed, x, state)

    for inference in (True, False):
        y, after = run(x, state, inference)
        expected, expected_after = call(
            nn.inference_mode(norm, inference), x, jax.tree.map(lambda leaf: leaf, state)
        )
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
        for one, other in zip(*map(jax.tree.leaves, (after, expected_after)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)


@MODES
def test_a_state_is_the_carry_of_a_scan(mode):
    norm, state = make(mode=mode)
    xs = data(6, 4, 3)

    def step(carry, x):
        norm, state = carry
        y, state = checked_call(norm, x, state)
        return (norm, state), y

    (_, scanned), ys = filter_scan(step, (norm, state), xs)
    assert state.is_used
    _, state = make(mode=mode)
    for x, y in zip(xs, ys, strict=True):
        expected, state = call(norm, x, state)
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(moments(norm, scanned), moments(norm, state), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_an_ensemble_has_a_state_for_each_model():
    norms, states = filter_vmap(lambda _: make(mode="batch"))(jnp.arange(4))
    x = data(5, 3)
    y, after = filter_vmap(checked_call, in_axes=(if_array(0), None, if_array(0)))(norms, x, states)
    assert y.shape == (4, 5, 3)
    assert after.get(norms.batch_counter).tolist() == [1] * 4
    assert states.is_used
    with pytest.raises(StateValueError, match=r"have shape \(4, 3\).*axis 0 in `in_axes`"):
        filter_vmap(checked_call, in_axes=(if_array(0), None, None))(norms, x, after)


def test_the_optimiser_fits_models_of_equal_construction():
    import optax

    from ecliptic.tree import filter, is_inexact_array

    optimiser = optax.adam(1e-3)
    (first, _), (second, _) = make(mode="batch"), make(mode="batch")
    opt_state = optimiser.init(filter(first, is_inexact_array))
    gradient = jax.tree.map(jnp.ones_like, filter(second, is_inexact_array))
    with jax.numpy_dtype_promotion("standard"):
        _, after = optimiser.update(gradient, opt_state, filter(second, is_inexact_array))
    assert jax.tree.structure(after) == jax.tree.structure(opt_state)


def test_equal_constructions_are_traced_once():
    traces = []

    @filter_jit
    def run(norm, x, state):
        traces.append(None)
        return call(norm, x, state)

    x = data(4, 3)
    for _ in range(3):
        norm, state = make(mode="ema")
        for _ in range(2):
            _, state = run(norm, x, state)
    assert len(traces) == 1


def test_a_step_with_an_old_state_is_refused_after_jit():
    norm, state = make(mode="batch")
    step = filter_jit(checked_call)
    step(norm, data(4, 3), state)
    with pytest.raises(OldStateError, match="old state"):
        step(norm, data(4, 3), state)


def test_without_a_mode_it_is_ema_with_a_warning():
    with pytest.warns(EclipticWarning, match="without a `mode`, which is `'ema'`") as caught:
        norm = nn.BatchNorm(3, "batch")
    assert norm.mode == "ema"
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "other"}, "mode='other': invalid mode, must be 'ema' or 'batch'"),
        ({"momentum": 1.5, "mode": "ema"}, "momentum=1.5, but how much .* is a number from 0 to 1"),
        ({"eps": -1.0, "mode": "ema"}, "eps=-1.0"),
        ({"dtype": int, "mode": "ema"}, "dtype"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(LayerArgumentError, match=message):
        nn.BatchNorm(3, "batch", **options)


def test_a_missing_axis_is_named_with_the_layer_and_the_way_out():
    model, state = nn.make_with_state(lambda: nn.Sequential([nn.BatchNorm(3, "b", mode="ema")]))()
    message = (
        r"`BatchNorm` at `Sequential.layers\[0\]` takes means.*axis_name='b', and no axis named "
        r"'b'.*`jax.vmap\(model, axis_name='b', in_axes=\(0, None\), out_axes=\(0, None\)\)\(x, "
    )
    with pytest.raises(AxisNameError, match=message):
        model(jnp.ones(3), state)
    assert not state.is_used


def test_of_several_axes_the_missing_one_is_named():
    norm, state = make(axis_name=("batch", "other"), mode="batch")
    with pytest.raises(NameError, match=r"no axis named 'other' is.*jax.vmap\(jax.vmap\(model, ax"):
        call(norm, data(4, 3), state)


@pytest.mark.parametrize("shape", [(4, 3), (2,), ()])
def test_an_input_of_another_shape_is_refused(shape):
    norm, state = make(mode="batch")
    hint = (
        r".*did you mean `jax.vmap`, as in `jax.vmap\(model, axis_name='batch'" if shape[1:] else ""
    )
    message = rf"^`BatchNorm` was made with input_size=3.*\(3, ...\); got x of shape .*{hint}"
    with pytest.raises(ShapeError, match=message):
        norm(jnp.ones(shape), state)


def test_a_state_that_comes_out_batched_is_explained():
    norm, state = make(mode="batch")
    nested = filter_vmap(checked_call, in_axes=(None, 0, None), out_axes=(0, None))
    with pytest.raises(
        ArgumentError,
        match=r"None for `out\[1\]\['BatchNorm.batch_state_index'\]\[0\]`.*`axis_name=`.*axis 0",
    ):
        nested(norm, data(2, 4, 3), state)


def test_no_warning_in_either_mode():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(mode="ema")
        make(mode="batch")
