"""The module of Equinox that other libraries import functions of attention from."""

from ecliptic.nn import MultiheadAttention
from ecliptic.nn._attention import dot_product_attention, dot_product_attention_weights

__all__ = ["MultiheadAttention", "dot_product_attention", "dot_product_attention_weights"]
