"""Layers of neural networks, and what is done to whole networks."""

from ecliptic.nn._dropout import Dropout
from ecliptic.nn._identity import Identity
from ecliptic.nn._inference import inference_mode
from ecliptic.nn._lambda import Lambda
from ecliptic.nn._linear import Linear
from ecliptic.nn._mlp import MLP
from ecliptic.nn._sequential import Sequential
from ecliptic.nn._stateful import StatefulLayer

__all__ = [
    "MLP",
    "Dropout",
    "Identity",
    "Lambda",
    "Linear",
    "Sequential",
    "StatefulLayer",
    "inference_mode",
]
