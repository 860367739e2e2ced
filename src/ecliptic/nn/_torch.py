"""How PyTorch's weights fit the layers that both have.

A layer that is not here (`Linear`, `Embedding`, `LayerNorm`, `RMSNorm`, `GroupNorm`) has the same
names and shapes in both.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from ecliptic.module import TorchRule, Weights, register_torch_rule
from ecliptic.nn._batch_norm import BatchNorm
from ecliptic.nn._conv import Conv
from ecliptic.nn._conv_transpose import ConvTranspose
from ecliptic.nn._multihead import MultiheadAttention
from ecliptic.nn._prelu import PReLU
from ecliptic.nn._recurrent import GRUCell, LSTMCell
from ecliptic.nn._sequential import Sequential

# After so many batches nothing is left in the running averages of the values at the start.
_MANY = np.int32(2**30)


def _bias(layer: Any, weights: Weights) -> dict[str, Any]:
    if layer.bias is None:
        return {}
    bias = weights["bias"]
    return {"bias": bias.reshape(-1, *[1] * layer.num_spatial_dims)}


def _conv(layer: Conv, weights: Weights) -> dict[str, Any]:
    return {"weight": weights["weight"], **_bias(layer, weights)}


def _conv_transpose(layer: ConvTranspose, weights: Weights) -> dict[str, Any]:
    # PyTorch keeps the weight of the convolution that this is the transpose of.
    weight = weights["weight"]
    inputs, outputs, *kernel = weight.shape
    weight = weight.reshape(layer.groups, inputs // layer.groups, outputs, *kernel)
    weight = weight.swapaxes(1, 2).reshape(layer.groups * outputs, -1, *kernel)
    return {"weight": np.flip(weight, tuple(range(2, weight.ndim))), **_bias(layer, weights)}


def _gru_cell(layer: GRUCell, weights: Weights) -> dict[str, Any]:
    found = {name: weights[name] for name in ("weight_ih", "weight_hh")}
    if layer.use_bias:
        # The biases of the gates are only ever added to each other.
        of_input, of_hidden = weights["bias_ih"], weights["bias_hh"]
        gates = 2 * layer.hidden_size
        sums = of_input[:gates] + of_hidden[:gates]
        found["bias"] = np.concatenate([sums, of_input[gates:]])
        found["bias_n"] = of_hidden[gates:]
    return found


def _lstm_cell(layer: LSTMCell, weights: Weights) -> dict[str, Any]:
    found = {name: weights[name] for name in ("weight_ih", "weight_hh")}
    if layer.use_bias:
        found["bias"] = weights["bias_ih"] + weights["bias_hh"]
    return found


def _multihead(layer: MultiheadAttention, weights: Weights) -> dict[str, Any]:
    names = ("query_proj", "key_proj", "value_proj")
    parts = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
    sizes = [getattr(layer, name).weight.shape[0] for name in names]
    ends = np.cumsum(sizes)[:-1]
    if "in_proj_weight" in weights:
        three = np.split(weights["in_proj_weight"], ends)
    else:
        # So it is where queries, keys and values have other lengths.
        three = [weights[part] for part in parts]
    found: dict[str, Any] = {
        f"{name}.weight": part for name, part in zip(names, three, strict=True)
    }
    found["output_proj.weight"] = weights["out_proj.weight"]
    if layer.output_proj.bias is not None:
        found["output_proj.bias"] = weights["out_proj.bias"]
    biased = [name for name in names if getattr(layer, name).bias is not None]
    if biased:
        biases = dict(zip(names, np.split(weights["in_proj_bias"], ends), strict=True))
        found |= {f"{name}.bias": biases[name] for name in biased}  # pyright: ignore
    return found


def _prelu(layer: PReLU, weights: Weights) -> dict[str, Any]:
    slope = weights["weight"]
    shape = jnp.shape(layer.negative_slope)
    # One number for all has shape (1,) there, and one for each channel no axes after it.
    return {"negative_slope": slope.reshape(shape) if np.prod(shape) == slope.size else slope}


def _batch_norm(layer: BatchNorm, weights: Weights) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if layer.channelwise_affine:
        found |= {"weight": weights["weight"], "bias": weights["bias"]}
    weights.get("num_batches_tracked")
    if "running_mean" not in weights:
        return found
    averages = (weights["running_mean"], weights["running_var"])
    if layer.mode == "ema":
        return {**found, "ema_state_index": averages, "ema_first_time_index": np.False_}
    # PyTorch does not correct the averages for what they started with: after many batches, this
    # layer does not either.
    return {**found, "batch_state_index": averages, "batch_counter": _MANY}


register_torch_rule(Sequential, TorchRule(transparent="layers"))
register_torch_rule(Conv, TorchRule(_conv))
register_torch_rule(ConvTranspose, TorchRule(_conv_transpose))
register_torch_rule(GRUCell, TorchRule(_gru_cell))
register_torch_rule(LSTMCell, TorchRule(_lstm_cell))
register_torch_rule(MultiheadAttention, TorchRule(_multihead))
register_torch_rule(PReLU, TorchRule(_prelu))
register_torch_rule(BatchNorm, TorchRule(_batch_norm))
