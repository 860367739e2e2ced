"""Own rules for derivatives keep the signature of the function; outputs keep their types."""

import jax

from ecliptic.transform import (
    filter_custom_jvp,
    filter_custom_vjp,
    filter_jvp,
    filter_linearize,
    filter_vjp,
)


@filter_custom_jvp
def product(x: jax.Array, times: int) -> tuple[jax.Array, int]:
    return x * times, times


@filter_custom_vjp
def named(x: jax.Array, *, name: str) -> jax.Array:
    return x


def use(x: jax.Array) -> None:
    reveal_type(product(x, 2))  # reveals: tuple[Array, int]
    reveal_type(named(x, name="x"))  # reveals: Array
    reveal_type(filter_jvp(product, (x, 2), (x, None))[0])  # reveals: tuple[Array, int]
    reveal_type(filter_vjp(product, x, 2)[0])  # reveals: tuple[Array, int]
    reveal_type(filter_linearize(product, x, 2)[0])  # reveals: tuple[Array, int]
    product(x)  # error: reportCallIssue
    named(x, name=1)  # error: reportArgumentType
