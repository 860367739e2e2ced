"""The weights of PyTorch's layers, loaded into the same layers here, give the same outputs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.torch
import torch

import ecliptic as ec
from ecliptic import nn
from ecliptic.errors import MismatchError, SerialisationError
from ecliptic.serialise import from_torch

KEY = jax.random.key(0)
T = torch.nn


class Case(NamedTuple):
    """A layer in both libraries.

    Args:
        name: what the test is called.
        theirs: builds PyTorch's.
        ours: builds the one here.
        shapes: of the inputs of one example.
    """

    name: str
    theirs: Callable[[], Any]
    ours: Callable[[], Any]
    shapes: tuple[tuple[int, ...], ...]


def _conv_cases() -> list[Case]:
    cases = []
    for n in (1, 2, 3):
        for groups in (1, 2):
            size = (4, *range(5, 5 + n))
            options: dict[str, Any] = {"stride": 2, "padding": 1, "groups": groups}
            kernel = tuple(range(3, 3 + n))
            for kind in ("Conv", "ConvTranspose"):
                name = f"{kind}{n}d"
                cases.append(
                    Case(
                        f"{name}, groups={groups}",
                        lambda name=name, kernel=kernel, options=options: getattr(T, name)(
                            4, 6, kernel, **options
                        ),
                        lambda name=name, kernel=kernel, options=options: getattr(nn, name)(
                            4, 6, kernel, key=KEY, **options
                        ),
                        (size,),
                    )
                )
    return cases


CASES = [
    Case("Linear", lambda: T.Linear(3, 2), lambda: nn.Linear(3, 2, key=KEY), ((3,),)),
    Case(
        "Linear without bias",
        lambda: T.Linear(3, 2, bias=False),
        lambda: nn.Linear(3, 2, use_bias=False, key=KEY),
        ((3,),),
    ),
    *_conv_cases(),
    Case(
        "Conv2d without bias",
        lambda: T.Conv2d(2, 3, 3, bias=False, dilation=2),
        lambda: nn.Conv2d(2, 3, 3, use_bias=False, dilation=2, key=KEY),
        ((2, 7, 8),),
    ),
    Case(
        "ConvTranspose2d with output padding",
        lambda: T.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1, dilation=2),
        lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1, dilation=2, key=KEY),
        ((2, 4, 5),),
    ),
    Case("LayerNorm", lambda: T.LayerNorm((3, 4)), lambda: nn.LayerNorm((3, 4)), ((3, 4),)),
    Case(
        "RMSNorm",
        lambda: T.RMSNorm(4, eps=1e-5),
        lambda: nn.RMSNorm(4, eps=1e-5, use_bias=False),
        ((4,),),
    ),
    Case("GroupNorm", lambda: T.GroupNorm(2, 4), lambda: nn.GroupNorm(2, 4), ((4, 5),)),
    Case("GRUCell", lambda: T.GRUCell(3, 4), lambda: nn.GRUCell(3, 4, key=KEY), ((3,), (4,))),
    Case(
        "GRUCell without bias",
        lambda: T.GRUCell(3, 4, bias=False),
        lambda: nn.GRUCell(3, 4, use_bias=False, key=KEY),
        ((3,), (4,)),
    ),
    Case("PReLU", lambda: T.PReLU(), lambda: nn.PReLU(), ((4,),)),
    Case(
        "PReLU by channel",
        lambda: T.PReLU(4),
        lambda: nn.PReLU(jnp.zeros((4, 1))),
        ((4, 3),),
    ),
    Case(
        "Sequential",
        lambda: T.Sequential(
            T.Linear(3, 4), T.Tanh(), T.Sequential(T.Linear(4, 2), T.LayerNorm(2))
        ),
        lambda: nn.Sequential(
            [
                nn.Linear(3, 4, key=KEY),
                nn.Lambda(jnp.tanh),
                nn.Sequential([nn.Linear(4, 2, key=KEY), nn.LayerNorm(2)]),
            ]
        ),
        ((3,),),
    ),
]


def _shaken(model: Any) -> Any:
    """With random numbers in all weights, those that start as ones and zeros too."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return model


def _close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_layer_with_the_weights_of_pytorch_gives_its_outputs(case):
    theirs = _shaken(case.theirs())
    ours = from_torch(case.ours(), theirs.state_dict())
    xs = [np.random.default_rng(1).standard_normal((5, *s), np.float32) for s in case.shapes]
    _close(jax.vmap(ours)(*map(jnp.asarray, xs)), theirs(*map(torch.from_numpy, xs)))


def test_embedding():
    theirs = _shaken(T.Embedding(5, 3))
    ours = from_torch(nn.Embedding(5, 3, key=KEY), theirs.state_dict())
    places = np.array([0, 4, 2])
    _close(jax.vmap(ours)(jnp.asarray(places)), theirs(torch.from_numpy(places)))


@pytest.mark.parametrize("bias", [True, False])
def test_lstm_cell(bias):
    theirs = _shaken(T.LSTMCell(3, 4, bias=bias))
    ours = from_torch(nn.LSTMCell(3, 4, use_bias=bias, key=KEY), theirs.state_dict())
    x, h, c = (np.random.default_rng(1).standard_normal(n, np.float32) for n in (3, 4, 4))
    for one, other in zip(
        ours(jnp.asarray(x), (jnp.asarray(h), jnp.asarray(c))),
        theirs(torch.from_numpy(x), (torch.from_numpy(h), torch.from_numpy(c))),
        strict=True,
    ):
        _close(one, other)


@pytest.mark.parametrize("sizes", [(6, 6), (5, 3)], ids=["one size", "other sizes"])
@pytest.mark.parametrize("bias", [True, False])
def test_multihead_attention(bias, sizes):
    kdim, vdim = sizes
    theirs = _shaken(T.MultiheadAttention(6, 2, bias=bias, kdim=kdim, vdim=vdim, batch_first=True))
    like = nn.MultiheadAttention(
        2, 6, kdim, vdim,
        use_query_bias=bias, use_key_bias=bias, use_value_bias=bias, use_output_bias=bias,
        key=KEY,
    )  # fmt: skip
    ours = from_torch(like, theirs.state_dict())
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((4, n), np.float32) for n in (6, kdim, vdim))
    expected, _ = theirs(*(torch.from_numpy(x)[None] for x in (q, k, v)))
    _close(ours(*map(jnp.asarray, (q, k, v)))[None], expected)


def _batch_norm(**options: Any) -> tuple[Any, Any]:
    layers = [nn.Conv1d(2, 3, 3, key=KEY), nn.BatchNorm(3, "batch", momentum=0.9, **options)]
    return nn.make_with_state(nn.Sequential)(layers)


@pytest.mark.parametrize("mode", ["batch", "ema"])
def test_batch_norm_with_its_running_averages(mode):
    theirs = _shaken(T.Sequential(T.Conv1d(2, 3, 3), T.BatchNorm1d(3)))
    x = np.random.default_rng(1).standard_normal((4, 2, 6), np.float32)
    for _ in range(3):
        theirs(torch.from_numpy(x))
    theirs.eval()
    model, state = from_torch(_batch_norm(mode=mode), theirs.state_dict())
    model = nn.inference_mode(model)
    call = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    _close(call(jnp.asarray(x), state)[0], theirs(torch.from_numpy(x)))


def test_training_goes_on_with_the_running_averages_of_pytorch():
    theirs = _shaken(T.Sequential(T.Conv1d(2, 3, 3), T.BatchNorm1d(3)))
    x = np.random.default_rng(1).standard_normal((4, 2, 6), np.float32)
    theirs(torch.from_numpy(x))
    model, state = from_torch(_batch_norm(mode="batch"), theirs.state_dict())
    call = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    y, state = call(jnp.asarray(x), state)
    _close(y, theirs(torch.from_numpy(x)))
    _close(state.get(model.layers[1].batch_state_index)[0], theirs[1].running_mean)


def test_batch_norm_needs_its_state():
    model, _ = _batch_norm(mode="batch")
    theirs = T.Sequential(T.Conv1d(2, 3, 3), T.BatchNorm1d(3))
    with pytest.raises(SerialisationError, match=r"layers\[1\]\.batch.*averages in a state"):
        from_torch(model, theirs.state_dict())


class Net(ec.Module):
    encoder: list
    scale: jax.Array
    head: nn.Linear


class TorchNet(T.Module):
    def __init__(self):
        super().__init__()
        self.encoder = T.ModuleList([T.Linear(2, 3), T.Linear(3, 3)])
        self.scale = T.Parameter(torch.ones(3))
        self.out = T.Linear(3, 1)


def _net():
    return Net(
        [nn.Linear(2, 3, key=KEY), nn.Linear(3, 3, key=KEY)], jnp.zeros(3), nn.Linear(3, 1, key=KEY)
    )


class TestModels:
    def test_a_model_of_ones_own_goes_by_the_names_of_its_attributes(self):
        theirs = _shaken(TorchNet())
        ours = from_torch(_net(), theirs.state_dict(), rename={"out": "head"})
        _close(ours.encoder[1].weight, theirs.encoder[1].weight)
        _close(ours.scale, theirs.scale)
        _close(ours.head.bias, theirs.out.bias)

    def test_what_does_not_fit_is_listed_by_path(self):
        weights = TorchNet().state_dict()
        weights["scale"] = torch.ones(4)
        with pytest.raises(MismatchError) as error:
            from_torch(_net(), weights)
        report = error.value.report
        assert set(report.missing) == {"head.weight", "head.bias"}
        assert set(report.extra) == {"out.weight", "out.bias"}
        assert [str(x) for x in report.reshaped] == [
            "scale: float32[4] in the file, float32[3] in `like`"
        ]

    def test_what_fits_is_loaded_if_asked(self):
        theirs = TorchNet()
        ours, report = from_torch(_net(), theirs.state_dict(), strict=False)
        _close(ours.scale, theirs.scale)
        assert not report.complete

    def test_a_file_of_safetensors(self, tmp_path):
        theirs = _shaken(T.Linear(3, 2))
        safetensors.torch.save_file(theirs.state_dict(), tmp_path / "model.safetensors")
        ours = from_torch(nn.Linear(3, 2, key=KEY), tmp_path / "model.safetensors")
        _close(ours.weight, theirs.weight)

    def test_a_pickle_is_never_read(self, tmp_path):
        torch.save(T.Linear(3, 2).state_dict(), tmp_path / "model.pt")
        with pytest.raises(SerialisationError, match="which is a pickle: to read it would run"):
            from_torch(nn.Linear(3, 2, key=KEY), tmp_path / "model.pt")

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
    def test_weights_get_the_dtype_of_the_model(self, dtype):
        theirs = T.Linear(3, 2, dtype=dtype)
        ours = from_torch(nn.Linear(3, 2, key=KEY), theirs.state_dict())
        assert ours.weight.dtype == jnp.float32
        _close(ours.weight, theirs.weight.float())

    def test_later_training_in_pytorch_changes_nothing_here(self):
        theirs = T.Linear(3, 2)
        ours = from_torch(nn.Linear(3, 2, key=KEY), theirs.state_dict())
        before = np.array(ours.weight)
        with torch.no_grad():
            theirs.weight.zero_()
        np.testing.assert_array_equal(ours.weight, before)
