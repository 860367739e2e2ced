"""`Sequential`, `Lambda` and `StatefulLayer`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecliptic import nn
from ecliptic.errors import AbstractError, LayerArgumentError
from ecliptic.module import Module
from ecliptic.transform import filter_vmap
from ecliptic.tree import tree_equal


class AddKey(Module):
    def __call__(self, x, *, key=None):
        return x if key is None else x + jax.random.normal(key, x.shape)


class Keyless(Module):
    def __call__(self, x):
        return 2 * x


class Masked(Module):
    def __call__(self, x, mask, *, key=None):
        return x * mask


class Counter(nn.StatefulLayer):
    step: int = 1

    def __call__(self, x, state, *, key=None):
        return x + state, state + self.step


class Sometimes(nn.StatefulLayer):
    def __call__(self, x, *, key=None):
        return -x

    def is_stateful(self):
        return False


X = jnp.arange(3.0)


def test_layers_are_applied_in_order():
    assert nn.Sequential([lambda x: x + 1, lambda x: 10 * x])(2) == 30


def test_without_layers_the_input_comes_back(getkey):
    assert nn.Sequential([])(X, key=getkey()) is X


def test_each_layer_gets_a_key_of_its_own(getkey):
    key = getkey()
    keys = jax.random.split(key, 3)
    expected = AddKey()(2 * AddKey()(X, key=keys[0]), key=keys[2])
    np.testing.assert_array_equal(
        nn.Sequential([AddKey(), Keyless(), AddKey()])(X, key=key), expected
    )


def test_keys_and_outputs_are_those_of_equinox(getkey):
    import equinox

    key, drop = getkey(), getkey()

    def model(lib):
        return lib.Sequential([lib.Linear(3, 64, key=key), lib.Dropout(0.4), lib.Lambda(jnp.tanh)])

    np.testing.assert_array_equal(model(nn)(X, key=drop), model(equinox.nn)(X, key=drop))


@pytest.mark.parametrize(
    "layer",
    [jax.nn.relu, jnp.tanh, jax.jit(jnp.sin), Keyless(), filter_vmap(Keyless()), lambda x: x],
)
def test_a_layer_that_takes_no_key_gets_none(getkey, layer):
    assert nn.Sequential([layer])(X, key=getkey()).shape == (3,)


def test_a_keyword_reaches_the_layers_that_have_it_at_any_depth():
    model = nn.Sequential([Keyless(), nn.Sequential([Masked(), Keyless()]), Masked()])
    mask = jnp.array([1.0, 0.0, 1.0])
    np.testing.assert_array_equal(model(X, mask=mask), 4 * X * mask)


def test_inference_can_be_passed_through(getkey):
    model = nn.Sequential([nn.Dropout(0.5), Keyless()])
    np.testing.assert_array_equal(model(X, inference=True), 2 * X)


def test_a_keyword_that_no_layer_has_is_refused():
    with pytest.raises(
        LayerArgumentError,
        match=r"`Sequential` got a keyword argument 'mask', which none of its layers \(`Keyless`, "
        r"`Dropout`\) has",
    ):
        nn.Sequential([Keyless(), nn.Dropout()])(X, mask=X)


def test_the_state_goes_through_the_stateful_layers():
    model = nn.Sequential([Counter(), Keyless(), nn.Sequential([Counter(step=10)]), Sometimes()])
    y, state = model(X, 5)
    np.testing.assert_array_equal(y, -(2 * (X + 5) + 6))
    assert state == 16


def test_a_state_comes_back_from_layers_without_one():
    y, state = nn.Sequential([Keyless()])(X, "state")
    assert state == "state"
    np.testing.assert_array_equal(y, 2 * X)


def test_none_is_a_state():
    assert nn.Sequential([Keyless()])(X, None)[1] is None


def test_a_missing_state_is_said_to_be_missing():
    with pytest.raises(
        LayerArgumentError,
        match=r"called without a state, but layers\[1\], a `Counter`, has one.*y, state = ",
    ):
        nn.Sequential([Keyless(), Counter()])(X)


def test_it_is_stateful_if_a_layer_is():
    assert nn.Sequential([Keyless(), nn.Sequential([Counter()])]).is_stateful()
    assert not nn.Sequential([Keyless(), Sometimes()]).is_stateful()
    assert not nn.Sequential([]).is_stateful()


def test_indexing_slicing_iterating_and_len():
    layers = [Keyless(), AddKey(), Masked()]
    model = nn.Sequential(iter(layers))
    assert model.layers == tuple(layers)
    assert model[0] is layers[0]
    assert model[-1] is layers[2]
    assert tree_equal(model[1:], nn.Sequential(layers[1:]))
    assert list(model) == layers
    assert len(model) == 3


def test_an_index_of_another_type_is_refused():
    with pytest.raises(TypeError, match="indices must be integers or slices, not str"):
        nn.Sequential([Keyless()])["first"]


@pytest.mark.parametrize("as_pairs", [dict, list, tuple])
def test_layers_with_names(as_pairs):
    layers = {"double": Keyless(), "mask": Masked(), "same": AddKey()}
    model = nn.Sequential(layers if as_pairs is dict else as_pairs(layers.items()))
    assert model.layers == tuple(layers.values())
    assert model.names == ("double", "mask", "same")
    assert model["mask"] is layers["mask"]
    assert model[1] is layers["mask"]
    np.testing.assert_array_equal(model(X, mask=X), 2 * X * X)
    assert model[1:].names == ("mask", "same")
    assert model[1:]["same"] is layers["same"]
    assert jax.tree.structure(model) == jax.tree.structure(nn.Sequential(layers))


def test_an_unknown_name_is_refused_with_those_that_there_are():
    with pytest.raises(
        LayerArgumentError, match=r"no layer named 'c'; its layers are \['a', 'b'\]"
    ):
        nn.Sequential({"a": Keyless(), "b": Keyless()})["c"]


def test_two_layers_of_one_name_are_refused():
    with pytest.raises(LayerArgumentError, match=r"several layers of the same name: \['a'\]"):
        nn.Sequential([("a", Keyless()), ("a", Keyless())])


def test_names_are_no_leaves_and_do_not_show():
    named, bare = nn.Sequential({"a": Keyless()}), nn.Sequential([Keyless()])
    assert jax.tree.leaves(named) == jax.tree.leaves(bare)
    assert repr(named) == repr(bare) == "Sequential(layers=(Keyless(),))"
    assert bare.names is None


def test_the_state_of_a_model_goes_through():
    model, state = nn.make_with_state(
        lambda key: nn.Sequential(
            [
                nn.Linear(3, 2, key=key),
                nn.BatchNorm(2, "batch", mode="batch"),
                nn.GroupNorm(1, 2),
                nn.Sequential([nn.BatchNorm(2, "batch", mode="ema"), jnp.tanh]),
            ]
        )
    )(jax.random.key(0))
    call = filter_vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    y, after = call(jnp.ones((4, 3)), state)
    assert y.shape == (4, 2)
    assert after.get(model[1].batch_counter) == 1
    assert not after.get(model[3][0].ema_first_time_index)
    assert state.is_used


def test_what_cannot_be_called_is_no_layer():
    with pytest.raises(
        LayerArgumentError, match=r"`Sequential` got 3 of type `int` as layers\[1\], which cannot"
    ):
        nn.Sequential([Keyless(), 3])


def test_a_stateful_layer_has_to_be_callable():
    with pytest.raises(AbstractError, match="__call__"):
        nn.StatefulLayer()


def test_a_stateful_layer_is_stateful():
    assert Counter().is_stateful()


def test_lambda_calls_its_function(getkey):
    assert nn.Lambda(lambda x: x + 1)(1, key=getkey()) == 2


def test_the_arrays_of_a_function_are_leaves_of_its_lambda(getkey):
    linear = nn.Linear(3, 2, key=getkey())
    assert jax.tree.leaves(nn.Lambda(linear)) == jax.tree.leaves(linear)
