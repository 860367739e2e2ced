"""Layers of neural networks, and what is done to whole networks."""

from ecliptic.nn._linear import Identity, Linear
from ecliptic.nn._mlp import MLP

__all__ = ["MLP", "Identity", "Linear"]
