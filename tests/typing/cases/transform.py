"""A filtered transformation keeps the signature of its function, as a call and as a decorator."""

import jax

import ecliptic as eqx


def step(model: dict[str, jax.Array], x: jax.Array, *, scale: float = 1.0) -> jax.Array:
    return model["w"] * x * scale


@eqx.filter_jit
def decorated(x: jax.Array, times: int) -> tuple[jax.Array, int]:
    return x * times, times


@eqx.filter_jit(donate="all")
def configured(x: jax.Array) -> jax.Array:
    return x


def use(model: dict[str, jax.Array], x: jax.Array) -> None:
    reveal_type(eqx.filter_jit(step)(model, x, scale=2.0))  # reveals: Array
    reveal_type(decorated(x, 2))  # reveals: tuple[Array, int]
    reveal_type(configured(x))  # reveals: Array
    reveal_type(eqx.filter_vmap(step)(model, x))  # reveals: Array
    decorated(x)  # error: reportCallIssue
    decorated(x, "two")  # error: reportArgumentType
    configured(y=x)  # error: reportCallIssue
