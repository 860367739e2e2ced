"""`Shared`: one value in several places of a model."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ecliptic.errors import StructureError
from ecliptic.module import Module
from ecliptic.tree import tree_at


class SharedNode(Module):
    """Stands in a tree where `Shared` puts a value from elsewhere; it has no leaves."""


def _is_shared(node: Any) -> bool:
    return isinstance(node, SharedNode)


class Shared(Module):
    """Ties parts of a model: a value that stands in several places is stored, and trained, once.

    The field `pytree` holds the model with placeholders at `where`. Calling the `Shared` without
    arguments gives the model whole, with the values of `get` put there; do so inside of the
    function that is differentiated, so that the gradients of all places add up.

    A function written on the spot is a new one each time: models that are made anew and shall not
    be traced again have to be given the same `where` and `get`, for instance functions of a module.

    Args:
        pytree: the model.
        where: picks the node to replace, or a sequence of nodes, as in `tree_at`.
        get: picks the node that is put there, or a sequence of as many. It may compute: with
            `lambda model: model.embedding.weight.T`, the transposed weight is shared.

    Raises:
        StructureError: what `get` gives differs from what is at `where` in structure, shape, dtype
            or a value that is no array.
        SelectionError: `where` does not pick nodes of the tree.

    !!! Example

        The same matrix turns words into vectors and vectors into scores:

        >>> import jax, jax.numpy as jnp
        >>> import ecliptic as ecl
        >>> from ecliptic import nn
        >>> class Language(ecl.Module):
        ...     shared: nn.Shared
        ...     def __init__(self, key):
        ...         a, b = jax.random.split(key)
        ...         embedding = nn.Embedding(10, 4, key=a)
        ...         linear = nn.Linear(4, 10, use_bias=False, key=b)
        ...         self.shared = nn.Shared(
        ...             (embedding, linear),
        ...             where=lambda pair: pair[1].weight,
        ...             get=lambda pair: pair[0].weight,
        ...         )
        ...     def __call__(self, word):
        ...         embedding, linear = self.shared()
        ...         return linear(embedding(word))
        >>> model = Language(jax.random.key(0))
        >>> model(3).shape
        (10,)
        >>> [leaf.shape for leaf in jax.tree.leaves(ecl.filter(model, ecl.is_array))]
        [(10, 4)]
    """

    pytree: PyTree
    where: Callable
    get: Callable

    def __init__(self, pytree: PyTree, where: Callable, get: Callable):
        _check_alike(where(pytree), get(pytree))
        self.pytree = tree_at(where, pytree, replace_fn=lambda node: SharedNode())
        self.where = where
        self.get = get

    def __call__(self) -> PyTree:
        """Give the model whole.

        Returns:
            The tree that the `Shared` was made of, with the values of `get` at `where`.
        """
        return tree_at(self.where, self.pytree, replace=self.get(self.pytree), is_leaf=_is_shared)


def _check_alike(old: Any, new: Any) -> None:
    one, other = jax.tree.map(_kind, old), jax.tree.map(_kind, new)
    if jax.tree.structure(one) != jax.tree.structure(other) or one != other:
        raise StructureError(
            "Every node being shared together must have the same structure, shapes and dtypes: "
            "`Shared` puts what `get` gives in place of what is at `where`. At `where` is "
            f"{one}, and `get` gives {other}."
        )


def _kind(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(jnp.shape(leaf), leaf.dtype) if hasattr(leaf, "dtype") else leaf
