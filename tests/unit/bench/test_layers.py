"""The programs of the layers do what Equinox's do, with no more work.

Times are noisy, and a budget for them is loose. What a compiled program reads, writes and computes
is not: it is counted here, and held to a narrow ratio.
"""

import jax
import numpy as np
import pytest

from bench import layers
from bench._models import ECLIPTIC, EQUINOX
from ecliptic import nn

# Of the same bytes and operations, as many as the budget for times allows.
MOST = 1.05

# Bases, which are measured as the classes made of them, and what computes nothing.
NOT_MEASURED = {
    "AdaptivePool", "Conv", "ConvTranspose", "Identity", "Lambda", "State", "StateIndex",
    "StatefulLayer",
}  # fmt: skip


def test_every_layer_is_measured():
    classes = {name for name in nn.__all__ if isinstance(getattr(nn, name), type)}
    measured = {row.name.partition(",")[0] for row in layers.LAYERS}
    assert measured == classes - NOT_MEASURED


@pytest.mark.parametrize("layer", layers.LAYERS, ids=[row.name for row in layers.LAYERS])
def test_a_layer_does_no_more_work_than_equinox_s_for_the_same_result(layer):
    # (Equinox is not written for the strict flags of the tests.)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        programs = [layers.program(layer, name) for name in (ECLIPTIC, EQUINOX)]
        for direction in (layers.forward, layers.backward):
            ours, theirs = [layers.compiled(layer, direction, one) for one in programs]
            _check_results(ours, theirs)
            _check_work(layer, ours[0].cost_analysis(), theirs[0].cost_analysis())


def _check_results(ours, theirs):
    one, other = [jax.tree.leaves(run(*arguments)) for run, arguments in (ours, theirs)]
    for x, y in zip(one, other, strict=True):
        scale = max(1.0, float(np.max(np.abs(y), initial=0)))
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4 * scale)


def _check_work(layer, work, allowed):
    assert work["bytes accessed"] <= MOST * allowed["bytes accessed"]
    # A maximum of shifted arrays compares more often, and is several times as fast: JAX's own
    # primitive walks through single elements.
    if not layer.name.startswith("MaxPool"):
        assert work.get("flops", 0) <= MOST * allowed.get("flops", 0)
