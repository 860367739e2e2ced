"""`make_with_state` and `delete_init_state`: a model without its state, and the state."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.tree_util as jtu
from jaxtyping import PyTree

from ecliptic.state._index import StateIndex, emptied, give_name, is_index, named_indices
from ecliptic.state._state import State
from ecliptic.tree import format_path

P = ParamSpec("P")
T = TypeVar("T")


def make_with_state(make_model: Callable[P, T]) -> Callable[P, tuple[T, State]]:
    """Make a constructor return the model and its state, apart.

    The initial value of each `StateIndex` in the model goes to the state, and the index is named by
    its place, such as `Model.layers[1].ema_state_index`. The names depend on the structure of the
    model alone: models made by equal calls have equal structures, so a function that was compiled
    for one is compiled for the other, and the state of an optimiser fits both. It works under
    `filter_jit`, `filter_eval_shape`, and `filter_vmap` (for a batch of models, each with a state).

    Args:
        make_model: a class of models, or a function that returns one.

    Returns:
        A function of the same arguments, which returns the pair of model and state.

    Raises:
        StateValueError: at the call, if the model has parts whose state was taken out already.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> norm, state = ec.nn.make_with_state(ec.nn.BatchNorm)(3, axis_name="batch", mode="batch")
        >>> batched = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        >>> y, state = batched(jnp.ones((5, 3)), state)
        >>> y.shape
        (5, 3)
    """

    @functools.wraps(make_model)
    def make(*args: P.args, **kwargs: P.kwargs) -> tuple[T, State]:
        model = _with_names(make_model(*args, **kwargs))
        return delete_init_state(model), State(model)

    return make


def _with_names(model: Any) -> Any:
    root = type(model).__name__

    def name(path: jtu.KeyPath, node: Any) -> Any:
        if not isinstance(node, StateIndex):
            return node
        index: StateIndex[Any] = StateIndex(node.init)
        give_name(index, format_path(path, root))
        return index

    return jtu.tree_map_with_path(name, model, is_leaf=is_index)


def delete_init_state(model: PyTree) -> PyTree:
    """Take the initial values out of the `StateIndex`es of a model, which frees their memory.

    `make_with_state` does so by itself.

    Args:
        model: a model, or any PyTree.

    Returns:
        The model with indices that hold no values.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> jax.tree.leaves(ec.nn.delete_init_state(ec.nn.StateIndex(jnp.zeros(3))))
        []
    """
    # Names come first, so that a model has the same structure as one from `make_with_state`.
    named_indices(model)
    return jax.tree.map(
        lambda node: emptied(node) if isinstance(node, StateIndex) else node,
        model,
        is_leaf=is_index,
    )
