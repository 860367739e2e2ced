"""A Module is a dataclass to the checker: constructor, frozen fields, converters."""

import dataclasses
from typing import Generic, TypeVar

import jax

import ecliptic as eqx

T = TypeVar("T")


class Linear(eqx.Module):
    weight: jax.Array
    bias: jax.Array | None = None
    name: str = eqx.field(static=True, default="linear")

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.weight @ x


class Named(Linear):
    label: str = ""


class Own(eqx.Module):
    size: int

    def __init__(self, width: int, height: int = 1) -> None:
        self.size = width * height


class Box(eqx.Module, Generic[T]):
    content: T


def build(array: jax.Array) -> None:
    layer = Linear(array, None, name="first")
    reveal_type(layer)  # reveals: Linear
    reveal_type(layer.weight)  # reveals: Array
    reveal_type(layer.bias)  # reveals: Array | None
    reveal_type(layer.name)  # reveals: str
    reveal_type(layer(array))  # reveals: Array
    reveal_type(Named(array, label="n").label)  # reveals: str
    reveal_type(Own(2, height=3).size)  # reveals: int
    reveal_type(Box(3).content)  # reveals: int
    reveal_type(dataclasses.replace(layer, bias=None))  # reveals: Linear
    Linear()  # error: reportCallIssue
    Linear(array, nme="first")  # error: reportCallIssue
    Linear(3)  # error: reportArgumentType
    Own(size=3)  # error: reportCallIssue
    # Not reported: a checker that knew of freezing would forbid it in `__init__` too.
    layer.weight = array
