"""A PyTree tool returns the type that it was given."""

import jax

import ecliptic as eqx


def use(model: dict[str, jax.Array], other: dict[str, jax.Array]) -> None:
    reveal_type(eqx.is_array(model))  # reveals: bool
    reveal_type(eqx.apply_updates(model, other))  # reveals: dict[str, Array]
    reveal_type(eqx.tree_at(lambda m: m["w"], model, 0))  # reveals: dict[str, Array]
    eqx.is_array()  # error: reportCallIssue
