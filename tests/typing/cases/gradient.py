"""A filtered gradient takes what its function takes; `has_aux` does not change the value's type."""

import jax

import ecliptic as eqx


def loss(model: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return (model["w"] * x).sum()


def loss_and_count(model: dict[str, jax.Array], x: jax.Array) -> tuple[jax.Array, int]:
    return loss(model, x), 1


@eqx.filter_jit
@eqx.filter_value_and_grad
def step(model: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    return loss(model, x)


def use(model: dict[str, jax.Array], x: jax.Array) -> None:
    with_count = eqx.filter_value_and_grad(loss_and_count, has_aux=True)
    reveal_type(eqx.filter_value_and_grad(loss)(model, x)[0])  # reveals: Array
    reveal_type(with_count(model, x)[0])  # reveals: tuple[Array, int]
    reveal_type(step(model, x)[0])  # reveals: Array
    step(model)  # error: reportCallIssue
    eqx.filter_grad(loss)(x, x)  # error: reportArgumentType
