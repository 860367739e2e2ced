"""Layers of neural networks, and what is done to whole networks."""

from ecliptic.nn import _torch as _torch  # (PyTorch's weights fit the layers once it is imported.)
from ecliptic.nn._adaptive_pool import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AdaptivePool,
)
from ecliptic.nn._batch_norm import BatchNorm
from ecliptic.nn._conv import Conv, Conv1d, Conv2d, Conv3d
from ecliptic.nn._conv_transpose import (
    ConvTranspose,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from ecliptic.nn._dropout import Dropout
from ecliptic.nn._embedding import Embedding
from ecliptic.nn._group_norm import GroupNorm
from ecliptic.nn._identity import Identity
from ecliptic.nn._inference import inference_flags, inference_mode
from ecliptic.nn._lambda import Lambda
from ecliptic.nn._layer_norm import LayerNorm
from ecliptic.nn._linear import Linear
from ecliptic.nn._mlp import MLP
from ecliptic.nn._multihead import MultiheadAttention
from ecliptic.nn._pool import AvgPool1d, AvgPool2d, AvgPool3d, MaxPool1d, MaxPool2d, MaxPool3d, Pool
from ecliptic.nn._prelu import PReLU
from ecliptic.nn._recurrent import GRUCell, LSTMCell
from ecliptic.nn._rms_norm import RMSNorm
from ecliptic.nn._rotary import RotaryPositionalEmbedding
from ecliptic.nn._sequential import Sequential
from ecliptic.nn._shared import Shared
from ecliptic.nn._spectral_norm import SpectralNorm
from ecliptic.nn._stateful import StatefulLayer
from ecliptic.nn._weight_norm import WeightNorm
from ecliptic.state import State, StateIndex, delete_init_state, make_with_state

__all__ = [
    "MLP",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AdaptivePool",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BatchNorm",
    "Conv",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Dropout",
    "Embedding",
    "GRUCell",
    "GroupNorm",
    "Identity",
    "LSTMCell",
    "Lambda",
    "LayerNorm",
    "Linear",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MultiheadAttention",
    "PReLU",
    "Pool",
    "RMSNorm",
    "RotaryPositionalEmbedding",
    "Sequential",
    "Shared",
    "SpectralNorm",
    "State",
    "StateIndex",
    "StatefulLayer",
    "WeightNorm",
    "delete_init_state",
    "inference_flags",
    "inference_mode",
    "make_with_state",
]
