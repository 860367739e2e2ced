"""Transformations: mapping an ensemble, tracing a step, programs compiled ahead of time.

What is traced is traced anew in each sample: a new function each time, so that no cache answers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from bench._measure import Clock, Timed
from bench._models import ECLIPTIC, EQUINOX, filtered_mlp, flat_forward, flat_mlp, library
from bench._row import Row, against_equinox

MEMBERS = 8
WIDTH = 8
DEEP = 64


def _ensemble(name: str) -> Clock:
    lib = library(name)
    keys = jax.random.split(jax.random.key(0), MEMBERS)
    models = lib.filter_vmap(lambda key: lib.nn.MLP(WIDTH, WIDTH, WIDTH, 2, key=key))(keys)
    x = jnp.ones(WIDTH)
    mapped = lib.filter_vmap(lambda model, x: model(x), in_axes=(lib.if_array(0), None))
    return Timed(lambda: jax.block_until_ready(mapped(models, x)))


def _mean_square(predicted: jax.Array) -> jax.Array:
    return jnp.mean(predicted**2)


def _traced_step(name: str) -> Clock:
    lib = library(name)
    model, x = filtered_mlp(name, DEEP, WIDTH), jnp.ones((4, WIDTH))

    def trace() -> None:
        def loss(model: Any, x: jax.Array) -> jax.Array:
            return _mean_square(jax.vmap(model)(x))

        lib.filter_jit(lib.filter_value_and_grad(loss)).lower(model, x)

    return Timed(trace)


def _traced_gradient(name: str) -> Clock:
    lib = library(name)
    model, x = filtered_mlp(name, DEEP, WIDTH), jnp.ones((4, WIDTH))

    def trace() -> None:
        def loss(model: Any, x: jax.Array) -> jax.Array:
            return _mean_square(jax.vmap(model)(x))

        lib.filter_make_jaxpr(lib.filter_value_and_grad(loss))(model, x)

    return Timed(trace)


def _flat_step() -> Clock:
    arrays, x = flat_mlp(DEEP, WIDTH), jnp.ones((4, WIDTH))

    def trace() -> None:
        def loss(arrays: list[jax.Array], x: jax.Array) -> jax.Array:
            # One example at a time, as the layers of the model see it.
            return _mean_square(jax.vmap(partial(_flat_one, arrays))(x))

        jax.jit(jax.value_and_grad(loss)).lower(arrays, x)

    return Timed(trace)


def _flat_one(arrays: list[jax.Array], x: jax.Array) -> jax.Array:
    *hidden, (weight, bias) = zip(arrays[::2], arrays[1::2], strict=True)
    for hidden_weight, hidden_bias in hidden:
        x = jax.nn.relu(hidden_weight @ x + hidden_bias)
    return weight @ x + bias


def _compiled(name: str) -> Clock:
    lib = library(name)
    model, x = filtered_mlp(name, 4, WIDTH), jnp.ones((1, WIDTH))
    compiled = lib.filter_jit(lambda model, x: jax.vmap(model)(x)).lower(model, x).compile()
    return Timed(lambda: compiled(model, x))


def _raw_compiled() -> Clock:
    arrays, x = flat_mlp(4, WIDTH), jnp.ones((1, WIDTH))
    compiled = jax.jit(flat_forward).lower(arrays, x).compile()
    return Timed(lambda: compiled(arrays, x))


def _fresh(name: str, transform: Callable[[Any, Any, Any, Any], Any]) -> Clock:
    lib = library(name)
    model, x = filtered_mlp(name, 4, WIDTH), jnp.ones(WIDTH)

    def run() -> None:
        transform(lib, lambda model, x: model(x), model, x)

    return Timed(run)


def _make_jaxpr(lib: Any, fun: Any, model: Any, x: Any) -> Any:
    return lib.filter_make_jaxpr(fun)(model, x)


def _eval_shape(lib: Any, fun: Any, model: Any, x: Any) -> Any:
    return lib.filter_eval_shape(fun, model, x)


def _closure_convert(lib: Any, fun: Any, model: Any, x: Any) -> Any:
    return lib.filter_closure_convert(lambda x: fun(model, x), x)


ROWS = (
    against_equinox("eager filter_vmap of an MLP ensemble", "transforms.vmap", _ensemble),
    Row(
        "trace and lower a step, MLP of 64 layers",
        budget="transforms.trace",
        subject=partial(_traced_step, ECLIPTIC),
        reference=_flat_step,
        against="jax.jit(jax.value_and_grad(...)) over a flat list",
        peers={"equinox": partial(_traced_step, EQUINOX)},
        repeats=10,
    ),
    against_equinox(
        "trace a gradient, MLP of 64 layers",
        "transforms.trace-gradient",
        _traced_gradient,
        repeats=10,
    ),
    Row(
        "call a function compiled ahead of time",
        budget="transforms.compiled",
        subject=partial(_compiled, ECLIPTIC),
        reference=_raw_compiled,
        against="the same of jax.jit, over a flat list",
        peers={"equinox": partial(_compiled, EQUINOX)},
    ),
    against_equinox(
        "filter_make_jaxpr of an MLP", "transforms.jaxpr", partial(_fresh, transform=_make_jaxpr)
    ),
    against_equinox(
        "filter_eval_shape of an MLP", "transforms.jaxpr", partial(_fresh, transform=_eval_shape)
    ),
    against_equinox(
        "filter_closure_convert of an MLP",
        "transforms.jaxpr",
        partial(_fresh, transform=_closure_convert),
    ),
)
