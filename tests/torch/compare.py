"""How a layer of PyTorch is compared with one here that was given its weights."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from ecliptic.tree import tree_at


def as_array(tensor: torch.Tensor) -> jax.Array:
    """The numbers of a tensor."""
    return jnp.asarray(tensor.detach().numpy())


def with_arrays(layer: Any, **arrays: Any) -> Any:
    """A layer with other arrays in the fields of these names."""
    names = list(arrays)
    return tree_at(lambda m: [getattr(m, name) for name in names], layer, list(arrays.values()))


def agree(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    *shapes: tuple[int, ...],
    slope_rtol: float = 1e-4,
) -> None:
    """Compare outputs and gradients of two functions of random arrays.

    Args:
        ours: a function of arrays.
        theirs: the same function of tensors.
        shapes: of the arrays.
        slope_rtol: the relative tolerance of the gradients.
    """
    xs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    y = theirs(*xs)
    torch.sum(torch.sin(y)).backward()
    arrays = [as_array(x) for x in xs]
    np.testing.assert_allclose(ours(*arrays), as_array(y), rtol=1e-4, atol=1e-5)
    loss = lambda arrays: jnp.sum(jnp.sin(ours(*arrays)))
    for one, x in zip(jax.jit(jax.grad(loss))(arrays), xs, strict=True):
        np.testing.assert_allclose(one, as_array(x.grad), rtol=slope_rtol, atol=1e-4)
